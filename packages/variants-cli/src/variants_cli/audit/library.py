"""What is found in one library."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Use:
    """Instructions of one extension in a library.

    Attributes:
        instructions: how many there are.
        functions: names of functions that have some, in the order of their addresses; an address
            where no name is known.
        chosen: those of the instructions that are in functions named for an extension, as
            functions that are chosen at run time are.
        unnamed: those in functions without a name.
    """

    instructions: int
    functions: tuple[str, ...]
    chosen: int = 0
    unnamed: int = 0


@dataclass(frozen=True)
class Library:
    """A library in a wheel.

    Attributes:
        path: its path in the wheel.
        kind: format: ``ELF``, ``Mach-O`` or ``PE``.
        machines: machines it is for, as `platform.machine()` names them.
        uses: by extension; empty if the code was not looked at.
        instructions: number of all that were looked at.
        audited: share of its code that was looked at, from 0 to 1.
        dispatch: it asks the CPU what it can do, or has functions that are chosen at run time.
        cubins: compute capabilities that it has GPU code for, such as ``90`` or ``90a``.
        ptx: those that it has PTX for.
        problem: why it could not be looked at, empty if it was.
    """

    path: str
    kind: str
    machines: tuple[str, ...] = ()
    uses: Mapping[str, Use] = field(default_factory=dict)
    instructions: int = 0
    audited: float = 0.0
    dispatch: bool = False
    cubins: tuple[str, ...] = ()
    ptx: tuple[str, ...] = ()
    problem: str = ""


UNNAMED = "0x"
"""What the name of a function starts with where it is only an address."""


class Tally:
    """Counts instructions by extension and function."""

    def __init__(self) -> None:
        self._counts: dict[str, Counter[str]] = {}
        self.instructions = 0
        """All that were looked at."""
        self.asks = False
        """Whether some ask the CPU what it can do."""

    def add(self, extension: str, function: str) -> None:
        """Count one instruction of an extension."""
        self._counts.setdefault(extension, Counter())[function] += 1

    def uses(self, chosen_name: re.Pattern[str]) -> dict[str, Use]:
        """Return what was counted; *chosen_name* is found in names of functions for some CPUs."""
        return {name: _use(self._counts[name], chosen_name) for name in sorted(self._counts)}


def _use(counts: Counter[str], chosen_name: re.Pattern[str]) -> Use:
    chosen = {name for name in counts if chosen_name.search(name)}
    return Use(
        counts.total(),
        tuple(name for name in counts if name not in chosen) or tuple(counts),
        sum(counts[name] for name in chosen),
        sum(number for name, number in counts.items() if name.startswith(UNNAMED)),
    )
