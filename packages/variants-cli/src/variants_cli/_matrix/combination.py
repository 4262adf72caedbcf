"""From the axes of a matrix to its variants, and to some of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pep_variants import limits
from pep_variants import metadata as variant_metadata
from pep_variants.errors import VariantError, shortened
from pep_variants.metadata import Metadata, Properties, Property

from .._description import add_variant
from .model import After, Matrix, Override, Value, Variant, VariantSettings, holds
from .reading import read_matrix


def combine(matrix: Matrix) -> tuple[Variant, ...]:
    """Return the variants of *matrix*: values in their order, the last axis changing fastest.

    Raises:
        TableError: there are none, two values contradict each other, or two variants have one
            label.
    """
    variants: dict[str, Variant] = {}
    for chosen in _combinations(matrix):
        variant = _variant(matrix, chosen)
        other = variants.setdefault(variant.label, variant)
        if other is not variant:
            raise matrix.error(
                "label",
                f"{_named(other.values)} and {_named(chosen)} both have the label "
                f"{variant.label!r}: give their values different parts, or exclude one",
            )
    if not variants:
        raise matrix.error("axes", "no combination remains: check 'requires' and 'exclude'")
    return tuple(variants.values())


def select(variants: Sequence[Variant], wanted: Sequence[str]) -> tuple[Variant, ...]:
    """Return those of *variants* that are *wanted*.

    Args:
        variants: all of them.
        wanted: labels or patterns of them (``sm90_*``), any of which has to
            match; and ``axis=value``, one of which has to match for each axis named. Nothing for
            all.

    Raises:
        VariantError: something that matches nothing, or all together do.
    """
    groups: dict[str, list[str]] = {}
    for text in wanted:
        axis, _, name = text.rpartition("=")
        if not any(_is_named(variant, axis, name) for variant in variants):
            names = [variant.label for variant in variants]
            raise VariantError(
                f"{shortened(text)} matches no variant: {', '.join(names[:8])}"
                + (", …" if len(names) > 8 else "")
            )
        groups.setdefault(axis, []).append(name)
    selected = tuple(
        variant
        for variant in variants
        if all(
            any(_is_named(variant, axis, name) for name in names) for axis, names in groups.items()
        )
    )
    if not selected:
        raise VariantError(f"no variant matches all of {', '.join(wanted)}")
    return selected


def _is_named(variant: Variant, axis: str, name: str) -> bool:
    """Return whether *name* is that of the value of *axis*, or without one a pattern of labels."""
    if axis:
        return axis in variant.values and variant.values[axis].name == name
    return fnmatchcase(variant.label, name)


def metadata_of(matrix: Matrix, variants: Iterable[Variant]) -> Metadata:
    """Return the metadata of *variants*.

    Raises:
        TableError: a label or property that the project rules out.
    """
    listed: dict[str, Properties] = {}
    for variant in variants:
        try:
            found = add_variant(matrix.project, variant.label, variant.settings.properties)
        except VariantError as error:
            raise matrix.error(_named(variant.values), str(error)) from None
        listed.update(found.variants)
    return replace(matrix.project, variants=listed)


def _combinations(matrix: Matrix) -> list[dict[str, Value]]:
    """Return the combinations of the axes, pruned as soon as a condition excludes them."""
    combinations: list[dict[str, Value]] = [{}]
    checks = 0
    others = len(matrix.exclude) + len(matrix.override)
    for number, (axis, values) in enumerate(matrix.axes.items(), 1):
        checks += len(combinations) * len(values) * (number + others)
        if checks > limits.MATRIX_CHECKS:
            raise matrix.error(
                "axes",
                f"their combinations need {checks} checks of conditions, at most "
                f"{limits.MATRIX_CHECKS} are made: leave out values, or exclude some earlier",
            )
        longer = ({**chosen, axis: value} for chosen in combinations for value in values)
        combinations = [chosen for chosen in longer if _possible(matrix, chosen)]
    return combinations


def _possible(matrix: Matrix, values: Mapping[str, Value]) -> bool:
    """Return whether no condition excludes *values*, which may be of some axes only."""
    return all(
        holds(value.requires, values, missing=True) for value in values.values()
    ) and not any(holds(where, values) for where in matrix.exclude)


def _variant(matrix: Matrix, values: Mapping[str, Value]) -> Variant:
    overrides = [item for item in matrix.override if holds(item.where, values)]
    label = "_".join(part for axis in matrix.label if (part := values[axis].label))
    for override in overrides:
        label = override.label or label
    if not label:
        raise matrix.error(
            "label", f"{_named(values)} has an empty label: give one of these values a label"
        )
    return Variant(label, values, _settings(matrix, values, overrides))


def _settings(
    matrix: Matrix, values: Mapping[str, Value], overrides: Sequence[Override]
) -> VariantSettings:
    given = [(axis, value.settings) for axis, value in values.items()]
    last = [override.settings for override in overrides]

    def joined(kind: str) -> dict[str, Any]:
        """Return the settings of one kind of all values; overrides settle contradictions."""
        settled = {name: item for settings in last for name, item in _named_of(settings, kind)}
        found: dict[str, Any] = {}
        giver: dict[str, str] = {}
        for axis, settings in given:
            for name, item in _named_of(settings, kind):
                if found.setdefault(name, item) != item and name not in settled:
                    raise matrix.error(
                        _named(values),
                        f"{kind.replace('_', '-')}: axes {giver[name]!r} and {axis!r} both set "
                        f"{name!r}: set it in one of them, or add an [[override]]",
                    )
                giver[name] = axis
        return {**found, **settled}

    def appended(kind: str) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        for settings in (*(settings for _, settings in given), *last):
            for name, words in _named_of(settings, kind):
                found[name] = (*found.get(name, ()), *words)
        return found

    environment, flags = joined("environment"), appended("flags")
    for name in {name for settings in last for name in settings.environment}:
        flags.pop(name, None)  # replaced as a whole
    if both := sorted(environment.keys() & flags.keys()):
        raise matrix.error(
            _named(values),
            f"{both[0]} is set by one value and appended to by another: use lists in both",
        )
    return VariantSettings(
        tuple(itertools.chain.from_iterable(joined("properties").values())),
        environment,
        flags,
        joined("config_settings"),
        joined("ci"),
        appended("compiler_flags"),
    )


def _named_of(settings: VariantSettings, kind: str) -> Iterable[tuple[str, Any]]:
    """Return the settings of one kind with their names; those of properties are the features."""
    if kind != "properties":
        found: Mapping[str, Any] = getattr(settings, kind)
        return found.items()
    return [
        (
            f"{namespace} :: {feature}",
            tuple(Property(namespace, feature, value) for value in values),
        )
        for namespace, features in variant_metadata.group_properties(settings.properties).items()
        for feature, values in features.items()
    ]


def _named(values: Mapping[str, Value]) -> str:
    return ", ".join(f"{axis}={value.name}" for axis, value in values.items())


# Two projects: torchvision is built against torch, and each of its variants against the one of
# torch that is for the same CUDA version: the variants whose axes agree.


def built_against(matrix: Matrix, variants: Sequence[Variant], after: After) -> dict[str, Variant]:
    """Return the variant of another project that each of *variants* is built against, by label.

    The axes that both have agree, or those of *after*. Of several variants, the first one is taken
    that agrees in most axes.

    Args:
        matrix: of *variants*.
        variants: some of its variants.
        after: the other project.

    Raises:
        TableError: the matrix of the other project is not valid, or a variant agrees with none.
        OSError: it cannot be read.
    """
    path, other = f"build.after.{after.project}", read_matrix(after.matrix)
    if other.name not in ("", after.project):
        raise matrix.error(f"{path}.matrix", f"{other.source} is the matrix of {other.name}")
    others = combine(other)
    common = [axis for axis in variants[0].values if axis in others[0].values]
    axes = common if after.axes is None else after.axes
    for axis in axes:
        if axis not in common:
            problem = f"{axis!r} is not an axis of both; those are {', '.join(common) or 'none'}"
            raise matrix.error(f"{path}.axes", problem)
    found = {}
    for variant in variants:

        def agreement(other: Variant, own: Variant = variant) -> int:
            """Return the number of axes that agree, -1 if those do not that have to."""
            same = {axis for axis in common if own.values[axis].name == other.values[axis].name}
            return len(same) if same.issuperset(axes) else -1

        best = max(others, key=agreement)
        if agreement(best) < 0:
            raise matrix.error(
                path,
                f"no variant of {after.project} agrees with {variant.label} in "
                f"{', '.join(axes) or 'anything'}: exclude it, or let fewer axes agree with "
                f"{path}.axes",
            )
        found[variant.label] = best
    return found


# Wheels that something else built.


def label_wheels(
    variants: Sequence[Variant], selected: Sequence[Variant], wheels: Iterable[Path]
) -> list[tuple[Path, Variant]]:
    """Return each of *wheels* with the variant that it is.

    That is the one selected label, or, where several are, the one that the wheel's folder is
    named by, as artifacts of CI jobs are: ``cu129_sm90/``.

    Args:
        variants: all of the matrix.
        selected: those that are meant.
        wheels: plain wheels.

    Raises:
        VariantError: it is not certain which variant a wheel is.
    """
    found = []
    for wheel in wheels:
        folder = wheel.absolute().parent.name
        builds = [v for v in selected if len(selected) == 1 or folder == v.label]
        if not builds:
            raise VariantError(
                f"{wheel}: its folder {folder!r} is not the name of a selected variant: name "
                f"the variant with --only, such as --only {variants[0].label}"
            )
        found.append((wheel, builds[0]))
    return found
