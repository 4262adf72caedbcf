"""The performance gate: a variant that is slower than the null variant is refused.

Each round of a benchmark runs the baseline and the variant one after the other, in turns in either
order, so that a machine that gets slower or busier meets both alike. What counts is the median of
the ratios of the rounds. Its noise is an interval that has the true median with 95 % confidence or
more whatever the distribution is: from the k-th least to the k-th greatest ratio, where k follows
from the binomial distribution (the interval of the sign test). A variant is refused if the whole
interval is slower than the baseline, by more than the tolerance.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

_CONFIDENCE = 0.95


@dataclass(frozen=True)
class Comparison:
    """A variant compared with the baseline.

    Attributes:
        name: of the variant.
        baseline_time: median of the baseline's figures, in `unit`.
        time: median of the variant's figures.
        unit: ``s`` for seconds, empty for what the command prints.
        ratio: median of the ratios of the rounds, below 1 if the variant is faster.
        low: lower end of the interval of the ratio.
        high: upper end.
        tolerance: how much slower is no harm, as a share.
    """

    name: str
    baseline_time: float
    time: float
    unit: str
    ratio: float
    low: float
    high: float
    tolerance: float

    @property
    def is_slower(self) -> bool:
        """Whether the variant is slower than the baseline by more than noise and tolerance."""
        return self.low > 1 and self.ratio > 1 + self.tolerance

    @property
    def is_faster(self) -> bool:
        """Whether the variant is faster than the baseline by more than noise."""
        return self.high < 1

    @property
    def verdict(self) -> str:
        """One of ``faster``, ``as fast`` and ``slower``."""
        if self.is_slower:
            return "slower"
        return "faster" if self.is_faster else "as fast"


def compare(
    name: str,
    pairs: Sequence[tuple[float, float]],
    unit: str,
    tolerance: float,
) -> Comparison:
    """Compare the figures of a variant with those of the baseline.

    Args:
        name: of the variant.
        pairs: for each round the figures of the baseline and of the variant; lower is better.
        unit: of the figures.
        tolerance: how much slower is no harm, as a share.

    Raises:
        ValueError: a figure is not a positive number, or there are none.
    """
    if not pairs or not all(math.isfinite(x) and x > 0 for pair in pairs for x in pair):
        raise ValueError("figures have to be positive numbers")
    ratios = sorted(variant / baseline for baseline, variant in pairs)
    rank = interval_rank(len(ratios))
    return Comparison(
        name,
        statistics.median(baseline for baseline, _ in pairs),
        statistics.median(variant for _, variant in pairs),
        unit,
        statistics.median(ratios),
        ratios[rank - 1],
        ratios[-rank],
        tolerance,
    )


def interval_rank(count: int) -> int:
    """Return the k for which the k-th least and the k-th greatest of *count* values are the ends.

    With fewer than six values, the least and the greatest have less than the confidence.
    """
    rank = 1
    while rank + 1 <= (count + 1) // 2:
        outside = 2 * sum(math.comb(count, i) for i in range(rank + 1)) / 2**count
        if outside > 1 - _CONFIDENCE:
            break
        rank += 1
    return rank


def last_number(output: str) -> float | None:
    """Return the number on the last line of *output* that is not empty, None if it is none."""
    lines = [line for line in output.splitlines() if line.strip()]
    try:
        number = float(lines[-1].strip())
    except (IndexError, ValueError):
        return None
    return number if math.isfinite(number) and number > 0 else None


def shown(value: float, unit: str) -> str:
    """Return a figure for people, with three significant digits."""
    if unit != "s":
        return f"{value:.3g}"
    for factor, name in ((1.0, "s"), (1e3, "ms"), (1e6, "µs")):
        if value * factor >= 1:
            return f"{value * factor:.3g} {name}"
    return f"{value * 1e9:.3g} ns"
