"""Checks of entries by themselves; `variants_index.catalog_checks` visits what they name.

A check returns findings instead of raising, so that one run reports all of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final, Literal, NamedTuple

from packaging.version import Version

from pep_variants.detect.registry import KNOWN
from pep_variants.errors import CatalogError
from pep_variants.model.filename import read_version
from pep_variants.model.property import ABI_DEPENDENCY, Property

from .model import PLACEHOLDER, CatalogProject, CatalogVariant
from .store import Catalog, open_catalog

_LONGEST = 6
"""Parts of a release number, more than real ones have."""


class CatalogFinding(NamedTuple):
    """An error, or a warning about a probable mistake.

    Attributes:
        severity: ``error`` for what makes variants unusable, else ``warning``.
        code: stable name of the kind of finding, see docs/reference/findings.md.
        file: the file of the entry.
        place: where in the file, empty for the whole of it.
        message: what is wrong.
        remedy: what to do about it.
    """

    severity: Literal["error", "warning"]
    code: str
    file: str
    place: str
    message: str
    remedy: str


error: Final = partial(CatalogFinding, "error")
warning: Final = partial(CatalogFinding, "warning")


class CheckedEntries(NamedTuple):
    """Entries that were checked, without their sources.

    Attributes:
        number: of the entries.
        entries: those that can be read.
        findings: what is wrong.
    """

    number: int
    entries: list[CatalogProject]
    findings: list[CatalogFinding]


def check_file(path: Path) -> CheckedEntries:
    """Check the entry, or the entries, in a file or directory."""
    try:
        catalog = open_catalog(path)
        names = list(catalog.names())
    except CatalogError as problem:
        return CheckedEntries(1, [], [_invalid(problem)])
    checked = check_entries(catalog, names)
    if path.suffix == ".toml" and path.stem not in names:
        message = f"is {names[0]!r}: a directory of entries would not have it under this name"
        remedy = f"rename the file to {names[0]}.toml"
        checked.findings.append(
            error("catalog-filename", str(path), "project.name", message, remedy)
        )
    return checked


def check_entries(catalog: Catalog, names: Sequence[str]) -> CheckedEntries:
    """Check the entries *names* of *catalog*, and whether they fit those that they refer to."""
    checked = CheckedEntries(len(names), [], [])
    for name in names:
        try:
            entry = catalog.project(name)
        except CatalogError as problem:
            checked.findings.append(_invalid(problem))
            continue
        if entry is not None:
            checked.entries.append(entry)
            for check in (_properties(entry), _versions(entry), _references(entry, catalog)):
                checked.findings.extend(check)
    return checked


def _invalid(problem: CatalogError) -> CatalogFinding:
    remedy = "correct it: CONTRIBUTING.md of variants-catalog has the meaning of every key"
    return error("invalid-catalog", problem.source, problem.path, problem.problem, remedy)


def _properties(entry: CatalogProject) -> Iterator[CatalogFinding]:
    providers = {row.namespace: row for row in KNOWN}
    for number, variant in enumerate(entry.variants, 1):
        place = f"variant {number}.properties"
        for text in variant.properties:
            item = Property.parse(PLACEHOLDER.sub("1.0", text))
            values = entry.static.get(item.namespace)
            if values is None and item.namespace in providers:
                values = providers[item.namespace].factory().known()
            if item.namespace == ABI_DEPENDENCY:
                continue
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
                message = f"{text!r} is a value that no machine can have"
                remedy = "correct it: variants detect --json has the features, and values of this "
                remedy += "machine"
                yield error("unknown-property", entry.source, place, message, remedy)


def _versions(entry: CatalogProject) -> Iterator[CatalogFinding]:
    """Yield variants that are about no version, or about files that another one is about."""
    numbered = list(enumerate(entry.variants, 1))
    for number, variant in numbered:
        if not any(map(variant.admits, sample_versions([variant]))):
            place = f"variant {number}.versions"
            message = f"no version is in {str(variant.versions)!r}"
            yield error("no-version", entry.source, place, message, "correct the specifier")
    for (first, one), (second, other) in itertools.combinations(numbered, 2):
        same_files = (
            one.local is None or other.local is None or bool(set(one.local) & set(other.local))
        )
        if one.label == other.label:
            what = f"has the label {one.label!r} of variant {first}"
            remedy = "give the two disjoint versions, or different labels"
        elif one.place is not None and one.place == other.place and same_files:
            what = f"is about the same files as variant {first}, which counts"
            remedy = "give the two different local versions, or disjoint versions"
        else:
            continue
        samples = sample_versions([one, other])
        both = next((each for each in samples if one.admits(each) and other.admits(each)), None)
        if both is not None:
            message = f"{what}, for version {both} for example"
            yield error("overlap", entry.source, f"variant {second}", message, remedy)


def sample_versions(variants: Iterable[CatalogVariant]) -> list[Version]:
    """Return versions at, below and above each version that *variants* name, ascending.

    What several specifiers admit together, they admit for one of these.
    """
    texts = {"0", "999999"}
    for variant in variants:
        for clause in variant.versions:
            version = read_version(clause.version.removesuffix(".*"))
            if version is None:
                continue
            release = version.release
            text = ".".join(map(str, release))
            zeros = "0." * (_LONGEST - len(release))
            texts |= {str(version), f"{text}.dev0", f"{text}.{zeros}1"}
            texts.add(f"{text}.post{(version.post or 0) + 1}")
            for number, part in enumerate(release):
                above = ".".join(map(str, (*release[:number], part + 1)))
                texts |= {above, f"{above}.dev0"}
                if part:
                    texts.add(".".join(map(str, (*release[:number], part - 1, 999999))))
    return sorted(filter(None, map(read_version, texts)))


def _references(entry: CatalogProject, catalog: Catalog) -> Iterator[CatalogFinding]:
    names = set(catalog.names())
    for other in entry.coherent:
        if len(names) > 1 and other not in names:
            message = f"{other} has no entry, so its builds cannot be compared"
            place, remedy = "project.coherent", "add an entry, or leave it out"
            yield warning("coherent-missing", entry.source, place, message, remedy)
