"""A release of a matrix as people look at it: a page of HTML, Markdown, or a Mermaid chart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pep_variants import VariantError
from pep_variants.internal import shortened

from ..console import warn
from ..matrix.combination import distinct, metadata_of
from ..matrix.model import Matrix, Value, Variant
from ..matrix.output import needs
from .coverage import OUTCOMES, Choice, Machine, read_machines, why_unchosen
from .decision_tree import (
    MAXIMUM_ARROWS,
    MAXIMUM_TEXT,
    NO_VARIANT,
    Grower,
    Node,
    TreeTooLarge,
    flowchart,
    is_drawn,
)
from .rendering import rendered

DOCUMENTS = ("html", "markdown", "mermaid")
"""Names of the formats."""

SEVERAL = ("markdown",)
"""Formats that can show several releases."""

_MOST_NAMES = 4

SCOPE = (
    "What each machine gets, as installers choose, without settings of users. Only variants are "
    "compared: wheel tags, such as those for Python and the operating system, are not."
)


@dataclass(frozen=True)
class Release:
    """A matrix, or a part of one, before the eyes of people.

    Attributes:
        matrix: the file.
        variants: those that are shown, one for each label.
        choices: what each machine gets.
        unchosen: the variants that no machine gets, and why.
        optional: the namespaces that users have to enable.
        tree: the first question; None if there are too many.
        problem: why there is no tree, or for which machines it does not hold; mostly empty.
    """

    matrix: Matrix
    variants: tuple[Variant, ...]
    choices: tuple[Choice, ...]
    unchosen: Mapping[str, str]
    optional: tuple[str, ...]
    tree: Node | None
    problem: str

    @property
    def title(self) -> str:
        """What is released; the name of the file if that does not say."""
        return self.matrix.title or Path(self.matrix.source).stem

    @cached_property
    def axes(self) -> list[str]:
        """The axes that tell the variants apart: with several values, and no Pythons."""
        return [
            axis
            for axis in self.matrix.label
            if not any(value.is_target for value in self.matrix.axes[axis])
            and len({variant.values[axis].name for variant in self.variants}) > 1
        ]

    @cached_property
    def by_outcome(self) -> Mapping[str, Sequence[Choice]]:
        """What machines get by default: by `OUTCOMES`, in the order of the variants."""
        places = {variant.label: place for place, variant in enumerate(self.variants)}
        choices = sorted(self.choices, key=lambda c: places.get(c.label or "", -1))
        found = {name: [c for c in choices if c.outcome == name] for name in OUTCOMES}
        return {name: choices for name, choices in found.items() if choices}

    def used(self, axis: str) -> list[tuple[Value, int]]:
        """Return the values of *axis* that variants have, with the number of variants."""
        names = [v.values[axis].name for v in self.variants if axis in v.values]
        values = self.matrix.axes.get(axis, ())
        return [(value, names.count(value.name)) for value in values if value.name in names]

    def group_of(self, variant: Variant) -> list[str]:
        """Return what *variant* has in common with those beside it: all but the last axis."""
        return [variant.values[axis].name for axis in self.axes[:-1] or self.axes]

    def machines_of(self, label: str) -> str:
        """Return the machines that get *label*, a long list cut short."""
        names = [choice.machine.name for choice in self.choices if choice.label == label]
        more = len(names) - _MOST_NAMES
        return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")

    def needs(self, of: Value | Variant) -> str:
        """Return in a few words what machines need; several values are alternatives."""
        return needs(of.settings.properties, self.optional)


def requires_of(value: Value) -> str:
    """Return in which combinations a value of an axis is built."""
    return "; ".join(f"{axis} {condition.text}" for axis, condition in value.requires.items())


def build_of(value: Value) -> str:
    """Return the environment and the flags of a value's builds, in the manner of a shell."""
    settings = value.settings
    words = [f"{name}={text}" for name, text in settings.environment.items()]
    words += [f"{name}+={' '.join(flags)}" for name, flags in settings.flags.items()]
    words += [f"flags.{name}+={' '.join(flags)}" for name, flags in settings.compiler_flags.items()]
    return "; ".join(words)


