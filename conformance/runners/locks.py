"""Lock files: made by a client and installed from by the same one, or given by the case."""

from __future__ import annotations

from support.environments import PIPS, Environments

from ..case import Case
from ..outcome import Outcome
from ..place import Place
from .arguments import index_options, resolve_target, variant_options
from .installer import Installer
from .pip import ALONE, pip_program
from .resolve import Resolve


class ResolveLock(Resolve):
    """``variants resolve -o`` and ``variants resolve --from``."""

    name = "resolve-lock"
    title = "variants resolve, from a lock file"

    def refuses(self, case: Case) -> str:
        """Refuse what is not for installers."""
        return "" if case.is_installable else "about a library"

    def play(self, case: Case, place: Place) -> Outcome:
        """Lock, unless there is a lock file already, and download what is chosen from it."""
        options = [*variant_options(case, place), *resolve_target(case), "--no-cache"]
        served = place.served
        options += index_options(served, last_is_main=True)  # plugins come from there as well
        lock = ["resolve", *options, "-o", str(place.lock), *place.install]
        install = ["resolve", *options, "--from", str(place.lock)]
        install += ["--download", str(place.target)]
        return self.run(place, *([install] if case.form == "lock" else [lock, install]))


class PipLock(Installer):
    """``pip lock`` and ``pip install -r pylock.toml`` of the newest pip with the shim."""

    name = "pip-lock"
    title = f"pip {PIPS[-1]} with the shim, from a lock file"
    command = "pip"

    def __init__(self, environments: Environments) -> None:
        """Use the newest pip."""
        super().__init__(pip_program(environments.patched("3.13", PIPS[-1])))

    def refuses(self, case: Case) -> str:
        """Refuse what is not for installers, and targets, for which pip does not lock."""
        if not case.is_installable:
            return "about a library"
        return "pip lock has no target" if "target" in case.tree else ""

    def play(self, case: Case, place: Place) -> Outcome:
        """Lock, unless there is a lock file already, and install from it."""
        served = place.served
        options = [*ALONE, *variant_options(case, place), *index_options(served)]
        lock = ["lock", *options, "-o", str(place.lock), *place.install]
        install = ["install", *options, "--no-compile", "--target", str(place.target)]
        install += ["-r", str(place.lock)]
        return self.run(place, *([install] if case.form == "lock" else [lock, install]))
