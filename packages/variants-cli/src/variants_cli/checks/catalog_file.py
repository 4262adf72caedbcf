"""Checks of the entries of a catalogue, without its sources."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING

from pep_variants.catalog.model import PLACEHOLDER, target
from pep_variants.catalog.store import read_catalog
from pep_variants.detect.registry import KNOWN
from pep_variants.errors import CatalogError
from pep_variants.files import read_regular
from pep_variants.formats import toml
from pep_variants.limits import CATALOG_BYTES
from pep_variants.model.filename import read_version
from pep_variants.model.property import ABI_DEPENDENCY, Property

from .finding import Finding, error, warning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from packaging.version import Version

    from pep_variants.catalog.model import CatalogProject, CatalogVariant
    from pep_variants.catalog.store import Catalog
    from pep_variants.model.property import Features

_KEY = "catalog-version"
_LONGEST = 6
"""Parts of a release number, more than real ones have."""


def is_catalog_file(path: Path) -> bool:
    """Return whether the TOML or JSON file *path* is an entry of a catalogue, or several."""
    try:
        text = read_regular(path, CATALOG_BYTES).data.decode("utf-8")
        if _KEY not in text:
            return False
        tree = toml.loads(text) if path.suffix == ".toml" else json.loads(text)
    except (ValueError, RecursionError, OSError):
        # One that cannot be read is most likely what its first line says.
        return path.suffix == ".toml" and path.is_file() and _begins_as_entry(path)
    return isinstance(tree, dict) and _KEY in tree


def _begins_as_entry(path: Path) -> bool:
    with path.open("rb") as stream:
        lines = stream.read(4096).splitlines()
    return any(line.startswith(_KEY.encode()) for line in lines)


def check_catalog_file(path: Path) -> list[Finding]:
    """Check the entry, or the entries, in the file *path*."""
    try:
        data = read_regular(path, CATALOG_BYTES).data
        catalog = read_catalog(data, str(path))
    except CatalogError as problem:
        return [invalid(problem)]
    found = check_catalog(catalog, catalog.names())
    if path.suffix == ".toml":
        (name,) = catalog.names()
        if path.stem != name:
            found.append(
                error(
                    "catalog-filename",
                    str(path),
                    "project.name",
                    f"is {name!r}: a directory of entries would not have it under this name",
                    f"rename the file to {name}.toml",
                )
            )
    return found


def check_catalog(catalog: Catalog, names: Iterable[str]) -> list[Finding]:
    """Check the entries *names* of *catalog*, against each other where they refer to others."""
    found: list[Finding] = []
    for name in names:
        try:
            entry = catalog.project(name)
        except CatalogError as problem:
            found.append(invalid(problem))
            continue
        if entry is not None:
            found += check_entry(entry)
            found += _check_others(entry, catalog)
    return found


def invalid(problem: CatalogError) -> Finding:
    """Return what the reader says of an entry."""
    return error(
        "invalid-catalog",
        problem.source,
        problem.path,
        problem.problem,
        "correct it: CONTRIBUTING.md of variants-catalog has the meaning of every key",
    )


def check_entry(entry: CatalogProject) -> list[Finding]:
    """Check what the reader admits, but what makes no sense."""
    return [*_check_properties(entry), *_check_versions(entry), *_check_overlaps(entry)]


def _check_properties(entry: CatalogProject) -> Iterator[Finding]:
    known = _known_values()
    for number, variant in enumerate(entry.variants, 1):
        for text in variant.properties:
            item = Property.parse(PLACEHOLDER.sub("1.0", text))
            if item.namespace == ABI_DEPENDENCY:
                continue
            place = f"variant {number}.properties"
            values = entry.static.get(item.namespace) or known(item.namespace)
            if values is None:
                yield error(
                    "unknown-namespace",
                    entry.source,
                    place,
                    f"{text!r}: no built-in provider has the namespace {item.namespace!r}",
                    f"list its values in project.static-properties.{item.namespace}, or leave it "
                    "out: the variant would never fit",
                )
            elif item.value not in values.get(item.feature, ()) and not PLACEHOLDER.search(text):
                yield error(
                    "unknown-property",
                    entry.source,
                    place,
                    f"{text!r} is a value that no machine can have",
                    "correct it: variants detect --json has the features, and values of this "
                    "machine",
                )


def _known_values() -> Callable[[str], Features | None]:
    found: dict[str, Features | None] = {}

    def known(namespace: str) -> Features | None:
        if namespace not in found:
            rows = [row for row in KNOWN if row.namespace == namespace]
            found[namespace] = rows[0].factory().known() if rows else None
        return found[namespace]

    return known


def _check_versions(entry: CatalogProject) -> Iterator[Finding]:
    for number, variant in enumerate(entry.variants, 1):
        if not any(map(variant.admits, sample_versions([variant]))):
            yield error(
                "no-version",
                entry.source,
                f"variant {number}.versions",
                f"no version is in {str(variant.versions)!r}",
                "correct the specifier",
            )


def _check_overlaps(entry: CatalogProject) -> Iterator[Finding]:
    numbered = list(enumerate(entry.variants, 1))
    for (first, one), (second, other) in itertools.combinations(numbered, 2):
        if one.label == other.label:
            what = f"has the label {one.label!r} of variant {first}"
            remedy = "give the two disjoint versions, or different labels"
        elif one.place is not None and one.place == other.place and _same_files(one, other):
            what = f"is about the same files as variant {first}, which counts"
            remedy = "give the two different local versions, or disjoint versions"
        else:
            continue
        both = [
            version
            for version in sample_versions([one, other])
            if one.admits(version) and other.admits(version)
        ]
        if both:
            yield error(
                "overlap",
                entry.source,
                f"variant {second}",
                f"{what}, for version {both[0]} for example",
                remedy,
            )


def _same_files(one: CatalogVariant, other: CatalogVariant) -> bool:
    if one.local is None or other.local is None:
        return True
    return bool(set(one.local) & set(other.local))


def sample_versions(variants: Iterable[CatalogVariant]) -> list[Version]:
    """Return versions at, below and above each version that *variants* name, ascending.

    What several specifiers admit together, they admit for one of these.
    """
    texts = {"0", "999999"}
    for variant in variants:
        for clause in variant.versions:
            version = read_version(clause.version.removesuffix(".*"))
            if version is not None:
                texts |= set(_near(version))
    return sorted(filter(None, map(read_version, texts)))


def _near(version: Version) -> Iterator[str]:
    """Yield *version* and some just above and below it."""
    release = version.release
    text = ".".join(map(str, release))
    yield from (str(version), f"{text}.dev0", f"{text}.post{(version.post or 0) + 1}")
    yield ".".join((text, *"0" * (_LONGEST - len(release)), "1"))
    for number, part in enumerate(release):
        above = ".".join(map(str, (*release[:number], part + 1)))
        yield from (above, f"{above}.dev0")
        if part:
            yield ".".join(map(str, (*release[:number], part - 1, 999999)))


def _check_others(entry: CatalogProject, catalog: Catalog) -> Iterator[Finding]:
    names = set(catalog.names())
    for number, variant in enumerate(entry.variants, 1):
        if not variant.requires or target(variant) == entry.name:
            continue
        chain = _loop(entry.name, target(variant), catalog, names)
        if chain:
            yield error(
                "redirect-loop",
                entry.source,
                f"variant {number}.requires",
                f"leads back to {entry.name}: {' -> '.join(chain)}",
                "name a project that has the files",
            )
    for other in entry.coherent:
        if len(names) > 1 and other not in names:
            yield warning(
                "coherent-missing",
                entry.source,
                "project.coherent",
                f"{other} has no entry, so its builds cannot be compared",
                "add an entry, or leave it out",
            )


def _loop(name: str, start: str, catalog: Catalog, names: set[str]) -> list[str]:
    """Return the projects from *name* through *start* back to *name*, if they lead back."""
    paths, seen = [[name, start]], {start}
    while paths:
        path = paths.pop()
        if path[-1] not in names:
            continue
        try:
            entry = catalog.project(path[-1])
        except CatalogError:
            continue
        for following in entry.targets if entry is not None else ():
            if following == name:
                return [*path, name]
            if following not in seen:
                seen.add(following)
                paths.append([*path, following])
    return []
