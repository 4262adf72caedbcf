"""Checks of entries by themselves; `variants_index._catalog_checks` visits what they name.

A check returns findings instead of raising, so that one run reports all of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, Literal, NamedTuple

from packaging.version import Version

from pep_variants import machines, wheel_files
from pep_variants import metadata as variant_metadata
from pep_variants.errors import CatalogError
from pep_variants.metadata import Property

from ._catalogs import Catalog, open_catalog
from .entries import PLACEHOLDER, CatalogProject, CatalogVariant

_LONGEST = 6
"""Parts of a release number, more than real ones have."""


@dataclass(frozen=True)
class Finding:
    """An error, or a warning about a probable mistake, of an entry or a publisher's files.

    Attributes:
        severity: ``error`` for what breaks the format or makes variants unusable, ``note`` for
            what may be meant so, else ``warning``.
        code: stable name of the kind of finding, see docs/reference/findings.md.
        file: the file it is in.
        place: where in the file, empty for the whole of it.
        message: what is wrong.
        remedy: what to do about it.
    """

    severity: Literal["error", "warning", "note"]
    code: str
    file: str
    place: str
    message: str
    remedy: str


error: Final = partial(Finding, "error")
warning: Final = partial(Finding, "warning")


class CheckedEntries(NamedTuple):
    """Entries that were checked, without their sources.

    Attributes:
        number: of the entries.
        entries: those that can be read.
        findings: what is wrong.
    """

    number: int
    entries: list[CatalogProject]
    findings: list[Finding]


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
            for check in (
                _properties(entry),
                _versions(entry),
                _faults(entry),
                _references(entry, catalog),
            ):
                checked.findings.extend(check)
    return checked


def _invalid(problem: CatalogError) -> Finding:
    remedy = "correct it: CONTRIBUTING.md of variants-catalog has the meaning of every key"
    return error("invalid-catalog", problem.source, problem.path, problem.problem, remedy)


def _properties(entry: CatalogProject) -> Iterator[Finding]:
    providers = {row.namespace: row for row in machines.KNOWN}
    for variant in entry.variants:
        for text in variant.properties:
            item = Property.parse(PLACEHOLDER.sub("1.0", text))
            name, values = item.namespace, entry.static.get(item.namespace)
            if values is None and name in providers:
                values = providers[name].factory().known()
            if values is None and name != variant_metadata.ABI_DEPENDENCY:
                code, message = "unknown-namespace", f"no built-in provider has {name!r}"
                remedy = f"list its values in project.static-properties.{name}, or leave it out"
            elif (
                values is None
                or PLACEHOLDER.search(text)
                or item.value in values.get(item.feature, ())
            ):
                continue
            else:
                code, message = "unknown-property", "no machine can have this value"
                remedy = "correct it: variants detect --json has features and values of this one"
            place = f"variant {variant.number}.properties"
            yield error(code, entry.source, place, f"{text!r}: {message}", remedy)


def _versions(entry: CatalogProject) -> Iterator[Finding]:
    """Yield variants that are about no version, or about files that another one is about."""
    for variant in entry.variants:
        if not any(map(variant.admits, sample_versions([variant]))):
            place = f"variant {variant.number}.versions"
            message = f"no version is in {str(variant.versions)!r}"
            yield error("no-version", entry.source, place, message, "correct the specifier")
    for one, other in itertools.combinations(entry.variants, 2):
        no_mark = one.local is None or other.local is None
        kept_twice = entry.is_own(one) is not entry.is_own(other)
        if one.label == other.label and kept_twice and one.properties == other.properties:
            continue  # the project's own index has the build as well
        if one.is_own_null is not other.is_own_null:
            continue  # another null variant comes before it
        if not one.is_for(other.platforms):
            continue
        if one.label == other.label:
            what = f"has the label {one.label!r} of variant {one.number}"
            remedy = "give the two disjoint versions or platforms, or different labels"
        elif (
            not one.is_beside(other)
            and one.place == other.place is not None
            and (no_mark or set(one.local or ()) & set(other.local or ()))
        ):
            what = f"is about the same files as variant {one.number}, which counts"
            remedy = "give the two different local versions, or disjoint versions or platforms"
        else:
            continue
        for each in sample_versions([one, other]):
            if one.admits(each) and other.admits(each):
                message = f"{what}, for version {each} for example"
                yield error("overlap", entry.source, f"variant {other.number}", message, remedy)
                break


def _faults(entry: CatalogProject) -> Iterator[Finding]:
    """Yield known faults that change nothing."""
    for variant in entry.variants:
        for fault in variant.broken:
            alone = replace(variant, broken=(fault,))
            versions = sample_versions([variant, replace(variant, versions=fault.versions)])
            if not any(variant.admits(each) and alone.faults(each) for each in versions):
                message = f"changes nothing of {variant.label!r} on {fault.gpu}"
                place = f"variant {variant.number}.broken"
                remedy = "list the GPU code in properties, and versions that the variant has"
                yield error("fault-without-effect", entry.source, place, message, remedy)


def sample_versions(variants: Iterable[CatalogVariant]) -> list[Version]:
    """Return versions at, below and above each version that *variants* name, ascending.

    What several specifiers admit together, they admit for one of these.
    """
    texts = {"0", "999999"}
    clauses = (clause.version for variant in variants for clause in variant.versions)
    for version in filter(
        None, (wheel_files.read_version(text.removesuffix(".*")) for text in clauses)
    ):
        parts, text = version.release, version.base_version
        longest = "0." * (_LONGEST - len(parts))
        texts |= {str(version), f"{text}.dev0", f"{text}.{longest}1"}
        texts.add(f"{text}.post{(version.post or 0) + 1}")
        for number, part in enumerate(parts):
            above = ".".join(map(str, (*parts[:number], part + 1)))
            texts |= {above, f"{above}.dev0"}
            if part:
                texts.add(".".join(map(str, (*parts[:number], part - 1, 999999))))
    return sorted(filter(None, map(wheel_files.read_version, texts)))


def _references(entry: CatalogProject, catalog: Catalog) -> Iterator[Finding]:
    names = set(catalog.names())
    for other in entry.coherent:
        if len(names) > 1 and other not in names:
            message = f"{other} has no entry, so its builds cannot be compared"
            place, remedy = "project.coherent", "add an entry, or leave it out"
            yield warning("coherent-missing", entry.source, place, message, remedy)
