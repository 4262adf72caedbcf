"""The tables of a document about a release, without a format."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..matrix.model import Value
from .coverage import IDLE, NOTHING, NULL, OTHER, Choice, optional_namespaces
from .release import Release
from .wording import (
    HEADINGS,
    NO_VARIANT,
    build_text,
    needs_text,
    requires_text,
)

GAPS = (NOTHING, IDLE, NULL, OTHER)

_MOST_NAMES = 4


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        title: its heading.
        columns: headings of the columns.
        rows: cells of the rows, one for each column.
        code: columns with names of the file, such as labels.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    code: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Reference:
    """What there is to know of one value of an axis.

    Attributes:
        title: its heading.
        facts: headings and texts.
    """

    title: str
    facts: tuple[tuple[str, str], ...]


def machine_text(choice: Choice) -> str:
    """Return what the machine is."""
    return choice.machine.title or choice.machine.name


def gap_tables(release: Release) -> tuple[Table, ...]:
    """Return the gaps: machines that do not get what they could use, and unused variants."""
    coverage = release.workloads[0].coverage
    tables = []
    for outcome in GAPS:
        choices = [c for c in coverage.ordered() if c.outcome == outcome]
        if not choices:
            continue
        rows = tuple(
            (c.machine.name, c.label or NO_VARIANT, c.remark or "nothing else is for it")
            for c in choices
        )
        columns = ("machine", "gets", "why nothing better")
        tables.append(Table(HEADINGS[outcome], columns, rows, frozenset(columns[:2])))
    if release.unchosen:
        unused = tuple((item.label, item.why) for item in release.unchosen)
        title = "Variants that none of these machines gets"
        tables.append(Table(title, ("variant", "why"), unused, frozenset(("variant",))))
    return tuple(tables)


def shown_axes(release: Release) -> tuple[str, ...]:
    """Return the axes that tell the variants apart: with several values, and no Pythons."""
    axes = release.matrix.axes
    return tuple(
        axis
        for axis in release.matrix.label
        if not any(value.is_target for value in axes[axis])
        and len({variant.values[axis].name for variant in release.variants}) > 1
    )


def _value_text(value: Value) -> str:
    if value.name == "none":
        return value.title or "none"
    return f"{value.name} ({value.title})" if value.title else value.name


def variant_table(release: Release) -> Table:
    """Return all variants; cells of an axis that repeat the row above are empty."""
    axes = shown_axes(release)
    default = release.workloads[0].coverage.machines_by_label
    optional = optional_namespaces(release.metadata)
    rows = []
    before: Sequence[str] = ()
    for variant in release.variants:
        names = [variant.values[axis].name for axis in axes]
        cells = []
        for place, axis in enumerate(axes):
            same = names[: place + 1] == list(before[: place + 1]) and place + 1 < len(axes)
            cells.append("" if same else _value_text(variant.values[axis]))
        before = names
        machines = _some(default[variant.label]) or "; ".join(
            f"{workload.added}: {_some(getting)}"
            for workload in release.workloads[1:]
            if (getting := workload.coverage.machines_by_label[variant.label])
        )
        rows.append(
            (
                *cells,
                variant.label,
                needs_text(variant.settings.properties, optional) or "any machine",
                machines or "-",
            )
        )
    columns = (*axes, "label", "needs", "machines that get it")
    return Table("Variants", columns, tuple(rows), frozenset(("label",)))


def _some(names: Sequence[str]) -> str:
    """Return the first of *names*, and the number of the others, which the machines' table has."""
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def machine_table(release: Release) -> Table:
    """Return what every machine gets, and with which optional namespace something else."""
    default, *others = release.workloads
    rows = []
    by_added = {
        workload.added: {c.machine.name: c for c in workload.coverage.choices}
        for workload in others
    }
    for choice in default.coverage.choices:
        name = choice.machine.name
        enabled = [
            f"{added}: {found[name].label}"
            for added, found in by_added.items()
            if found[name].label != choice.label
        ]
        cells = (name, machine_text(choice), choice.label or NO_VARIANT, choice.why)
        rows.append((*cells, *(("; ".join(enabled),) if others else ()), choice.remark))
    columns = ("machine", "is", "gets", "because",
               *(("if enabled",) if others else ()), "nothing better because")  # fmt: skip
    return Table("Machines", columns, tuple(rows), frozenset(("machine", "gets", "if enabled")))


def axis_tables(release: Release) -> tuple[Table, ...]:
    """Return a table for each axis: its values, what they need and how they are built."""
    tables = []
    optional = optional_namespaces(release.metadata)
    for axis, values in release.matrix.axes.items():
        used = _used(release, axis, values)
        if not used:
            continue
        columns = ("value", "for", "needs", "only with", "build", "variants")
        rows = tuple(
            (
                value.name,
                value.title,
                needs_text(value.settings.properties, optional),
                requires_text(value),
                build_text(value),
                str(number),
            )
            for value, number in used
        )
        empty = {place for place in range(len(columns)) if not any(row[place] for row in rows)}
        tables.append(
            Table(
                axis,
                tuple(c for place, c in enumerate(columns) if place not in empty),
                tuple(
                    tuple(cell for place, cell in enumerate(row) if place not in empty)
                    for row in rows
                ),
                frozenset(("value", "build")),
            )
        )
    return tuple(tables)


def references(release: Release, axis: str) -> tuple[Reference, ...]:
    """Return what the file says of each value of *axis* in more detail; nothing if it does not."""
    return tuple(
        Reference(
            f"{value.name}: {value.title}" if value.title else value.name,
            tuple(value.details.items()),
        )
        for value, _ in _used(release, axis, release.matrix.axes[axis])
        if value.details
    )


def _used(release: Release, axis: str, values: Iterable[Value]) -> list[tuple[Value, int]]:
    """Return the values that variants have, with the number of variants."""
    counts: dict[str, int] = {}
    for variant in release.variants:
        name = variant.values[axis].name
        counts[name] = counts.get(name, 0) + 1
    return [(value, counts[value.name]) for value in values if value.name in counts]
