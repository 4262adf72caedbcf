"""Measuring two things in turn, in one run, and printing how they compare."""

from __future__ import annotations

import gc
import operator
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from pep_variants.errors import VariantError


class BenchmarkError(VariantError):
    """Something cannot be measured, or a record cannot be read; the message says what."""


class Row(NamedTuple):
    """One comparison.

    Attributes:
        what: what is measured.
        ours: our figure.
        theirs: the figure of what it is compared with, measured in the same run.
        unit: of both figures, e.g. ``ms``.
        against: what theirs is.
        goal: the goal for the ratio or for our figure, in words; empty without a goal.
        met: whether it was met in this run; None without a goal.
        line: what the row is called in records; empty to make it from what and against.
    """

    what: str
    ours: float
    theirs: float
    unit: str
    against: str
    goal: str = ""
    met: bool | None = None
    line: str = ""

    @property
    def ratio(self) -> float:
        """Ours as a multiple of theirs."""
        return self.ours / self.theirs if self.theirs else float("inf")


def in_turn(
    ours: Callable[[], object],
    theirs: Callable[[], object],
    *,
    rounds: int,
    warmups: int = 1,
    clock: Callable[[], float] = time.perf_counter,
    prepare: Callable[[], object] | None = None,
) -> tuple[float, float]:
    """Return seconds of both, called in turn so that a busy machine slows both.

    What is quoted of two things is their ratio. It comes from pairs, run right after each other
    and each time the other way round: the median of the ratios. The second figure is the median
    of its own, the first one that times the ratio.

    *prepare* is called before each of them and not measured.

    *clock* is `time.process_time` for what only computes: it does not count other processes.
    """
    for _ in range(warmups):
        for call in (ours, theirs):
            if prepare is not None:
                prepare()
            call()
    spent: dict[Callable[[], object], list[float]] = {ours: [], theirs: []}
    for number in range(rounds):
        for call in (ours, theirs) if number % 2 else (theirs, ours):
            if prepare is not None:
                prepare()
            gc.collect()  # what the other one left behind is not this one's to clear away
            start = clock()
            call()
            spent[call].append(clock() - start)
    ratio = statistics.median(map(operator.truediv, spent[ours], spent[theirs]))
    usual = statistics.median(spent[theirs])
    return ratio * usual, usual


def times(ratio: float) -> str:
    """Return *ratio* as ``1.20x``, ``1/20`` where it is small or ``1,200x`` where it is large."""
    if 0 < ratio < 0.1:
        return f"1/{1 / ratio:.0f}"
    return f"{ratio:,.0f}x" if ratio >= 100 else f"{ratio:.2f}x"


def peak_megabytes() -> float:
    """Return the most memory that this process has had."""
    try:
        # `getrusage` counts what this process was before `exec` as well.
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1e3
    except OSError:
        pass
    try:
        import resource
    except ImportError:  # Windows
        return 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1e3)


def show(rows: Iterable[Row]) -> Iterator[str]:
    """Yield one aligned line per row: what, ours, theirs, ratio, goal."""
    yield f"{'what':54} {'ours':>12} {'theirs':>12} {'ratio':>8}  compared with; goal"
    for row in rows:
        ratio = times(row.ratio)
        goal = f"; {row.goal}" if row.goal else ""
        verdict = "" if row.met is None else (" (met)" if row.met else " (NOT met)")
        yield (
            f"{row.what:54} {row.ours:9.3f} {row.unit:2} {row.theirs:9.3f} {row.unit:2} "
            f"{ratio:>8}  {row.against}{goal}{verdict}"
        )
