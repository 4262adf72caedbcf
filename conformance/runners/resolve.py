"""``variants resolve``: resolves and downloads."""

from __future__ import annotations

import sys

from support.environments import Environments

from ..case import Case
from ..outcome import Outcome
from ..place import Place
from ..program import PythonProgram
from .arguments import index_options, resolve_target, variant_options
from .installer import Installer


class Resolve(Installer):
    """``variants resolve --download``, of this environment."""

    name = "resolve"
    title = "variants resolve"
    command = "variants"

    def __init__(self, environments: Environments) -> None:  # noqa: ARG002
        """Use the command of this environment."""
        super().__init__(PythonProgram(sys.executable, "variants_cli.main:main"))

    def play(self, case: Case, place: Place) -> Outcome:
        """Resolve and download."""
        served = place.served
        arguments = ["resolve", "--no-cache", *index_options(served, last_is_main=True)]
        arguments += [*variant_options(case, place), *resolve_target(case)]
        arguments += ["--download", str(place.target), *place.install]
        return self.run(place, arguments)
