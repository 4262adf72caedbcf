"""What a matrix file says, checked and without its syntax."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from packaging.markers import Marker
from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from pep_variants.errors import VariantError, redacted
from pep_variants.metadata import Metadata
from pep_variants.property import Property


class MatrixError(VariantError):
    """A matrix file that cannot be used.

    Attributes:
        source: the file.
        path: place inside it, e.g. ``axes.gpu.sm90.requires``; empty for the whole file.
        problem: what is wrong, with the value and the way out.
    """

    def __init__(self, source: str, path: str, problem: str) -> None:
        self.source = redacted(source)
        self.path = path
        self.problem = problem
        super().__init__(": ".join(part for part in (self.source, path, problem) if part))


@dataclass(frozen=True)
class Condition:
    """Which values of an axis are meant.

    Attributes:
        names: any of these; empty if `versions` says it.
        versions: those whose name is a version in this set.
    """

    names: tuple[str, ...] = ()
    versions: SpecifierSet | None = None

    def matches(self, name: str) -> bool:
        """Tell whether the value *name* is meant. What is no version is in no set of versions."""
        if self.versions is None:
            return name in self.names
        try:
            return self.versions.contains(Version(name), prereleases=True)
        except InvalidVersion:
            return False


Where = Mapping[str, Condition]
"""Conditions by axis, all of which have to hold."""


@dataclass(frozen=True)
class Settings:
    """What a value of an axis, or an override, gives the variants that have it.

    Attributes:
        properties: what the wheel needs; several values of one feature are alternatives.
        environment: variables of the build that are set.
        flags: words that are appended to a variable of the build (``CFLAGS``).
        config_settings: what the build backend is told (PEP 517); a key may have several values.
        ci: what a CI service is told of the job, e.g. which machine it runs on.
    """

    properties: tuple[Property, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    flags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    config_settings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ci: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Value:
    """One value of an axis.

    Attributes:
        name: as other parts of the file call it; a version, perhaps.
        label: its part of the label; empty for none.
        title: what it is, for people; may be empty.
        requires: which values of other axes it goes with.
        host: a marker that has to hold on the machine that builds; None for any machine.
        settings: what it gives.
    """

    name: str
    label: str
    title: str = ""
    requires: Where = field(default_factory=dict)
    host: Marker | None = None
    settings: Settings = field(default_factory=Settings)


@dataclass(frozen=True)
class Override:
    """What replaces the settings of the values where several of them come together.

    Attributes:
        where: for which variants; empty for all.
        label: their label instead of the joined one, None to keep it.
        settings: what replaces that of the values, feature by feature and name by name.
    """

    where: Where
    label: str | None = None
    settings: Settings = field(default_factory=Settings)


@dataclass(frozen=True)
class Matrix:
    """A matrix file.

    Attributes:
        source: the file, for messages.
        project: what all variants have in common: namespaces and providers.
        axes: values by name of the axis, both in their order.
        label: axes whose parts are joined to the label, in order.
        exclude: combinations that there are not.
        override: corrections, later ones count.
        build_source: source tree or source distribution to build.
        backend: build backend that writes variant metadata itself, empty if none does.
        repair: words of the command that repairs a wheel before it is packed, by `sys.platform`,
            see `repairing`.
    """

    source: str
    project: Metadata
    axes: Mapping[str, tuple[Value, ...]]
    label: tuple[str, ...]
    exclude: tuple[Where, ...]
    override: tuple[Override, ...]
    build_source: Path
    backend: str = ""
    repair: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Variant:
    """One combination of the matrix.

    Attributes:
        label: its label.
        values: the value of each axis.
        settings: what they give together.
    """

    label: str
    values: Mapping[str, Value]
    settings: Settings

    @property
    def title(self) -> str:
        """What it is, for people; may be empty."""
        return "; ".join(value.title for value in self.values.values() if value.title)

    @property
    def hosts(self) -> tuple[Marker, ...]:
        """The markers that have to hold on the machine that builds it."""
        return tuple(value.host for value in self.values.values() if value.host is not None)
