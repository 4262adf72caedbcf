"""pip with the shim, and a stock pip through the index shim."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pep_variants.errors import VariantError
from pep_variants.machines import load_platform
from support.environments import PIPS, Environment, Environments
from support.proxies import running_proxy
from variants_proxy.settings import Settings, Upstream
from variants_proxy.urls import Machine, encode, host_target, index_url, links_url

from ..case import Case
from ..outcome import Outcome
from ..place import Place, clear
from ..program import Finished, Program, execute
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
_MORE = {"install": (), "upgrade": ("--upgrade",), "switch": ("--variant-switch",)}


class AnyPip(Installer):
    """Base of runners that start a pip."""

    entry = "pip._internal.cli.main:main"
    command = "pip"
    remembered = (
        "pip._internal.network.session:user_agent",
        "pip._internal.cli.index_command:_create_truststore_ssl_context",
    )

    def __init__(self, pip: Environment, environments: Environments) -> None:
        """Run *pip*; the copies of it, in which steps are played, are beside it."""
        super().__init__(pip.python)
        self._pip = pip
        self._folder = environments.folder
        self._idle: list[tuple[Environment, Program]] = []
        self._programs: dict[Path, Program] = {}

    @contextmanager
    def environment(self, place: Place) -> Iterator[Path]:  # noqa: ARG002
        """Take a copy of the environment of pip, with nothing but pip in it again."""
        try:
            copy, program = self._idle.pop()
        except IndexError:
            folder = tempfile.mkdtemp(prefix="steps-", dir=self._folder)
            copy = self._pip.copied(Path(folder, "environment"))
            program = Program(copy.python, self.entry, *self.remembered)
            self._programs[copy.site_packages] = program
        there = copy.site_packages
        own = {path.name for path in self._pip.site_packages.iterdir()}
        yield there
        clear(there, own)
        self._idle.append((copy, program))

    def start_in(self, folder: Path, arguments: Sequence[str], place: Place) -> Finished:
        """Run the pip of the environment of *folder*."""
        if "python3.10" in folder.parts:  # pip notes what is installed when it is imported
            python = Environment(folder.parents[2]).python
            return execute([python, "-m", "pip", *arguments], place.variables, place.work)
        arguments = [self.command, *arguments]
        return self._programs[folder].run(arguments, place.variables, place.work)

    def close(self) -> None:
        """End the programs."""
        super().close()
        for program in self._programs.values():
            program.close()


class Pip(AnyPip):
    """``pip install`` of a pip with the shim, with ``--target`` where there are no steps."""

    plays = frozenset(
        {"installed", "install", "upgrade", "switch", "check", "other-machine", "options"}
    )

    def __init__(self, name: str, pip: str, python: str, environments: Environments) -> None:
        self.name = name
        self.title = f"pip {pip} with the shim"
        super().__init__(environments.patched(python, pip), environments)

    def step(self, step: Case, place: Place, folder: Path) -> Finished:
        """Install, or check."""
        if step.tree["do"] == "check":
            return self.start_in(folder, ["check"], place)
        options = [*_ALONE, "--no-compile", *index_options(place), *variant_options(step, place)]
        arguments = ["install", *options, *_MORE[step.tree["do"]], *place.install]
        return self.start_in(folder, arguments, place)

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

    plays = frozenset({"lock", "add", "sync", "other-machine"})

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

    def step(self, step: Case, place: Place, folder: Path) -> Finished:
        """Lock everything, or install from the lock."""
        options = [*_ALONE, *variant_options(step, place), *index_options(place)]
        arguments = ["lock", *options, "-o", str(place.lock), *step.tree["locked"]]
        if step.tree["do"] == "sync":
            arguments = ["install", *options, "--no-compile", "-r", str(place.lock)]
        return self.start_in(folder, arguments, place)


class IndexShimPip(AnyPip):
    """``pip install --target`` of a stock pip, whose indexes are those of an index shim."""

    name = "index-shim-pip"
    title = f"pip {PIPS[-1]} without the shim, through the index shim"
    is_ours = False  # the words are pip's
    plays = frozenset({"installed", "install", "upgrade", "other-machine"})

    def __init__(self, environments: Environments) -> None:
        super().__init__(environments.plain("3.13", PIPS[-1]), environments)

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
        arguments = ["install", "--no-compile", "--target", str(place.target), *pip_target(case)]
        try:
            with self._through_shim(case, place) as indexes:
                return self.run(place, [*arguments, *_ALONE, *indexes, *place.install])
        except VariantError as error:
            return Outcome(True, installed={}, output=str(error))

    def step(self, step: Case, place: Place, folder: Path) -> Finished:
        """Run pip in the environment of *folder*, through an index shim of its own."""
        with self._through_shim(step, place) as indexes:
            arguments = ["install", *_ALONE, "--no-compile", *indexes, *_MORE[step.tree["do"]]]
            return self.start_in(folder, [*arguments, *place.install], place)

    @contextmanager
    def _through_shim(self, case: Case, place: Place) -> Iterator[list[str]]:
        """Yield pip's options for an index shim in front of the indexes of *case*."""
        assert place.platform is not None
        platform = load_platform(place.platform)
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
            pages = (url + links_url(key, item.name) for item in links)
            yield ["--index-url", url + index_url(key), *each("--find-links", pages)]


def _machine(target: dict[str, str] | None) -> str:
    if target is None:
        return host_target()
    system = {"macos": "macosx", "windows": "win"}.get(target["os"], target["os"])
    return f"{system}-{target['arch'].replace('arm64', 'aarch64')}"
