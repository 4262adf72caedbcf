"""Recipes: TOML files that list the variants to make from wheels, and changes to their metadata.

It says for many wheels at once what the options of `variants make` say for one. ``[variant]`` is
the table of pyproject.toml; the other tables are described in docs/how-to/make-wheels.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NoReturn

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidName, canonicalize_name

from pep_variants.choose.markers import VariantContext, reduce_requirement
from pep_variants.errors import InvalidMarker, InvalidProperty, VariantError, shortened
from pep_variants.formats.toml import loads
from pep_variants.model.filename import parse_filename
from pep_variants.model.label import LABEL
from pep_variants.model.property import Property
from pep_variants.wheelfile.metadata_edits import Edits

from .description import add_variant, from_pyproject, write_description

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from pep_variants.model.generation import Generation
    from pep_variants.model.metadata import Metadata


class RecipeError(VariantError):
    """A recipe that is not valid, or does not match the wheels."""


@dataclass(frozen=True)
class WheelRecipe:
    """One ``[[wheel]]`` table: the variant to make of the wheels that match.

    Attributes:
        patterns: shell patterns of filenames.
        label: of the variant, None for a non-variant wheel.
        properties: of the variant.
        edits: other changes.
        place: in the file, for messages.
    """

    patterns: tuple[str, ...]
    label: str | None
    properties: tuple[Property, ...]
    edits: Edits
    place: str

    def matches(self, filename: str) -> bool:
        """Return whether a pattern matches the wheel *filename*."""
        return any(fnmatchcase(filename, pattern) for pattern in self.patterns)


@dataclass(frozen=True)
class Recipe:
    """The contents of a recipe file.

    Attributes:
        source: the file.
        metadata: namespaces and providers of the project, without variants.
        wheels: the ``[[wheel]]`` tables.
    """

    source: str
    metadata: Metadata
    wheels: tuple[WheelRecipe, ...]


@dataclass(frozen=True)
class Job:
    """One wheel to write.

    Attributes:
        wheel: the existing wheel.
        name: filename of the new one.
        variant_json: its metadata, None for a non-variant wheel.
        edits: other changes.
    """

    wheel: Path
    name: str
    variant_json: bytes | None
    edits: Edits


def target_name(filename: str, label: str | None, edits: Edits) -> str:
    """Return the filename of a plain wheel's variant *label*, after *edits*."""
    stem = filename.removesuffix(".whl")
    name, version, rest = stem.split("-", 2)
    name, version = edits.renamed(name, version)
    return "-".join((name, version, rest, *([label] if label is not None else []))) + ".whl"


def plan(recipe: Recipe, wheels: Sequence[Path], generation: Generation | None) -> list[Job]:
    """Return the wheels to write for *recipe* and *wheels*.

    Args:
        recipe: a wheel that several of its tables match becomes several wheels.
        wheels: plain wheels.
        generation: format to write, None for the newest that is sufficient.

    Raises:
        RecipeError: no table matches a wheel, or two new wheels have the same name.
        VariantError: labels, properties or dependencies are not valid.
    """
    documents = {
        number: write_description(
            add_variant(recipe.metadata, item.label, item.properties), generation
        )
        for number, item in enumerate(recipe.wheels)
        if item.label is not None
    }
    jobs: dict[str, Job] = {}
    for wheel in wheels:
        meant = [pair for pair in enumerate(recipe.wheels) if pair[1].matches(wheel.name)]
        if not meant:
            raise RecipeError(
                f"{recipe.source}: no [[wheel]] table matches {wheel.name}: add one, or do not "
                "pass the file"
            )
        if parse_filename(wheel.name).label is not None:
            raise RecipeError(f"{wheel} is a variant wheel: unmake it first")
        for number, item in meant:
            name = target_name(wheel.name, item.label, item.edits)
            if name in jobs:
                raise RecipeError(
                    f"{recipe.source}: {item.place}: {jobs[name].wheel.name} and {wheel.name} "
                    f"would both become {name}: give them different labels"
                )
            jobs[name] = Job(wheel, name, documents.get(number), item.edits)
    return list(jobs.values())


def unused(recipe: Recipe, wheels: Iterable[Path]) -> list[WheelRecipe]:
    """Return the parts of *recipe* that match none of *wheels*."""
    names = [wheel.name for wheel in wheels]
    return [item for item in recipe.wheels if not any(map(item.matches, names))]


# --- reading


def read_recipe(path: Path) -> Recipe:
    """Read the recipe at *path*.

    Raises:
        RecipeError: it breaks the format; the message names the place and the value.
        MetadataError: its ``[variant]`` table does.
        OSError: it cannot be read, or the pyproject.toml that it names.
    """
    data = path.read_bytes()
    return RecipeReader(str(path)).read(data, path.parent)


