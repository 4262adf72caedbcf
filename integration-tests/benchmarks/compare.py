"""`make bench-compare`: two records beside each other.

Only counted lines are judged: times of two runs differ by more than what a change costs.
"""

from __future__ import annotations

from dataclasses import dataclass

from .record import Line, Record
from .report import BenchmarkError

ALLOWED = 0.05
"""By how much a counted line may grow."""
NOISE = 0.001
"""Of what a line is compared with: a difference of two counts may grow by that much."""


@dataclass(frozen=True)
class Change:
    """A line in two records.

    Attributes:
        old: the line in the old record; None if it is new.
        new: the line in the new record; None if it is gone.
    """

    id: str
    old: Line | None
    new: Line | None

    @property
    def judged(self) -> bool:
        """Whether both records counted it."""
        return bool(self.old and self.new and self.old.counted and self.new.counted)

    @property
    def too_much(self) -> bool:
        """Whether it is judged, and grew by more than is allowed."""
        if not (self.old and self.new and self.judged):
            return False
        allowed = max(ALLOWED * abs(self.old.ours), NOISE * self.old.theirs)
        return self.new.ours - self.old.ours > allowed

    def __str__(self) -> str:
        figures = [
            f"{line.ours:,.3f} {line.unit}" if line else "-" for line in (self.old, self.new)
        ]
        if not self.old or not self.new:
            change = "new" if self.new else "gone"
        elif self.old.unit != self.new.unit or self.old.ours <= 0:
            change = "-"
        else:
            change = f"{self.new.ours / self.old.ours - 1:+.1%}"
        verdict = "  TOO MUCH" if self.too_much else ""
        return f"{self.id:76} {figures[0]:>18} {figures[1]:>18} {change:>9}{verdict}"


def changes(old: Record, new: Record) -> list[Change]:
    """Return all lines of both, those of *new* in its order first.

    Raises:
        BenchmarkError: their instructions do not compare: other machine, Python or counter, *new*
            has none of the lines that *old* counted, or a group of them was not counted to its end.
    """
    before = {line.id: line for line in old.lines}
    found = [Change(line.id, before.pop(line.id, None), line) for line in new.lines]
    found += [Change(line.id, line, None) for line in before.values()]
    counted = {line.group for line in old.lines if line.counted}
    for group, reason in new.skipped.items():
        if group in counted:
            raise BenchmarkError(f"{group} was not counted to its end in the new record: {reason}")
    if any(change.judged for change in found):
        for key in ("counter", "python", "cpu", "cores"):
            values = [record.machine.get(key, "") for record in (old, new)]
            if values[0] != values[1]:
                raise BenchmarkError(
                    f"the records do not compare: {key} is {values[0] or 'unknown'} in the old one"
                    f" and {values[1] or 'unknown'} in the new one"
                )
    elif counted:
        raise BenchmarkError("no line with instructions is in both records")
    return found
