"""The ``variant_config.toml`` of variant-repack, as a recipe and as a build matrix.

``[variant_configs.NAME]`` has a label and properties, ``[metadata_configs.NAME]`` other changes of
the metadata. Namespaces and providers are in the pyproject.toml beside it.
https://github.com/wheelnext/variant-repack
"""

from __future__ import annotations

import glob
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from packaging.utils import canonicalize_name

from pep_variants.errors import shortened
from pep_variants.formats.toml import loads
from pep_variants.model.filename import parse_filename
from pep_variants.model.label import NULL_LABEL
from pep_variants.wheelfile.metadata_edits import Edits

from .description import from_pyproject
from .recipe import Recipe, RecipeError, RecipeReader, WheelRecipe

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pep_variants.model.metadata import Metadata

_VARIANT = {"variant_label", "properties"}
_METADATA = {
    "rename_package_to",
    "normalize_package_name",
    "normalize_version",
    "deps_remove_list",
    "deps_add_list",
}
_PROPERTY = ("namespace", "feature", "value")
_SUFFIX = re.compile(r"[-_](cu11|cu12|cu13|cu118|cu126|cu128|cu129|cuda1[123]x|cpu)$")
"""What ``normalize_package_name`` removes from names, once each."""


@dataclass(frozen=True)
class VariantConfig:
    """The contents of a ``variant_config.toml``.

    Attributes:
        source: the file.
        variants: what becomes of wheels, by name; without patterns and edits.
        edits: other changes by name, and whether the project's name is to be normalized.
    """

    source: str
    variants: Mapping[str, WheelRecipe]
    edits: Mapping[str, tuple[Edits, bool]]


def is_variant_config(path: Path) -> bool:
    """Return whether the TOML file *path* is a ``variant_config.toml``."""
    try:
        return isinstance(loads(path.read_text("utf-8")).get("variant_configs"), dict)
    except (ValueError, OSError):
        return False


def read_variant_config(path: Path) -> VariantConfig:
    """Read the file *path*.

    Raises:
        RecipeError: it breaks the format; the message names the place and the value.
        OSError: it cannot be read.
    """
    source = str(path)
    reader = RecipeReader(source)
    try:
        tree = loads(path.read_text("utf-8"))
    except ValueError as error:
        raise RecipeError(f"{source}: not valid TOML: {error}") from None
    reader.check_keys(tree, {"variant_configs", "metadata_configs"}, "")
    variants = {}
    for name, entry in reader.table(tree, "variant_configs", "").items():
        place = f"variant_configs.{name}"
        if not isinstance(entry, dict):
            reader.fail(place, entry, "must be a table")
        variants[name] = _variant(reader, entry, place)
    if not variants:
        reader.fail("variant_configs", None, "has no variants: add [variant_configs.NAME]")
    edits = {}
    for name, entry in reader.table(tree, "metadata_configs", "").items():
        place = f"metadata_configs.{name}"
        if not isinstance(entry, dict):
            reader.fail(place, entry, "must be a table")
        edits[name] = _edits(reader, entry, place)
    return VariantConfig(source, variants, edits)


def project_of(path: Path, pyproject: Path | None = None) -> Metadata:
    """Return namespaces and providers for the file *path*.

    Args:
        path: the ``variant_config.toml``.
        pyproject: the file that has them, by default the one beside it.

    Raises:
        RecipeError: there is none.
        MetadataError: it breaks the format.
    """
    pyproject = pyproject or path.with_name("pyproject.toml")
    try:
        return from_pyproject(pyproject.read_bytes(), str(pyproject))
    except FileNotFoundError:
        raise RecipeError(
            f"{path}: the namespaces and providers are in pyproject.toml: put it beside this file, "
            "or name it with --pyproject"
        ) from None


