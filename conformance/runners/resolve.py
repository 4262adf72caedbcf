"""``variants resolve``: resolves and downloads."""

from __future__ import annotations

import sys

from hostile.clients import found
from support.environments import Environments

from ..case import Case
from ..outcome import Outcome
from ..place import Place
from ..program import PythonProgram
from . import not_for_installers
from .arguments import index_options, resolve_target, variant_options


class Resolve:
    """``variants resolve --download``, of this environment."""

    name = "resolve"
    title = "variants resolve"
    is_ours = True

    def __init__(self, environments: Environments) -> None:  # noqa: ARG002
        """Use the command of this environment."""
        self._program = PythonProgram(sys.executable, "variants_cli.main:main")

    def close(self) -> None:
        """End the program."""
        self._program.close()

    def refuses(self, case: Case) -> str:
        """Refuse what is not about an index."""
        return not_for_installers(case)

    def play(self, case: Case, place: Place) -> Outcome:
        """Resolve and download."""
        served = place.served
        arguments = ["resolve", "--no-cache", *index_options(served, last_is_main=True)]
        arguments += [*variant_options(case, place), *resolve_target(case)]
        arguments += ["--download", str(place.target), *place.install]
        done = self._program.run("variants", arguments, place.variables, place.work)
        return Outcome(
            done.code != 0,
            installed={} if done.code else found(place.target),
            output=done.output,
        )
