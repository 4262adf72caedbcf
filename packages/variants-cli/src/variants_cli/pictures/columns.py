"""The columns of a grid: variants, in groups that have the values of all axes but the last."""

from __future__ import annotations

from dataclasses import dataclass

from ..matrix.model import Variant
from .release import Release
from .tables import shown_axes


@dataclass(frozen=True)
class Column:
    """A variant.

    Attributes:
        label: its label.
        text: the part that tells it from the others of its group.
        never: no machine gets it.
    """

    label: str
    text: str
    never: bool


@dataclass(frozen=True)
class Group:
    """Variants next to each other with one heading, which may be empty."""

    text: str
    columns: tuple[Column, ...]


def column_groups(release: Release) -> tuple[Group, ...]:
    """Return the variants of *release*, in their order."""
    # An axis that has one name, or none, tells little: the one CUDA version beside no CUDA.
    axes = [
        axis
        for axis in shown_axes(release)
        if len({part for v in release.variants if (part := _part(v, axis))}) > 1
    ]
    never = {item.label for item in release.unchosen}
    groups: list[tuple[str, list[Column]]] = []
    for variant in release.variants:
        *heading, last = [_part(variant, axis) for axis in axes] or [variant.label]
        text = " ".join(dict.fromkeys(filter(None, heading)))
        column = Column(variant.label, last or variant.label, variant.label in never)
        if not groups or groups[-1][0] != text:
            groups.append((text, []))
        groups[-1][1].append(column)
    if len(groups) == len(release.variants):
        # Nothing to group: whole labels say more.
        columns = (Column(v.label, v.label, v.label in never) for v in release.variants)
        return (Group("", tuple(columns)),)
    return tuple(Group(text, tuple(columns)) for text, columns in groups)


def _part(variant: Variant, axis: str) -> str:
    value = variant.values[axis]
    return value.label or ("" if value.name == "none" else value.name)
