"""Several releases side by side: what each is for, and what it has that the one before has not."""

from __future__ import annotations

from collections.abc import Sequence

from ..matrix.model import Value
from .release import Release
from .tables import Table


def overview_tables(releases: Sequence[Release]) -> tuple[Table, ...]:
    """Return the tables that compare *releases*: all of them, then the values of each axis."""
    headings = tuple(dict.fromkeys(name for r in releases for name in r.matrix.details))
    rows = []
    before: frozenset[tuple[str, str]] | None = None
    for release in releases:
        values = _values(release)
        new = [] if before is None else [v for v in _ordered(release) if v not in before]
        before = values
        details = release.matrix.details
        facts = (details.get(heading, "") for heading in headings)
        added = ", ".join(name for _, name in new)
        rows.append((release.title, *facts, str(len(release.variants)), added))
    columns = ("release", *headings, "variants", "new since the one before")
    return Table("Releases", columns, tuple(rows)), *_axes(releases)


def _axes(releases: Sequence[Release]) -> list[Table]:
    tables = []
    for axis in dict.fromkeys(name for release in releases for name in release.matrix.axes):
        known: dict[str, Value] = {}
        for release in releases:
            for value in release.matrix.axes.get(axis, ()):
                known.setdefault(value.name, value)
        counts = {name: [_count(release, axis, name) for release in releases] for name in known}
        rows = tuple(
            (name, known[name].title, *(str(number or "-") for number in numbers))
            for name, numbers in counts.items()
            if any(numbers)
        )
        if len(rows) > 1:
            titles = (release.title for release in releases)
            columns = (axis, "for", *titles)
            tables.append(Table(f"Variants by {axis}", columns, rows, frozenset((axis,))))
    return tables


def _count(release: Release, axis: str, name: str) -> int:
    return sum(1 for v in release.variants if axis in v.values and v.values[axis].name == name)


def _ordered(release: Release) -> list[tuple[str, str]]:
    """Return axis and name of the values that variants have, without those that are versions."""
    return [
        (axis, value.name)
        for axis, values in release.matrix.axes.items()
        for value in values
        if not value.name[:1].isdigit() and _count(release, axis, value.name)
    ]


def _values(release: Release) -> frozenset[tuple[str, str]]:
    return frozenset(_ordered(release))