def examine(
    matrix: Matrix,
    variants: Sequence[Variant],
    machines: Sequence[Machine],
    known: Sequence[Machine],
    enabled: Sequence[str] = (),
) -> Release:
    """Return *variants* of *matrix* as *machines* see them.

    Args:
        matrix: the file.
        variants: of it, at least one.
        machines: that variants are chosen for, at least one.
        known: all machines that show what can be answered to the questions of a decision tree.
        enabled: optional namespaces that are enabled in any case.

    Raises:
        VariantError: an enabled namespace that is not an optional one of the matrix.
        MatrixError: a label or property that the matrix itself rules out.
    """
    metadata = metadata_of(matrix, variants)
    providers = metadata.providers
    optional = tuple(n for n in metadata.namespaces if n in providers and providers[n].optional)
    if unknown := [namespace for namespace in enabled if namespace not in optional]:
        raise VariantError(
            f"{shortened(unknown[0])} is not an optional namespace of {matrix.source}; "
            f"there are: {', '.join(optional) or 'none'}"
        )
    choices = tuple(Choice(machine, machine.rank(metadata, enabled)) for machine in machines)
    grower = Grower(metadata, [machine.platform for machine in (*known, *machines)])
    tree, problem = None, ""
    try:
        tree = grower.grow(enabled)
    except TreeTooLarge as error:
        problem = str(error)
    else:
        ends = ((c, tree.end(c.ranking.platform)) for c in choices)
        if unlike := [c.machine.name for c, end in ends if end != (c.label or NO_VARIANT)]:
            problem = (
                f"Does not hold for {', '.join(unlike)}, which list what they support in "
                "another order than other machines."
            )
    chosen = {choice.label for choice in choices}
    unchosen = {
        variant.label: why_unchosen(variant.label, choices, grower.ladders)
        for variant in variants
        if variant.label not in chosen
    }
    return Release(matrix, distinct(variants), choices, unchosen, optional, tree, problem)


def document(
    form: str,
    chosen: Sequence[tuple[Matrix, Sequence[Variant]]],
    wanted: Sequence[str] = (),
    enabled: Sequence[str] = (),
) -> str:
    """Return which machines get which variants, in the format *form*, one of `DOCUMENTS`.

    Args:
        form: the format.
        chosen: matrices with some of their variants; exactly one for formats that are not among
            `SEVERAL`.
        wanted: machines, see `read_machines`.
        enabled: optional namespaces that are enabled.

    Raises:
        VariantError: the release cannot be shown in this format.
    """
    known, machines = read_machines(), read_machines(wanted)
    releases = [examine(*each, machines, known, enabled) for each in chosen]
    release = releases[0]
    if form == "mermaid":
        if release.tree is None:
            raise VariantError(f"{release.matrix.source}: {release.problem}")
        chart = flowchart(release.tree)
        if not is_drawn(chart):
            warn(
                f"Mermaid draws at most {MAXIMUM_ARROWS} arrows and {MAXIMUM_TEXT:,} characters "
                "by default: select variants with --only, or use --format html"
            )
        return chart
    return rendered(
        "release.html" if form == "html" else "release.md",
        releases=releases,
        release=release,
        new_values=new_values,
        requires_of=requires_of,
        build_of=build_of,
        flowchart=flowchart,
        is_drawn=is_drawn,
        NO_VARIANT=NO_VARIANT,
        OUTCOMES=OUTCOMES,
        SCOPE=SCOPE,
    )


def new_values(releases: Sequence[Release]) -> Iterator[tuple[Release, str]]:
    """Yield each release, and the values of its axes that the one before has not.

    Versions are left out, which documents name anyway.
    """
    before = None
    for release in releases:
        used = [value.name for axis in release.matrix.axes for value, _ in release.used(axis)]
        values = [name for name in used if not name[:1].isdigit()]
        yield release, ", ".join(name for name in values if name not in (before or values))
        before = values
