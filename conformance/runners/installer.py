"""An installer of this project that is a program in Python, imported once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hostile.clients import found

from ..case import Case
from ..outcome import Outcome
from ..place import Place
from ..program import PythonProgram
from . import not_for_installers


class Installer:
    """Base of runners that start one program.

    Attributes:
        command: what the program is called by.
        is_ours: its words are compared as well.
    """

    command: str
    is_ours = True

    def __init__(self, program: PythonProgram) -> None:
        """Use *program*."""
        self._program = program

    def close(self) -> None:
        """End the program."""
        self._program.close()

    def refuses(self, case: Case) -> str:
        """Refuse what is not about an index."""
        return not_for_installers(case)

    def run(
        self, place: Place, *commands: Sequence[str], more: Mapping[str, str] | None = None
    ) -> Outcome:
        """Run commands until one fails; return what is installed after the last.

        Args:
            place: where.
            commands: arguments of each.
            more: environment variables besides those of *place*.
        """
        output = ""
        variables = {**place.variables, **(more or {})}
        for arguments in commands:
            done = self._program.run(self.command, arguments, variables, place.work)
            output += done.output
            if done.code:
                break
        failed = done.code != 0
        # What `variants resolve` had downloaded when it failed is not installed.
        left = {} if failed and self.command == "variants" else found(place.target)
        return Outcome(failed, installed=left, output=output, is_ours=self.is_ours)
