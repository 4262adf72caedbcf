"""pip without the shim for pip, through the index shim: what any installer gets from it."""

from __future__ import annotations

from pep_variants.errors import VariantError
from pep_variants.formats.platform_file import load_platform
from support.environments import PIPS, Environments
from support.proxies import running_proxy
from variants_proxy import Machine, Settings, Upstream, encode, index_url, links_url

from ..case import Case
from ..outcome import Outcome
from ..place import Place
from .arguments import pip_target
from .installer import Installer
from .pip import pip_program


class IndexShimPip(Installer):
    """``pip install --target`` of a stock pip, whose indexes are those of an index shim."""

    name = "index-shim-pip"
    title = f"pip {PIPS[-1]} without the shim, through the index shim"
    command = "pip"
    is_ours = False  # the words are pip's

    def __init__(self, environments: Environments) -> None:
        """Use the newest pip."""
        super().__init__(pip_program(environments.plain("3.13", PIPS[-1])))

    def refuses(self, case: Case) -> str:
        """Refuse what is not about an index, and what its URL cannot say."""
        if "options" in case.tree or "settings" in case.tree:
            return "takes no options"
        if "abi-dependency" in case.needs:
            return "leaves variants with abi_dependency out"
        if "hashes" in case.needs:
            return "pip does not tell an index which hashes are required"
        if case.tree.get("machine") == "detected":
            return "does not look at the machine"
        return super().refuses(case)

    def play(self, case: Case, place: Place) -> Outcome:
        """Install through an index shim of its own."""
        assert place.platform is not None
        try:
            platform = load_platform(place.platform)
        except VariantError as error:
            return Outcome(True, installed={}, output=str(error), is_ours=False)
        served = place.served
        indexes = (served.index, *served.extra_indexes)
        simple = [Upstream(f"i{number}", url) for number, url in enumerate(indexes)]
        links = [
            Upstream(f"l{number}", url, "find-links")
            for number, url in enumerate(served.find_links)
        ]
        settings = Settings((*simple, *links), place.root / "shim")
        python = case.tree["target"]["python"] if "target" in case.tree else ""
        key = encode(Machine(platform, target=_target(case), python=python))
        with running_proxy(settings) as url:
            arguments = ["install", "--no-cache-dir", "--no-compile", "--no-input", "--target"]
            arguments += [str(place.target), "--disable-pip-version-check"]
            arguments += ["--index-url", url + index_url(key)]
            for item in links:
                arguments += ["--find-links", url + links_url(key, item.name)]
            arguments += [*pip_target(case), *place.install]
            return self.run(place, arguments)


def _target(case: Case) -> str:
    if "target" not in case.tree:
        from variants_proxy import host_target

        return host_target()
    target = case.tree["target"]
    system = {"macos": "macosx", "windows": "win"}.get(target["os"], target["os"])
    return f"{system}-{target['arch'].replace('arm64', 'aarch64')}"
