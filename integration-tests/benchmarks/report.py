"""Measuring two things in turn, in one run, and showing how they compare."""

from __future__ import annotations

import gc
import operator
import resource
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One comparison.

    Attributes:
        what: what is measured.
        ours: our figure, in *unit*.
        theirs: the figure of what it is compared with, measured in the same run.
        against: what theirs is.
        goal: in words.
        met: whether it was met in this run.
    """

    what: str
    ours: float
    theirs: float
    unit: str
    against: str
    goal: str
    met: bool

    @property
    def ratio(self) -> str:
        """Ours as a multiple of theirs: ``1.20x``, ``1/20`` if small, ``1,200x`` if large."""
        ratio = self.ours / self.theirs if self.theirs else float("inf")
        if 0 < ratio < 0.1:
            return f"1/{1 / ratio:.0f}"
        return f"{ratio:,.0f}x" if ratio >= 100 else f"{ratio:.2f}x"

    def __str__(self) -> str:
        return (
            f"  {self.what:62} {self.ours:9.3f} {self.unit:2} {self.theirs:9.3f} {self.unit:2} "
            f"{self.ratio:>8}  {self.against}; {self.goal}: {'met' if self.met else 'NOT met'}"
        )


def in_turn(
    ours: Callable[[], object],
    theirs: Callable[[], object],
    *,
    rounds: int,
    warmups: int = 1,
    clock: Callable[[], float] = time.perf_counter,
    prepare: Callable[[], object] = lambda: None,
) -> tuple[float, float]:
    """Return seconds of both, called in turn so that a busy machine slows both.

    What is quoted of two things is their ratio: the median of the ratios of pairs, run right after
    each other and each time the other way round. The second figure is the median of its own, the
    first one that times the ratio.

    *prepare* is called before each of them and not measured.
    """
    spent: dict[Callable[[], object], list[float]] = {ours: [], theirs: []}
    for number in range(warmups + rounds):
        for call in (ours, theirs) if number % 2 else (theirs, ours):
            prepare()
            gc.collect()  # what the other one left behind is not this one's to clear away
            start = clock()
            call()
            if number >= warmups:
                spent[call].append(clock() - start)
    ratio = statistics.median(map(operator.truediv, spent[ours], spent[theirs]))
    usual = statistics.median(spent[theirs])
    return ratio * usual, usual


def children() -> float:
    """Return the seconds of CPU of processes that have ended and were waited for: a clock."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime
