"""Choosing variant wheels in a lock file (PEP 751; PEP 825, "Integration with pylock.toml").

A locked package may list wheels of several variants; its table ``variants-json`` has their
metadata. `select_packages` chooses the wheel of each package for a machine, and, where the file has
our tables, which packages the chosen variants need. `packaging.pylock` does everything else of
PEP 751 with `LockSelection.tree`, which has no labels.

The table is the variant metadata of a version as its index has it, in the same generation of the
format, converted from JSON. Unlike a file on an index, it must conform to the schema that it names,
and installers must check that.

Nothing is fetched. Evaluating markers of lock files needs `packaging` 25.0 or newer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from packaging.markers import InvalidMarker as Invalid
from packaging.markers import Marker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from .._choose.abi import abi_dependencies, supporting
from .._choose.explanation import why_not
from .._choose.preferences import Preferences, unique
from .._choose.rejections import why_this
from .._choose.selection import File, Selection, missing_variant, select
from .._formats.reader import metadata_from_tree
from .._formats.writer import write_metadata
from .._model.generation import V0_0_2, V0_0_3, V0_1_0, V0_1_1, Generation, schema_version
from ..errors import InvalidMarker, LockError, MetadataError, shortened
from ..labels import NULL_LABEL, ZERO_LABEL
from ..markers import NON_VARIANT, VariantContext, reduce_requirement
from .groups import FAULTS, GroupChoice, choose_group
from .wheels import KEY, Table, filename_of, labels_of, own_table, plainly_named, unlabelled

if TYPE_CHECKING:
    from packaging.tags import Tag

    from .._model.metadata import Metadata
    from .._model.platform import Platform

REQUIREMENTS = "requirements"
"""In ``[tool.pep-variants]``: names, with extras, of the requested packages."""

REQUIRES_DIST = "requires-dist"
"""In ``[packages.tool.pep-variants]``: list of ``Requires-Dist`` values, or a table of lists by
variant label (empty for non-variant files) where they differ. Only for packages with variant
markers or extras; the others have ``dependencies``."""


@dataclass(frozen=True)
class Machine:
    """The machine that packages are installed on.

    Attributes:
        environment: values of the environment markers.
        tags: platform compatibility tags, most preferred first.
        name: for messages.
    """

    environment: Mapping[str, str]
    tags: Sequence[Tag]
    name: str = "this machine"


@dataclass(frozen=True)
class LockChoice:
    """The choice among the files of a package that lists variant wheels.

    Attributes:
        name: project name, as in the file.
        version: as in the file, empty without one.
        wheel: the chosen wheel, None for the source distribution.
        filename: of the wheel with its label, empty without a wheel.
        selection: the verdicts on all wheels.
        metadata: variant metadata of the package, None for a non-variant wheel.
        table: the same, as it is in the file.
        context: for evaluating variant markers of the package.
        why: why this wheel was chosen.
    """

    name: str
    version: str
    wheel: Table | None
    filename: str
    selection: Selection[Table]
    metadata: Metadata | None
    table: Table | None
    context: VariantContext
    why: str

    @property
    def label(self) -> str | None:
        """Variant label, None for a non-variant wheel and for a source distribution."""
        return self.context.label or None


@dataclass(frozen=True)
class LockSelection:
    """The part of a lock file for one machine.

    Attributes:
        tree: the file with the packages that the machine needs. Packages with variant wheels have
            the chosen wheel alone, its ``name`` without the label, and no ``variants-json``.
        choices: what was chosen, by position in the packages of `tree`.
        groups: the dependency groups of these packages.
        group: the one of them that is for this machine, None in a file without such groups.
    """

    tree: Mapping[str, Any]
    choices: Mapping[int, LockChoice]
    groups: frozenset[str] = frozenset()
    group: GroupChoice | None = None


def select_packages(
    tree: Mapping[str, Any],
    source: str,
    machine: Machine,
    platform: Callable[[Metadata], Platform],
    preferences: Preferences | None = None,
    *,
    extras: Collection[str] = (),
    groups: Collection[str] | None = None,
    from_source: Callable[[str], bool] = lambda _: False,
) -> LockSelection:
    """Return the packages that *machine* installs from a lock file.

    A package whose ``variants-json`` is missing or breaks its schema keeps its other files; the
    problem is in `LockChoice.selection`.

    Args:
        tree: the file, as parsed from TOML; valid, as `packaging.pylock` sees it without labels.
        source: where it is from, for messages; may be empty.
        machine: the machine.
        platform: gives the supported values for metadata, e.g. `Detector.platform`.
        preferences: what the user asked for about variants.
        extras: extras of the lock file to install.
        groups: dependency groups to install; None for the default ones. Of those that are for
            kinds of machines, the one that fits best is added unless one is named.
        from_source: whether a project is built from its source distribution if it has one.

    Raises:
        LockError: a package that is needed has no file for this machine, or no group is for it;
            names the package, or the groups.
        VariantError: a forced label does not exist or does not fit.
    """
    preferences = preferences or Preferences()
    group = choose_group(tree, source, machine.environment, platform, preferences, groups or ())
    groups = frozenset(tree.get("default-groups", ()) if groups is None else groups)
    if group is not None:
        groups |= {group.name}
    selection = _Selector(
        tree,
        source,
        machine,
        platform,
        preferences,
        frozenset(extras),
        groups,
        from_source,
        tree.get("packages", ()),
        () if group is None else group.projects,
    ).select()
    return replace(selection, groups=groups, group=group)


@dataclass
class _Selector:
    """One selection: the arguments of `select_packages`, and the choices so far by package."""

    _tree: Mapping[str, Any]
    _source: str
    _machine: Machine
    _platform: Callable[[Metadata], Platform]
    _preferences: Preferences
    _extras: frozenset[str]
    _groups: frozenset[str]
    _from_source: Callable[[str], bool]
    _packages: Sequence[Any]
    _grouped: Collection[str]
    _choices: dict[int, LockChoice | None] = field(default_factory=dict)

    def select(self) -> LockSelection:
        present = [number for number in range(len(self._packages)) if self._applies(number)]
        needed = sorted(self._needed(present))
        packages = [self._settled(number) for number in needed]
        choices = {
            place: choice
            for place, number in enumerate(needed)
            for choice in [self._choices.get(number)]
            if choice is not None
        }
        return LockSelection({**self._tree, "packages": packages}, choices)

    def _applies(self, number: int) -> bool:
        package = self._packages[number]
        marker = package.get("marker") if isinstance(package, Mapping) else None
        if not isinstance(marker, str):
            return True
        try:
            return Marker(marker).evaluate(
                {
                    **self._machine.environment,
                    "extras": self._extras,
                    "dependency_groups": self._groups,
                },
                context="lock_file",
            )
        except (Invalid, ValueError):  # the latter of thousands of digits
            return True  # for `packaging` to report

    def _needed(self, present: Sequence[int]) -> set[int]:
        """Return the packages that the chosen variants need; all, without our table."""
        asked = own_table(self._tree).get(REQUIREMENTS)
        if not isinstance(asked, list):
            return set(present)
        by_name: dict[str, list[int]] = {}
        for number in present:
            by_name.setdefault(self._name(number), []).append(number)
        waiting = [need for text in asked for need in self._needs(str(text), self._source)]
        found: set[tuple[int, str]] = set()
        while waiting:
            name, extra = waiting.pop()
            for number in by_name.get(name, ()):
                if (number, extra) not in found:
                    found.add((number, extra))
                    waiting += self._depends(number, extra)
        return {number for number, _ in found}

    def _depends(self, number: int, extra: str) -> list[tuple[str, str]]:
        """Return project and extra of the dependencies of a package, or of an extra of it."""
        package = self._packages[number]
        requires = own_table(package).get(REQUIRES_DIST)
        if requires is None:
            listed = package.get("dependencies", ())
            return [(str(item.get("name")), "") for item in listed if isinstance(item, Mapping)]
        choice = self._choose(number)
        context = NON_VARIANT if choice is None else choice.context
        if isinstance(requires, Mapping):
            requires = requires.get(context.label, [])
        needs = []
        for text in requires if isinstance(requires, list) else ():
            try:
                reduced = reduce_requirement(str(text), context)
            except InvalidMarker as error:
                raise LockError(f"{self._place(number)}: {error}") from None
            if reduced is not None:
                needs += self._needs(reduced, self._place(number), extra)
        return needs

    def _needs(self, text: str, place: str, extra: str = "") -> list[tuple[str, str]]:
        try:
            requirement = Requirement(text)
            marker = requirement.marker
            environment = {**self._machine.environment, "extra": extra}
            if marker is not None and not marker.evaluate(environment):
                return []
        except (InvalidRequirement, ValueError) as error:
            raise LockError(f"{place}: {' '.join(str(error).split())}") from None
        name = canonicalize_name(requirement.name)
        return [(name, item) for item in ("", *map(canonicalize_name, requirement.extras))]

    def _choose(self, number: int) -> LockChoice | None:
        """Return the choice for a package, None if it lists no variant wheels."""
        if number not in self._choices:
            package = self._packages[number]
            name = self._name(number)
            # The label that the user forces may be missing from the file.
            concerned = any(labels_of(package)) or (
                self._preferences.use_variants
                and bool(self._preferences.forced.get(name))
                and name not in self._grouped
                and bool(package.get("wheels") or package.get("sdist"))
            )
            if "sdist" in package and self._from_source(name):
                concerned = False
            self._choices[number] = self._chosen(number) if concerned else None
        return self._choices[number]

    def _chosen(self, number: int) -> LockChoice:
        package, name, place = self._packages[number], self._name(number), self._place(number)
        version = str(package.get("version") or "")

        def metadata(source: str) -> Metadata:
            if KEY not in package:
                raise MetadataError(place, "", f"lists variant wheels, but no {KEY}")
            return read_table(package[KEY], source)

        source = f"{place}: {KEY}"
        wheels = package.get("wheels") or ()
        files = [File(filename_of(wheel), source, wheel) for wheel in wheels]
        selection = select(
            files,
            metadata=metadata,
            platform=lambda read: supporting(self._platform(read), read, self._version),
            preferences=self._preferences,
            project=name,
            tags=self._machine.tags,
        )
        file = next((item for item in selection.files if self._goes_with(item, selection)), None)
        if file is None:
            missing = missing_variant(name, [(version, selection, files)])
            if missing is not None:
                raise missing
            if "sdist" not in package:
                raise LockError(f"{place}: {self._nothing_fits(selection, files)}")
            return LockChoice(name, version, None, "", selection, None, None, NON_VARIANT, "")
        ranking = selection.rankings.get(file.source)
        known = ranking.metadata if ranking is not None and file.label is not None else None
        why = why_this(selection, file, name)
        context = selection.context(file)
        return LockChoice(
            name=name,
            version=version,
            wheel=file.item,
            filename=file.filename,
            selection=selection,
            metadata=known,
            table=None if known is None else package[KEY],
            context=context,
            why=why,
        )

    def _nothing_fits(self, selection: Selection[Table], files: Sequence[File[Table]]) -> str:
        """Return why no wheel of a package without a source distribution fits."""
        if not self._preferences.use_variants and all(file.label for file in files):
            return (
                "only variant wheels of it are locked, and --no-variants leaves them out: "
                "install without that option, or lock a non-variant wheel too"
            )
        if selection.problems:
            (problem,) = selection.problems.values()
            return f"its variant wheels cannot be used, and nothing else of it is locked: {problem}"
        reasons = unique((*_built_against(selection), *_rejections(selection)))
        if selection.unknown:
            reasons = (*reasons, f"{KEY} does not know {', '.join(selection.unknown)}")
        return (
            f"none of its wheels fits {self._machine.name}: "
            f"{'; '.join(reasons) or 'they are for other platforms'}"
        )

    def _version(self, project: str) -> str | None:
        """Return the version of a project in the lock file for the machine, None without one."""
        for number in range(len(self._packages)):
            if self._name(number) == project and self._applies(number):
                version = self._packages[number].get("version")
                return None if version is None else str(version)
        return None

    def _goes_with(self, file: File[Table], selection: Selection[Table]) -> bool:
        """Return whether the lock file has the versions that a wheel is built against."""
        ranking = selection.rankings.get(file.source)
        if file.label is None or ranking is None:
            return True
        label = ranking.metadata.label_of(file.label)
        return all(
            version is None or item.allows(version)
            for item in abi_dependencies(ranking.metadata.properties_of(label) or {})
            for version in [self._version(item.project)]
        )

    def _settled(self, number: int) -> Any:  # noqa: ANN401
        """Return a package with the chosen wheel only."""
        package = self._packages[number]
        if not isinstance(package, Mapping):
            return package
        choice = self._choose(number)
        if choice is None:
            if not any(labels_of(package)):
                return package
            plain = unlabelled(package)  # it is built from source
            del plain["wheels"]
            return plain
        settled = {key: item for key, item in package.items() if key not in (KEY, "wheels")}
        if choice.wheel is not None:
            settled["wheels"] = [plainly_named(choice.wheel)]
        return settled

    def _name(self, number: int) -> str:
        package = self._packages[number]
        return str(package.get("name")) if isinstance(package, Mapping) else ""

    def _place(self, number: int) -> str:
        place = f"packages[{number}] ({shortened(self._name(number))[1:-1]})"
        return f"{self._source}: {place}" if self._source else place


def _built_against(selection: Selection[Any]) -> Iterator[str]:
    for file in selection.files:
        ranking = selection.rankings.get(file.source)
        if file.label is not None and ranking is not None:
            properties = ranking.metadata.properties_of(ranking.metadata.label_of(file.label))
            for item in abi_dependencies(properties or {}):
                yield f"{file.label} is built against {item}"


def _rejections(selection: Selection[Any]) -> Iterator[str]:
    for ranking in selection.rankings.values():
        for label in ranking.rejected_labels:
            for reason in why_not(ranking, label):
                yield f"{label} {reason}"


_PUBLISHED = (V0_0_2, V0_0_3, V0_1_0, V0_1_1)
"""Generations with published schemas. The format of providers after these ignores unknown keys."""


def read_table(table: object, source: str) -> Metadata:
    """Read the table and check it against the schema that it names.

    Args:
        table: as parsed from TOML.
        source: file and package, for messages.

    Raises:
        MetadataError: it breaks the format, lacks a key that its schema requires, has one that it
            does not allow, or lists a value twice.
    """
    metadata = metadata_from_tree(table, source)
    generation = _published(table)
    if generation is None or not isinstance(table, Mapping):
        return metadata
    for key in generation.keys:
        if key not in table and key != "static-properties":
            raise MetadataError(source, key, "is missing: the schema requires it")
    priorities = table["default-priorities"]
    if "namespace" not in priorities:
        path = "default-priorities.namespace"
        raise MetadataError(source, path, "is missing: the schema requires it")
    if not generation.providers:  # else any other keys are allowed
        _check_keys(table, generation.keys, "", source)
    _check_keys(priorities, generation.priority_keys, "default-priorities.", source)
    for namespace, provider in table.get("providers", {}).items() if generation.providers else ():
        _check_keys(provider, generation.provider_keys, f"providers.{namespace}.", source)
    for label, properties in table["variants"].items():
        for namespace, features in properties.items():
            for feature, values in features.items():
                if len(set(values)) != len(values):
                    path = f"variants.{label}.{namespace}.{feature}"
                    raise MetadataError(source, path, f"lists a value twice: {shortened(values)}")
    return metadata


def build_table(metadata: Metadata, label: str) -> dict[str, Any]:
    """Return the table of a package whose only build is *label*, with its known faults."""
    table = write_table([json.loads(write_metadata(metadata))], [label])
    faults = {str(item): text for item, text in metadata.faults.get(label, {}).items()}
    return {**table, **({FAULTS: {label: faults}} if faults else {})}


def write_table(documents: Iterable[Mapping[str, Any]], labels: Collection[str]) -> dict[str, Any]:
    """Return the table of a package whose wheels have *labels*.

    ``$schema`` and the properties of these labels are kept as they are. Other labels, keys that the
    schema does not allow, and JSON's null, which TOML lacks, are left out.

    Args:
        documents: the version's ``*-variants.json``; or, without such a file, the ``variant.json``
            of its wheels, which must not contradict each other (see `formats.merging`).
        labels: as in the filenames.
    """
    document = reduce(_union, documents)
    generation = _published(document)
    table = {key: _converted(value) for key, value in document.items() if value is not None}
    if generation is not None:
        if not generation.providers:
            table = _kept(table, generation.keys)
        priorities = table.get("default-priorities", {})
        table["default-priorities"] = _kept(priorities, generation.priority_keys)
        if generation.providers:
            table["providers"] = {
                namespace: _kept(provider, generation.provider_keys)
                for namespace, provider in table.get("providers", {}).items()
            }
    null = {NULL_LABEL, ZERO_LABEL}
    spellings = null | set(labels) if null & set(labels) else set(labels)
    table["variants"] = {
        label: _sets(properties)
        for label, properties in sorted(table.get("variants", {}).items())
        if label in spellings
    }
    return table


def _published(table: object) -> Generation | None:
    """Return the generation whose published schema *table* names; None for another or none."""
    schema = table.get("$schema") if isinstance(table, Mapping) else None
    version = schema_version(schema) if isinstance(schema, str) else None
    return next((item for item in _PUBLISHED if item.version == version), None)


def _check_keys(table: Mapping[str, Any], allowed: Collection[str], path: str, source: str) -> None:
    for key in table:
        if key not in allowed:
            shown = shortened(key, 40)[1:-1]
            raise MetadataError(source, f"{path}{shown}", "the schema has no such key")


def _kept(table: Mapping[str, Any], allowed: Collection[str]) -> dict[str, Any]:
    return {key: value for key, value in table.items() if key in allowed}


def _converted(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, Mapping):
        return {key: _converted(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_converted(item) for item in value if item is not None]
    return value


def _sets(value: Any) -> Any:  # noqa: ANN401
    """Return the properties of a variant without duplicate values."""
    if isinstance(value, Mapping):
        return {key: _sets(item) for key, item in value.items()}
    return list(dict.fromkeys(value)) if isinstance(value, list) else value


def _union(first: Any, second: Any) -> Any:  # noqa: ANN401
    """Return the union of two documents that do not contradict each other.

    Of two namespace lists one starts with the other: the longer one is kept.
    """
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        both = {key: _union(first[key], second[key]) for key in first if key in second}
        return {**first, **second, **both}
    if isinstance(first, list) and isinstance(second, list):
        return max(first, second, key=len)
    return first if second is None else second
