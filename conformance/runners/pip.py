"""pip with the shim, and a stock pip through the index shim."""

from __future__ import annotations

from pep_variants.errors import VariantError
from pep_variants.machines import load_platform
from support.environments import PIPS, Environments
from support.proxies import running_proxy
from variants_proxy.settings import Settings, Upstream
from variants_proxy.urls import Machine, encode, host_target, index_url, links_url

from ..case import Case
from ..outcome import Outcome
from ..place import Place
from .base import (
    Installer,
    each,
    index_options,
    not_for_installers,
    target_options,
    variant_options,
)

_ALONE = ("--no-input", "--no-cache-dir", "--disable-pip-version-check")
"""Options that keep pip from all but the indexes that it is given."""


class Pip(Installer):
    """``pip install --target`` of a pip with the shim."""

    entry = "pip._internal.cli.main:main"
    command = "pip"
    remembered = (
        "pip._internal.network.session:user_agent",
        "pip._internal.cli.index_command:_create_truststore_ssl_context",
    )

    def __init__(self, name: str, pip: str, python: str, environments: Environments) -> None:
        self.name = name
        self.title = f"pip {pip} with the shim"
        super().__init__(environments.patched(python, pip).python)

    def play(self, case: Case, place: Place) -> Outcome:
        """Install."""
        arguments = ["install", *_ALONE, "--no-compile", "--target", str(place.target)]
        arguments += [*index_options(place), *variant_options(case, place)]
        return self.run(place, [*arguments, *pip_target(case), *place.install])


def pip_target(case: Case) -> list[str]:
    """Return pip's options for the target of *case*."""
    return target_options(case, "--platform", "--only-binary", ":all:")


class PipLock(Pip):
    """``pip lock`` and ``pip install -r pylock.toml``."""

    def __init__(self, environments: Environments) -> None:
        super().__init__("pip-lock", PIPS[-1], "3.13", environments)
        self.title += ", from a lock file"

    def refuses(self, case: Case) -> str:
        """Refuse what is not for installers, and targets, for which pip does not lock."""
        reason = not_for_installers(case, locks=True)
        return reason or ("pip lock has no target" if "target" in case.tree else "")

    def play(self, case: Case, place: Place) -> Outcome:
        """Lock, unless there is a lock file already, and install from it."""
        options = [*_ALONE, *variant_options(case, place), *index_options(place)]
        lock = ["lock", *options, "-o", str(place.lock), *place.install]
        install = ["install", *options, "--no-compile", "--target", str(place.target)]
        install += ["-r", str(place.lock)]
        return self.run(place, *([install] if case.form == "lock" else [lock, install]))


class IndexShimPip(Installer):
    """``pip install --target`` of a stock pip, whose indexes are those of an index shim."""

    name = "index-shim-pip"
    title = f"pip {PIPS[-1]} without the shim, through the index shim"
    entry = Pip.entry
    command = Pip.command
    remembered = Pip.remembered
    is_ours = False  # the words are pip's

    def __init__(self, environments: Environments) -> None:
        super().__init__(environments.plain("3.13", PIPS[-1]).python)

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
            return Outcome(True, installed={}, output=str(error))
        served = place.served
        simple = [Upstream(f"i{number}", url) for number, url in enumerate(served.indexes)]
        links = [
            Upstream(f"l{number}", url, "find-links")
            for number, url in enumerate(served.find_links)
        ]
        target = case.tree.get("target")
        python = target["python"] if target else ""
        key = encode(Machine(platform, target=_machine(target), python=python))
        with running_proxy(Settings((*simple, *links), place.root / "shim")) as url:
            arguments = ["install", "--no-cache-dir", "--no-compile", "--no-input", "--target"]
            arguments += [str(place.target), "--disable-pip-version-check"]
            arguments += ["--index-url", url + index_url(key)]
            arguments += each("--find-links", (url + links_url(key, item.name) for item in links))
            return self.run(place, [*arguments, *pip_target(case), *place.install])


def _machine(target: dict[str, str] | None) -> str:
    if target is None:
        return host_target()
    system = {"macos": "macosx", "windows": "win"}.get(target["os"], target["os"])
    return f"{system}-{target['arch'].replace('arm64', 'aarch64')}"