class RecipeReader:
    """Reads one document; knows its name for errors."""

    def __init__(self, source: str) -> None:
        self._source = source

    def read(self, data: bytes, folder: Path) -> Recipe:
        """Return the recipe in *data*; paths are relative to *folder*."""
        try:
            tree = loads(data.decode())
        except ValueError as error:
            raise RecipeError(f"{self._source}: not valid TOML: {error}") from None
        self.check_keys(tree, {"pyproject", "project", "dependencies", "variant", "wheel"}, "")
        pyproject = self.text(tree, "pyproject", "")
        if pyproject is None:
            metadata = from_pyproject(data, self._source)
        elif "variant" in tree:
            self.fail("pyproject", pyproject, "also has a [variant] table: remove one of the two")
        else:
            path = folder / pyproject
            metadata = from_pyproject(path.read_bytes(), str(path))

        project = self.table(tree, "project", "")
        self.check_keys(project, {"name", "drop-local-version"}, "project")
        name = self.text(project, "name", "project")
        if name is not None:
            try:
                canonicalize_name(name, validate=True)
            except InvalidName:
                self.fail("project.name", name, "is not a valid project name")
        drop = project.get("drop-local-version", False)
        if not isinstance(drop, bool):
            self.fail("project.drop-local-version", drop, "must be true or false")
        remove, add = self.dependencies(tree, "")

        entries = tree.get("wheel")
        if not isinstance(entries, list) or not entries:
            self.fail("wheel", entries, "list wheels, each with [[wheel]]")
        wheels = []
        for number, entry in enumerate(entries):
            place = f"wheel[{number}]"
            if not isinstance(entry, dict):
                self.fail(place, entry, "must be a table")
            self.check_keys(entry, {"files", "label", "properties", "dependencies"}, place)
            own_remove, own_add = self.dependencies(entry, f"{place}.")
            wheels.append(
                self.wheel(entry, place, Edits(name, drop, remove + own_remove, add + own_add))
            )
        return Recipe(self._source, metadata, tuple(wheels))

    def wheel(self, entry: dict[str, Any], place: str, edits: Edits) -> WheelRecipe:
        """Return what an entry says of the wheels that match."""
        patterns = self.texts(entry, "files", place)
        if not patterns:
            self.fail(f"{place}.files", entry.get("files"), "name the wheels by filename patterns")
        label = self.text(entry, "label", place)
        if label is not None and not LABEL.fullmatch(label):
            self.fail(f"{place}.label", label, f"must match {LABEL.pattern}")
        properties = []
        for text in self.texts(entry, "properties", place):
            try:
                properties.append(Property.parse(text))
            except InvalidProperty as error:
                raise RecipeError(f"{self._source}: {place}.properties: {error}") from None
        if label is None and properties:
            self.fail(f"{place}.label", label, "a wheel with properties needs a label")
        return self.checked(WheelRecipe(patterns, label, tuple(properties), edits, place))

    def checked(self, item: WheelRecipe) -> WheelRecipe:
        """Return *item* if the dependencies that it adds are valid for its variant."""
        values: dict[str, dict[str, tuple[str, ...]]] = {}
        for each in item.properties:
            features = values.setdefault(each.namespace, {})
            features[each.feature] = (*features.get(each.feature, ()), each.value)
        context = VariantContext(item.label or "", values)
        for requirement in item.edits.add:
            try:
                plain = reduce_requirement(requirement, context, publishing=True)
                if plain is not None:
                    Requirement(plain)
            except (InvalidMarker, InvalidRequirement) as error:
                problem = str(error).partition("\n")[0]
                raise RecipeError(
                    f"{self._source}: dependencies.add: {shortened(requirement, 200)}: not "
                    f"a valid requirement: {problem}"
                ) from None
        return item

    def dependencies(
        self, table: dict[str, Any], prefix: str
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the dependencies to remove and to add."""
        place = f"{prefix}dependencies"
        dependencies = self.table(table, "dependencies", prefix.rstrip("."))
        self.check_keys(dependencies, {"remove", "add"}, place)
        return (
            self.texts(dependencies, "remove", place),
            self.texts(dependencies, "add", place),
        )

    def table(self, table: dict[str, Any], key: str, place: str) -> dict[str, Any]:
        """Return the table *key*, empty if it is missing."""
        value = table.get(key, {})
        if not isinstance(value, dict):
            self.fail(_joined(place, key), value, "must be a table")
        return value

    def text(self, table: dict[str, Any], key: str, place: str) -> str | None:
        """Return the string *key*, None if it is missing."""
        value = table.get(key)
        if value is not None and not isinstance(value, str):
            self.fail(_joined(place, key), value, "must be a string")
        return value

    def texts(self, table: dict[str, Any], key: str, place: str) -> tuple[str, ...]:
        """Return the list of strings *key*, empty if it is missing."""
        value = table.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self.fail(_joined(place, key), value, "must be a list of strings")
        if any("\n" in item or "\r" in item for item in value):
            self.fail(_joined(place, key), value, "must not have line breaks in it")
        return tuple(value)

    def check_keys(self, table: dict[str, Any], known: set[str], place: str) -> None:
        """Refuse keys of *table* that are not *known*."""
        for key in table:
            if key not in known:
                self.fail(
                    _joined(place, key),
                    None,
                    f"is not a recipe key; {', '.join(sorted(known))}",
                )

    def fail(self, place: str, value: object, problem: str) -> NoReturn:
        """Raise the error for *value* at *place*."""
        shown = "" if value is None else f" {shortened(value)}:"
        raise RecipeError(f"{self._source}: {place}:{shown} {problem}")


def _joined(place: str, key: str) -> str:
    return f"{place}.{key}" if place else key