def as_recipe(
    config: VariantConfig,
    project: Metadata,
    wheels: Sequence[Path],
    variant: str | None = None,
    metadata: str | None = None,
) -> Recipe:
    """Return the recipe for *wheels*.

    Args:
        config: the file.
        project: namespaces and providers.
        wheels: plain wheels.
        variant: name of the variant that all of them are; None for the one that the local part
            of a wheel's version names (``2.10.0+cu128``).
        metadata: name of the changes of the metadata; None for those named like the project, or
            ``default``, if there are some.

    Raises:
        RecipeError: there is no such name, or a wheel does not say which variant it is.
    """
    tables = []
    for wheel in wheels:
        name = variant if variant is not None else _named_by(config, wheel)
        if name not in config.variants:
            raise RecipeError(
                f"{config.source}: variant_configs has no {shortened(name)}; there are "
                f"{', '.join(config.variants)}"
            )
        found = config.variants[name]
        edits = _edits_for(config, wheel, metadata)
        # Checks the dependencies for this variant.
        tables.append(
            RecipeReader(config.source).checked(
                WheelRecipe(
                    (glob.escape(wheel.name),), found.label, found.properties, edits, found.place
                )
            )
        )
    return Recipe(config.source, project, tuple(tables))


def _named_by(config: VariantConfig, wheel: Path) -> str:
    local = parse_filename(wheel.name).version.local
    names = [
        name
        for name, item in config.variants.items()
        if local is not None and local in (name.lower(), item.label)
    ]
    if len(names) == 1:
        return names[0]
    raise RecipeError(
        f"{wheel.name}: its version does not name one of the variants of {config.source} "
        f"({', '.join(config.variants)}): name one with --only"
    )


def _edits_for(config: VariantConfig, wheel: Path, metadata: str | None) -> Edits:
    project = str(parse_filename(wheel.name).name)
    if metadata is None:
        names = [name for name in config.edits if canonicalize_name(name) == project]
        metadata = (names or ["default"])[0]
        if metadata not in config.edits:
            return Edits()
    elif metadata not in config.edits:
        raise RecipeError(
            f"{config.source}: metadata_configs has no {shortened(metadata)}; there are "
            f"{', '.join(config.edits) or 'none'}"
        )
    edits, normalized = config.edits[metadata]
    if not normalized:
        return edits
    name = project
    while (match := _SUFFIX.search(name)) is not None:
        name = name[: match.start()]
    return Edits(name, edits.drop_local, edits.remove, edits.add)


def _variant(reader: RecipeReader, entry: dict[str, Any], place: str) -> WheelRecipe:
    reader.check_keys(entry, _VARIANT, place)
    items = entry.get("properties", [])
    if not isinstance(items, list):
        reader.fail(f"{place}.properties", items, "must be a list of tables")
    properties = []
    for number, item in enumerate(items):
        where = f"{place}.properties[{number}]"
        if not isinstance(item, dict) or set(item) != set(_PROPERTY):
            reader.fail(where, item, f"must be a table with {', '.join(_PROPERTY)}")
        properties.append(" :: ".join(reader.text(item, key, where) or "" for key in _PROPERTY))
    label = reader.text(entry, "variant_label", place)
    if label is None:
        if properties:
            reader.fail(f"{place}.variant_label", None, "is missing: add the label of the variant")
        label = NULL_LABEL
    tree = {"files": ["*"], "label": label, "properties": properties}
    return reader.wheel(tree, place, Edits())


def _edits(reader: RecipeReader, entry: dict[str, Any], place: str) -> tuple[Edits, bool]:
    reader.check_keys(entry, _METADATA, place)
    flags = {}
    for key in ("normalize_package_name", "normalize_version"):
        flags[key] = entry.get(key, False)
        if not isinstance(flags[key], bool):
            reader.fail(f"{place}.{key}", flags[key], "must be true or false")
    # variant-repack removes whatever starts with one of these.
    remove = tuple(f"{name}*" for name in reader.texts(entry, "deps_remove_list", place))
    add = reader.texts(entry, "deps_add_list", place)
    name = reader.text(entry, "rename_package_to", place)
    normalized = flags["normalize_package_name"] and name is None
    return Edits(name, flags["normalize_version"], remove, add), normalized
