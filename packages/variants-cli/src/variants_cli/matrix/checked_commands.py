"""The commands that built wheels are checked with: ``build.test`` and ``build.benchmark``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

PLACEHOLDERS = ("project", "label", "wheel")
"""What is replaced in a command: the source tree, the label, and the path of the wheel."""

PRINTED, CPU, WALL, AUTO = "printed", "cpu", "wall", "auto"
MEASURES = (AUTO, PRINTED, CPU, WALL)
"""What a benchmark measures: the number on its last line, its CPU time, or its duration; by default
the number if there is one, else CPU time."""

AS_FAST, FASTER = "as-fast", "faster"
REQUIRED = (AS_FAST, FASTER)
"""What a variant has to be to pass: not slower than the baseline, or faster than it."""

ROUNDS = 9
"""Rounds of a benchmark: the second least and the second greatest of nine ratios are an interval
that has the median with 96 % confidence, whatever the distribution."""


@dataclass(frozen=True)
class Test:
    """A test of built wheels.

    Attributes:
        words: of the command.
        requires: what is installed for it beside the wheel.
        only: patterns of the labels that it is for; empty for all.
    """

    words: tuple[str, ...]
    requires: tuple[str, ...] = ()
    only: tuple[str, ...] = ()

    def is_for(self, label: str) -> bool:
        """Return whether it tests variants with *label*."""
        return not self.only or any(fnmatchcase(label, pattern) for pattern in self.only)


@dataclass(frozen=True)
class Benchmark:
    """A benchmark that every variant is compared with the baseline by.

    Attributes:
        words: of the command.
        requires: what is installed for it beside the wheel.
        rounds: how often each pair runs.
        measure: one of `MEASURES`.
        tolerance: how much slower than the baseline is no harm, as a share.
        baseline: label of the variant that others are compared with.
        require: one of `REQUIRED`.
    """

    words: tuple[str, ...]
    requires: tuple[str, ...] = ()
    rounds: int = ROUNDS
    measure: str = AUTO
    tolerance: float = 0.01
    baseline: str = "null"
    require: str = AS_FAST


def filled(words: Sequence[str], values: Mapping[str, str]) -> list[str]:
    """Return *words* with ``{name}`` replaced by *values*; other braces are left alone."""
    found = []
    for word in words:
        for name, value in values.items():
            word = word.replace(f"{{{name}}}", value)
        found.append(word)
    return found
