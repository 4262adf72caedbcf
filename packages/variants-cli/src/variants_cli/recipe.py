"""Recipes: TOML files that list the variants to make from wheels, and changes to their metadata.

It says for many wheels at once what the options of `variants make` say for one. ``[variant]`` is
the table of pyproject.toml; the other tables are described in docs/how-to/make-wheels.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from packaging.requirements import Requirement

from pep_variants.choose.markers import VariantContext, reduce_requirement
from pep_variants.errors import VariantError, shortened
from pep_variants.model.filename import parse_filename
from pep_variants.model.label import LABEL
from pep_variants.model.property import Property
from pep_variants.wheelfile.metadata_edits import Edits

from .description import add_variant, from_pyproject, write_description
from .tables import Table, TableError, project_name, read_toml

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from pep_variants.model.metadata import Metadata


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
    name, version, rest = filename.removesuffix(".whl").split("-", 2)
    name, version = edits.renamed(name, version)
    return "-".join((name, version, rest, *([label] if label is not None else []))) + ".whl"


def plan(recipe: Recipe, wheels: Sequence[Path]) -> list[Job]:
    """Return the wheels to write for *recipe* and *wheels*.

    Args:
        recipe: a wheel that several of its tables match becomes several wheels.
        wheels: plain wheels.

    Raises:
        TableError: no table matches a wheel, or two new wheels have the same name.
        VariantError: labels, properties or dependencies are not valid.
    """
    documents = {
        item.place: write_description(add_variant(recipe.metadata, item.label, item.properties))
        for item in recipe.wheels
        if item.label is not None
    }
    jobs: dict[str, Job] = {}
    for wheel in wheels:
        meant = [item for item in recipe.wheels if item.matches(wheel.name)]
        if not meant:
            raise TableError(
                recipe.source,
                "",
                f"no [[wheel]] table matches {wheel.name}: add one, or do not pass the file",
            )
        if parse_filename(wheel.name).label is not None:
            raise VariantError(f"{wheel} is a variant wheel: unmake it first")
        for item in meant:
            name = target_name(wheel.name, item.label, item.edits)
            if name in jobs:
                raise TableError(
                    recipe.source,
                    item.place,
                    f"{jobs[name].wheel.name} and {wheel.name} would both become {name}: give them "
                    "different labels",
                )
            jobs[name] = Job(wheel, name, documents.get(item.place), item.edits)
    return list(jobs.values())


def unused(recipe: Recipe, wheels: Iterable[Path]) -> list[WheelRecipe]:
    """Return the parts of *recipe* that match none of *wheels*."""
    names = [wheel.name for wheel in wheels]
    return [item for item in recipe.wheels if not any(map(item.matches, names))]


def read_recipe(path: Path) -> Recipe:
    """Read the recipe at *path*.

    Raises:
        TableError: it breaks the format; the message names the place and the value.
        MetadataError: its ``[variant]`` table does.
        OSError: it cannot be read, or the pyproject.toml that it names.
    """
    root = Table(str(path), "", read_toml(path))
    root.check_keys("pyproject", "project", "dependencies", "variant", "wheel")
    pyproject = path
    if "pyproject" in root.tree:
        root.check(
            "variant" not in root.tree, "also has a [variant] table: remove one", "pyproject"
        )
        pyproject = path.parent / root.string("pyproject")
    metadata = from_pyproject(pyproject.read_bytes(), str(pyproject))
    project = root.table("project")
    project.check_keys("name", "drop-local-version")
    name = project.read(
        "name", lambda text: project_name(text) and text, "is not a valid project name"
    )
    drop = project.tree.get("drop-local-version", False)
    project.check(
        isinstance(drop, bool), f"{shortened(drop)} must be true or false", "drop-local-version"
    )
    remove, add = _dependencies(root)
    root.check(root.tables("wheel"), "list wheels, each with [[wheel]]", "wheel")
    wheels = []
    for table in root.tables("wheel"):
        table.check_keys("files", "label", "properties", "dependencies")
        own_remove, own_add = _dependencies(table)
        wheels.append(_wheel(table, Edits(name, drop, remove + own_remove, add + own_add)))
    return Recipe(root.source, metadata, tuple(wheels))


def _wheel(table: Table, edits: Edits) -> WheelRecipe:
    patterns = table.strings("files")
    table.check(patterns, "name the wheels by filename patterns", "files")
    label = table.string("label") if "label" in table.tree else None
    if label is not None and not LABEL.fullmatch(label):
        raise table.error(f"{shortened(label)} must match {LABEL.pattern}", "label")
    found = tuple(table.parsed("properties", Property.parse, table.strings("properties")))
    table.check(label is not None or not found, "a wheel with properties needs a label", "label")
    values: dict[str, dict[str, tuple[str, ...]]] = {}
    for each in found:
        features = values.setdefault(each.namespace, {})
        features[each.feature] = (*features.get(each.feature, ()), each.value)
    context = VariantContext(label or "", values)

    def reduced(text: str) -> Requirement:
        return Requirement(reduce_requirement(text, context, publishing=True) or "none")

    table.parsed("dependencies.add", reduced, edits.add, "is not a valid requirement")
    return WheelRecipe(patterns, label, found, edits, table.path)


def _dependencies(table: Table) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the dependencies to remove and to add."""
    dependencies = table.table("dependencies")
    dependencies.check_keys("remove", "add")
    for key in ("remove", "add"):
        lines = "".join(dependencies.strings(key)).splitlines()
        dependencies.check(len(lines) <= 1, "must not have line breaks in it", key)
    return dependencies.strings("remove"), dependencies.strings("add")
