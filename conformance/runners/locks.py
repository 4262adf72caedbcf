"""Lock files: made by a client and installed from by the same one, or given by the case."""

from __future__ import annotations

from hostile.clients import found
from support.environments import PIPS, Environments

from ..case import Case
from ..outcome import Outcome
from ..place import Place
from .arguments import index_options, resolve_target, variant_options
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
        output = ""
        if case.form != "lock":
            arguments = ["resolve", *options, "-o", str(place.lock), *place.install]
            done = self._program.run("variants", arguments, place.variables, place.work)
            output = done.output
            if done.code:
                return Outcome(True, installed={}, output=output)
        arguments = ["resolve", *options, "--from", str(place.lock)]
        arguments += ["--download", str(place.target)]
        done = self._program.run("variants", arguments, place.variables, place.work)
        return Outcome(
            done.code != 0,
            installed={} if done.code else found(place.target),
            output=output + done.output,
        )


class PipLock:
    """``pip lock`` and ``pip install -r pylock.toml`` of the newest pip with the shim."""

    name = "pip-lock"
    title = f"pip {PIPS[-1]} with the shim, from a lock file"
    is_ours = True

    def __init__(self, environments: Environments) -> None:
        """Use the newest pip."""
        self._program = pip_program(environments.patched("3.13", PIPS[-1]))

    def close(self) -> None:
        """End the program."""
        self._program.close()

    def refuses(self, case: Case) -> str:
        """Refuse what is not for installers, and targets, for which pip does not lock."""
        if not case.is_installable:
            return "about a library"
        return "pip lock has no target" if "target" in case.tree else ""

    def play(self, case: Case, place: Place) -> Outcome:
        """Lock, unless there is a lock file already, and install from it."""
        served = place.served
        options = [*ALONE, *variant_options(case, place), *index_options(served)]
        output = ""
        if case.form != "lock":
            arguments = ["lock", *options, "-o", str(place.lock), *place.install]
            done = self._program.run("pip", arguments, place.variables, place.work)
            output = done.output
            if done.code:
                return Outcome(True, installed={}, output=output)
        arguments = ["install", *options, "--no-compile", "--target", str(place.target)]
        done = self._program.run(
            "pip", [*arguments, "-r", str(place.lock)], place.variables, place.work
        )
        return Outcome(done.code != 0, installed=found(place.target), output=output + done.output)
