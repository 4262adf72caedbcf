"""``variants resolve --download``: resolves and downloads, builds and installs nothing."""

from __future__ import annotations

from collections.abc import Sequence

from ..cases import Command
from ..measure import Place, Run, run
from . import options


class Resolve:
    """``variants resolve``."""

    def __init__(self, program: Sequence[str], name: str = "resolve") -> None:
        """Use the command line *program* to start ``variants``."""
        self.name = name
        self._program = program

    def install(self, command: Command, place: Place, seconds: float) -> Run:
        """Resolve and download."""
        arguments = [*self._program, "resolve", "--no-cache"]
        # The indexes of most rank first; the one of least rank is the "main" one here, as in uv.
        *first, last = [command.index, *command.extra_indexes]
        for url in first:
            arguments += ["--extra-index-url", url]
        arguments += ["--index-url", last]
        for url in command.find_links:
            arguments += ["--find-links", url]
        arguments += [*options(command), *command.arguments.get("resolve", [])]
        arguments += ["--download", str(place.target), *command.requirements]
        return run(arguments, place, {"PIP_TIMEOUT": "3", **command.variables}, seconds)
