"""Reading entries of the catalogue, strictly: an entry decides where code comes from."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import date
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import InvalidName, canonicalize_name

from pep_variants import labels as wheel_labels
from pep_variants import limits, wheel_files
from pep_variants import metadata as variant_metadata
from pep_variants.errors import CatalogError, InvalidProperty, InvalidWheelFilename, shortened
from pep_variants.metadata import PropertyTree

from .entries import (
    PLACEHOLDER,
    CatalogProject,
    CatalogVariant,
    Fault,
    Measured,
    filled,
    read_property,
)

FORMAT_VERSION = "1"
_SAMPLE = "1.0"
"""Stands for the value of any placeholder when a template is checked."""
_LOCAL = re.compile(r"[a-z0-9]+(\.[a-z0-9]+)*|")
_PLATFORM = re.compile(r"[a-z0-9]+(_[a-z0-9]+)+")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_BETWEEN = re.compile(r"\}([^{}]*)\{")
_KINDS = ("index", "links")
_VARIANT_KEYS = (
    "label", *_KINDS, "requires", "local", "versions", "properties", "platforms", "measured",
    "broken", "for-each",
)  # fmt: skip
_FAULT_KEYS = ("gpu", "versions", "source")
_GPU = re.compile(r"[0-9]{1,2}\.(?:[0-9]|\*)|gfx[0-9a-f]{3,5}")
_MEASURED_KEYS = ("file", "sha256", "date")
_PROJECT_KEYS = (
    "name", "documentation", "sources", "coherent", "variants-index", "default-priorities",
    "static-properties", "placeholder", "before-version", "checked",
)  # fmt: skip


def read_entry(data: bytes | str, source: str) -> CatalogProject:
    """Read the TOML file of one project.

    Args:
        data: contents of the file.
        source: file or URL, for messages.

    Raises:
        CatalogError: not TOML, larger than `CATALOG_ENTRY_BYTES`, unknown keys, or malformed,
            contradictory or missing values; the message names the place and the value.
    """
    reader = _Reader(source)
    if len(data) > limits.CATALOG_ENTRY_BYTES:
        raise reader.error(
            "", f"larger than {limits.CATALOG_ENTRY_BYTES} bytes, which are read at most"
        )
    return reader.project(reader.load_toml(data))


def entry_from_tree(tree: object, source: str) -> CatalogProject:
    """Return the entry that *tree* describes, the parsed file; raises `CatalogError`."""
    reader = _Reader(source)
    return reader.project(reader.mapping(tree, ""))


class _Reader(PropertyTree):
    """Reads one entry."""

    def __init__(self, source: str) -> None:
        super().__init__(lambda path, problem: CatalogError(source, path, problem), "table")
        self._source = source

    def project(self, tree: Mapping[str, Any]) -> CatalogProject:
        self.check_keys(tree, "", ("catalog-version", "project", "variant"))
        version = self.string(tree, "catalog-version")
        if version != FORMAT_VERSION:
            problem = f"{shortened(version)} is not supported, only {FORMAT_VERSION!r}"
            raise self.error("catalog-version", problem)
        table = self.table(tree, "project")
        self.check_keys(table, "project", _PROJECT_KEYS)
        name = self._name(self._text(table, "name", "project"), "project.name")
        priorities = self.table(table, "default-priorities", "project")
        path = "project.default-priorities"
        self.check_keys(priorities, path, ("namespace",))
        namespaces = self.names(
            priorities.get("namespace", []), f"{path}.namespace", variant_metadata.NAME
        )
        static = self.properties(table.get("static-properties", {}), "project.static-properties")
        for namespace in set(static) - set(namespaces):
            place = f"project.static-properties.{namespace}"
            raise self.error(place, f"is not listed in {path}.namespace")
        tables = self.tables(tree, "variant")
        numbered = [
            (item, number)
            for number, table in enumerate(tables, 1)
            for item in self._each_of(table, f"variant {number}")
        ]
        self.check_count(numbered, "variant", limits.CATALOG_VARIANTS, "variants")
        index = self._url(table, "variants-index", "project")
        if not tables and index is None:
            raise self.error("variant", "there are none: add a [[variant]] table")
        return CatalogProject(
            name,
            self._checked_url(
                self._text(table, "documentation", "project"), "project.documentation"
            ),
            tuple(
                replace(
                    self._variant(item, f"variant {number}", name, namespaces),
                    number=number,
                    family=tables[number - 1]["label"] if "for-each" in item else "",
                )
                for item, number in numbered
            ),
            self._each(table, "sources", self._checked_url),
            self._each(table, "coherent", self._name),
            index,
            namespaces,
            static,
            self._versions(table, "placeholder", "project") if "placeholder" in table else None,
            self.boolean(table, "before-version", "project", False),
            self._day(table.get("checked", ""), "project.checked"),
            self._source,
        )

    def _variant(
        self, table: Mapping[str, Any], path: str, name: str, namespaces: tuple[str, ...]
    ) -> CatalogVariant:
        self.check_keys(table, path, _VARIANT_KEYS)
        if _KINDS[0] in table and _KINDS[1] in table:
            raise self.error(path, f"has {' and '.join(_KINDS)}: only one of them is possible")
        has_place = any(kind in table for kind in _KINDS)
        if "local" in table and "requires" in table and not has_place:
            raise self.error(f"{path}.local", "is only for files: requirements pin a version")
        label = self._text(table, "label", path)
        index = self._url(table, "index", path)
        found = CatalogVariant(
            label,
            index and index.rstrip("/"),
            self._url(table, "links", path),
            self._local(table, f"{path}.local"),
            self._versions(table, "versions", path),
            self._requirements(table, path, name, has_place=has_place),
            self._properties(table, path, label, namespaces),
            self.names(table.get("platforms", []), f"{path}.platforms", _PLATFORM),
            self._measured(table, path),
            self._broken(table, f"{path}.broken"),
        )
        self._check_placeholders(found, path)
        return found

    def _each_of(self, table: dict[str, Any], path: str) -> Iterator[dict[str, Any]]:
        """Yield the tables that *table* stands for: itself, or one for each value of a name."""
        held, where = self.table(table, "for-each", path), f"{path}.for-each"
        if not held:
            yield table
            return
        if len(held) > 1 or not held.keys().isdisjoint(("name", "version")):
            raise self.error(where, f"{shortened(sorted(held))}: one name of your own is possible")
        for name in held:
            values = self.names(held[name], f"{where}.{name}", variant_metadata.NAME)
            if not values or not PLACEHOLDER.fullmatch(f"{{{name}}}"):
                raise self.error(where, f"{shortened(held)} is not a name with values")
            for value in values:
                yield {key: _filled(item, {name: value}) for key, item in table.items()}

    def _measured(self, table: Mapping[str, Any], path: str) -> tuple[Measured, ...]:
        rows = self.tables(table, "measured", path)
        path = f"{path}.measured"
        self.check_count(rows, path, limits.VALUES, "wheels")
        if rows and not table.get("properties"):
            raise self.error(path, "there are no properties that it would be about")
        found = []
        for row in rows:
            self.check_keys(row, path, _MEASURED_KEYS)
            file, day = self._text(row, "file", path), self._text(row, "date", path)
            try:
                wheel_files.parse_filename(file)
            except InvalidWheelFilename as error:
                raise self.error(f"{path}.file", str(error)) from None
            digest = self.name(row.get("sha256"), f"{path}.sha256", _SHA256, "SHA-256")
            found.append(Measured(file, digest, self._day(day, f"{path}.date")))
        return tuple(found)

    def _broken(self, table: Mapping[str, Any], path: str) -> tuple[Fault, ...]:
        rows = self.tables(table, "broken", path.rpartition(".")[0])
        self.check_count(rows, path, limits.VALUES, "faults")
        for row in rows:
            self.check_keys(row, path, _FAULT_KEYS)
        return tuple(
            Fault(
                self.name(row.get("gpu"), f"{path}.gpu", _GPU, "GPU, such as '12.*' or 'gfx1151'"),
                self._versions(row, "versions", path),
                self._checked_url(self._text(row, "source", path), f"{path}.source"),
            )
            for row in rows
        )

    def _local(self, table: Mapping[str, Any], path: str) -> tuple[str, ...] | None:
        value = table.get("local")
        if value is None:
            return None
        items = self.string_list([value] if isinstance(value, str) else value, path)
        self.check_count(items, path, limits.VALUES, "entries")
        for item in items:
            problem = ""
            if any(not re.search("[a-z]", each) for each in _BETWEEN.findall(item)):
                # Else it is not certain where a value ends.
                problem = ": a letter has to separate two placeholders"
            elif len(set(PLACEHOLDER.findall(item))) < len(PLACEHOLDER.findall(item)):
                problem = " has a placeholder twice"
            elif not _LOCAL.fullmatch(PLACEHOLDER.sub("1", item)):
                problem = " is not a normalized local version (PEP 440)"
            if problem:
                raise self.error(path, f"{shortened(item)}{problem}")
        return items

    def _versions(self, table: Mapping[str, Any], key: str, path: str) -> SpecifierSet:
        text = self.string(table, key, path) or ""
        self.check_length(text, f"{path}.{key}", limits.REQUIREMENT_LENGTH)
        try:
            return SpecifierSet(text)
        except (InvalidSpecifier, ValueError):
            problem = f"{shortened(text)} is not a version specifier, such as '>=2.7,<2.9'"
            raise self.error(f"{path}.{key}", problem) from None

    def _day(self, value: object, path: str) -> str:
        try:
            return str(value and date.fromisoformat(str(value)))
        except ValueError:
            problem = f"{shortened(value)} is not a day, such as 2026-11-25"
            raise self.error(path, problem) from None

    def _requirements(
        self, table: Mapping[str, Any], path: str, name: str, *, has_place: bool
    ) -> tuple[str, ...]:
        texts = self.strings(table, "requires", path)
        path = f"{path}.requires"
        if "requires" in table and not texts:
            raise self.error(path, "is empty")
        self.check_count(texts, path, limits.VALUES, "entries")
        found = []
        for number, text in enumerate(texts):
            is_source = number == 0 and not has_place
            self.check_length(text, path, limits.REQUIREMENT_LENGTH)
            template = filled(text.strip(), {"name": name})
            problem = ": only {name} and {version} are known"
            if set(PLACEHOLDER.findall(template)) - {"version"}:
                raise self.error(path, f"{shortened(text)}{problem}")
            problem = ""
            try:
                requirement = Requirement(filled(template, {"version": _SAMPLE}))
            except (InvalidRequirement, ValueError, RecursionError):
                raise self.error(path, f"{shortened(text)} is no requirement") from None
            if requirement.url is not None:
                problem = "is a URL: name a project"
            elif is_source and str(requirement.specifier) != f"=={_SAMPLE}":
                problem = "does not pin one version: write NAME=={version}"
            elif is_source and requirement.marker is not None:
                problem = "has a marker: write platforms, as the marker would not be looked at"
            elif canonicalize_name(requirement.name) == name and not requirement.extras:
                problem = "is the project itself: name an extra"
            if problem:
                raise self.error(path, f"{shortened(text)} {problem}")
            found.append(template)
        return tuple(found)

    def _properties(
        self, table: Mapping[str, Any], path: str, label: str, namespaces: tuple[str, ...]
    ) -> tuple[str, ...]:
        texts = self.strings(table, "properties", path)
        path = f"{path}.properties"
        self.check_count(texts, path, limits.VALUES, "properties")
        if bool(texts) is (label == wheel_labels.NULL_LABEL):
            problem = "the null variant has none" if texts else f"{shortened(label)} needs some"
            raise self.error(path, problem)
        seen = set()
        for text in texts:
            try:
                item = read_property(PLACEHOLDER.sub(_SAMPLE, text))
            except InvalidProperty as error:
                raise self.error(path, str(error)) from None
            if item.namespace not in (*namespaces, variant_metadata.ABI_DEPENDENCY):
                problem = (
                    f"namespace {item.namespace!r} is not listed in project.default-priorities"
                )
                raise self.error(path, f"{shortened(text)}: {problem}.namespace")
            if text in seen:
                raise self.error(path, f"{shortened(text)} is listed twice")
            seen.add(text)
        return texts

    def _check_placeholders(self, found: CatalogVariant, path: str) -> None:
        known = [set(PLACEHOLDER.findall(text)) for text in found.local or ("",)]
        for key, texts in (("label", (found.label,)), ("properties", found.properties)):
            for text in texts:
                for name in PLACEHOLDER.findall(text):
                    if not all(name in names for names in known):
                        problem = f"{shortened(text)}: {{{name}}} is not in every local version"
                        raise self.error(f"{path}.{key}", problem)
        self.name(
            PLACEHOLDER.sub(_SAMPLE, found.label),
            f"{path}.label",
            wheel_labels.LABEL,
            "variant label",
        )

    def _each(
        self, table: Mapping[str, Any], key: str, read: Callable[[str, str], str]
    ) -> tuple[str, ...]:
        path = f"project.{key}"
        return tuple(read(item, path) for item in self.string_list(table.get(key, []), path))

    def _name(self, text: str, path: str) -> str:
        try:
            return canonicalize_name(text, validate=True)
        except InvalidName:
            raise self.error(path, f"{shortened(text)} is not a valid project name") from None

    def _text(self, table: Mapping[str, Any], key: str, path: str) -> str:
        value = self.string(table, key, path)
        if not value:
            raise self.error(f"{path}.{key}", "is missing")
        return value

    def _url(self, table: Mapping[str, Any], key: str, path: str) -> str | None:
        value = self.string(table, key, path)
        return None if value is None else self._checked_url(value, f"{path}.{key}")

    def _checked_url(self, value: str, path: str) -> str:
        self.check_length(value, path, limits.URL_CHARACTERS)
        if not re.fullmatch(r"https?://[^\s/@?#]+(/[^\s?#]*)?", value):
            problem = "is not a URL of http without credentials, query and #"
            raise self.error(path, f"{shortened(value)} {problem}")
        return value


def _filled(value: object, values: Mapping[str, str]) -> object:
    """Return a string, or the strings of a list, with *values* in place of placeholders."""
    if isinstance(value, list):
        return [_filled(item, values) for item in value]
    return filled(value, values) if isinstance(value, str) else value
