"""The contents of a matrix file, validated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from packaging.markers import Marker

from pep_variants.errors import VariantError
from pep_variants.metadata import Metadata, Property

from .._tables import TableError


class BuildError(VariantError):
    """A build that failed, or cannot start.

    Attributes:
        tail: the last lines of its log.
    """

    def __init__(self, message: str, tail: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.tail = tuple(tail)


Where = Mapping[str, tuple[str, ...]]
"""Conditions by axis, all of which have to hold: the names of the values that match."""


def holds(where: Where, values: Mapping[str, Value], *, missing: bool = False) -> bool:
    """Return whether all conditions of *where* hold for *values*, by axis.

    Args:
        where: conditions.
        values: the value of each axis, perhaps of some axes only.
        missing: whether a condition on an axis without a value counts as met.
    """
    return all(
        values[axis].name in names if axis in values else missing for axis, names in where.items()
    )


@dataclass(frozen=True)
class VariantSettings:
    """Settings that a value of an axis, or an override, contributes to its variants.

    Attributes:
        properties: of the wheel; several values of one feature are alternatives.
        environment: environment variables of the build.
        flags: words that are appended to a variable, such as ``CFLAGS``.
        config_settings: for the build backend (PEP 517); a key may have several values.
        ci: options of the CI job, e.g. the machine that it runs on.
        compiler_flags: words by language that compilers get in addition, see `flags`.
    """

    properties: tuple[Property, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    flags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    config_settings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ci: Mapping[str, str] = field(default_factory=dict)
    compiler_flags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Value:
    """One value of an axis.

    Attributes:
        name: its name in the file; may be a version.
        label: its part of the label; may be empty.
        title: description; may be empty.
        requires: conditions on the values of other axes.
        host: environment marker of machines that can build it; None for any machine.
        settings: its settings.
        about: facts for people, by their name.
    """

    name: str
    label: str
    title: str = ""
    requires: Where = field(default_factory=dict)
    host: Marker | None = None
    settings: VariantSettings = field(default_factory=VariantSettings)
    about: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Override:
    """Settings for a combination of values, which replace those of the single values.

    Attributes:
        where: conditions on the values; empty for all variants.
        label: their label instead of the joined one, None to keep it.
        settings: replacements, by feature and by name.
    """

    where: Where
    label: str | None = None
    settings: VariantSettings = field(default_factory=VariantSettings)


@dataclass(frozen=True)
class After:
    """Another project that the variants are built against: one entry of ``build.after``.

    Attributes:
        project: its normalized name.
        matrix: its matrix file.
        axes: axes whose values have to agree, None for all that both have.
        abi: components of its release that ``abi_dependency`` has, 0 for no such property.
    """

    project: str
    matrix: Path
    axes: tuple[str, ...] | None = None
    abi: int = 2


@dataclass(frozen=True)
class Build:
    """How the variants of a matrix are built: the table ``[build]``.

    Attributes:
        source: source tree or source distribution to build.
        after: projects that it is built against.
        test: command that is run with each wheel that was built, word by word; empty for none.
    """

    source: Path
    after: tuple[After, ...] = ()
    test: tuple[str, ...] = ()


@dataclass(frozen=True)
class Matrix:
    """A matrix file.

    Attributes:
        source: the file, for messages.
        project: namespaces and providers of all variants.
        axes: values by name of the axis, both in their order.
        label: axes whose parts are joined to the label, in order.
        exclude: combinations that are not variants.
        override: overrides; later ones win.
        build: how the variants are built.
        name: normalized name of the project; empty if the file does not say.
        about: facts for people, by their name.
    """

    source: str
    project: Metadata
    axes: Mapping[str, tuple[Value, ...]]
    label: tuple[str, ...]
    exclude: tuple[Where, ...]
    override: tuple[Override, ...]
    build: Build
    name: str = ""
    about: Mapping[str, str] = field(default_factory=dict)

    def error(self, path: str, problem: str) -> TableError:
        """Return the error for *problem* at *path* in the file."""
        return TableError(self.source, path, problem)


@dataclass(frozen=True)
class Variant:
    """One combination of the matrix: a wheel to build.

    Attributes:
        label: its label.
        values: the value of each axis.
        settings: combined settings of the values.
    """

    label: str
    values: Mapping[str, Value]
    settings: VariantSettings

    @property
    def title(self) -> str:
        """Description, may be empty."""
        return "; ".join(value.title for value in self.values.values() if value.title)

    @property
    def hosts(self) -> tuple[Marker, ...]:
        """Environment markers of machines that can build it."""
        return tuple(value.host for value in self.values.values() if value.host is not None)
