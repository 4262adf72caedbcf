"""Resolutions into one lock file, the same bytes for the same answer."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import tomli_w
from packaging.markers import Marker
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from pep_variants.errors import redacted
from pep_variants.markers import uses_variant_terms

from ..index.session import is_local, local_path
from ..resolution.candidate import Candidate
from ..resolution.result import Package, Resolution
from ..resolution.target import Target
from . import tool
from .errors import LockError

VERSION = "1.0"


@dataclass(frozen=True)
class _Entry:
    """One ``[[packages]]`` table to be: one version, as several targets have it."""

    packages: Sequence[tuple[Target, Package]]

    @property
    def first(self) -> Package:
        return self.packages[0][1]

    @property
    def files(self) -> list[Candidate]:
        """Every file that is listed, by name."""
        found = {
            candidate.filename: candidate
            for _, package in self.packages
            for candidate in package.alternatives
        }
        return [found[name] for name in sorted(found)]


def lock(
    resolutions: Sequence[Resolution],
    *,
    created_by: str,
    folder: Path,
    document: Callable[[Package], Mapping[str, Any]],
    digests: Callable[[Candidate], Mapping[str, str]],
) -> bytes:
    """Return the contents of a ``pylock.toml`` that holds all *resolutions*.

    Args:
        resolutions: one per target.
        created_by: name of the tool.
        folder: where the file is going to be; local files are named relative to it.
        document: gives the index-level variant metadata of a package, as its source has it.
        digests: gives hashes of a file for which the index has none.

    Raises:
        LockError: the targets need different versions of a package, and no marker tells these
            targets apart; or something has no place in a lock file.
    """
    targets = [resolution.target for resolution in resolutions]
    entries = _entries(resolutions)
    versions: dict[str, int] = {}
    for entry in entries:
        versions[entry.first.name] = versions.get(entry.first.name, 0) + 1
    by_need = any(map(uses_variant_terms, itertools.chain(*map(_all_requires, entries))))
    tree: dict[str, Any] = {
        "lock-version": VERSION,
        "environments": sorted({_marker(target) for target in targets}),
        "created-by": created_by,
        "packages": [
            _package(entry, targets, versions, entries, folder, document, digests)
            for entry in entries
        ],
    }
    if by_need:
        asked: dict[str, set[str]] = {}
        for resolution in resolutions:
            for name, extras in resolution.requested.items():
                asked.setdefault(name, set()).update(extras)
        for entry, package in zip(entries, tree["packages"], strict=True):
            if _is_conditional(entry):
                package["tool"] = {tool.KEY: {tool.REQUIRES_DIST: _requires_dist(entry)}}
        tree["tool"] = {tool.KEY: {tool.REQUIREMENTS: [*map(_named, sorted(asked.items()))]}}
    return tomli_w.dumps(tree).encode()


def _entries(resolutions: Sequence[Resolution]) -> list[_Entry]:
    found: dict[tuple[str, Any], list[tuple[Target, Package]]] = {}
    for resolution in resolutions:
        for package in resolution.packages:
            found.setdefault((package.name, package.version), []).append(
                (resolution.target, package)
            )
    entries = [_Entry(found[key]) for key in sorted(found)]
    for _, group in itertools.groupby(entries, key=lambda entry: entry.first.name):
        for one, other in itertools.combinations(group, 2):
            _check_apart(one, other)
    return entries


def _check_apart(one: _Entry, other: _Entry) -> None:
    for target, package in one.packages:
        for rival, different in other.packages:
            if _marker(target) == _marker(rival):
                raise LockError(
                    f"{target.name} needs {package.name} {package.version} and {rival.name} needs "
                    f"{different.version}, but no marker of a lock file tells the two apart: "
                    "give them files of their own, or constrain the version with -c"
                )


def _marker(target: Target) -> str:
    return str(Marker(target.marker))


def _package(
    entry: _Entry,
    targets: Sequence[Target],
    versions: Mapping[str, int],
    entries: Iterable[_Entry],
    folder: Path,
    document: Callable[[Package], Mapping[str, Any]],
    digests: Callable[[Candidate], Mapping[str, str]],
) -> dict[str, Any]:
    package = entry.first
    tree: dict[str, Any] = {"name": package.name, "version": str(package.version)}
    markers = sorted({_marker(target) for target, _ in entry.packages})
    if set(markers) != {_marker(target) for target in targets}:
        tree["marker"] = str(Marker(" or ".join(f"({marker})" for marker in markers)))
    pythons = {item.file.requires_python for item in entry.files}
    if len(pythons) == 1 and (python := _specifier(pythons.pop())) is not None:
        tree["requires-python"] = python
    depends = sorted({name for _, item in entry.packages for name in item.depends})
    if depends:
        tree["dependencies"] = [
            dependency
            for name in depends
            for dependency in _dependencies(name, entry, versions, entries)
        ]
    index = _index(package)
    # Of what is named directly, only wheels that are listed as such have a variant to select.
    if package.candidate.is_directory:
        tree["directory"] = {"path": _relative(local_path(package.file.url), folder)}
        if package.editable:
            tree["directory"]["editable"] = True
    elif package.candidate.direct and package.label is None:
        tree["archive"] = _file(package.candidate, folder, digests)
    else:
        if index is not None and not package.candidate.direct:
            tree["index"] = index
        for candidate in entry.files:
            if not candidate.is_wheel:
                tree["sdist"] = _file(candidate, folder, digests)
        wheels = [item for item in entry.files if item.is_wheel]
        if wheels:
            tree["wheels"] = [_file(wheel, folder, digests) for wheel in wheels]
    labels = {item.label for item in entry.files if item.label is not None}
    if labels:
        tree["variants-json"] = _variants(entry, labels, document)
    return tree


def _specifier(text: str | None) -> str | None:
    """Return *text* as lock files want it, None for what makes no sense and was ignored."""
    try:
        return None if text is None else str(SpecifierSet(text))
    except InvalidSpecifier:
        return None


def _dependencies(
    name: str, entry: _Entry, versions: Mapping[str, int], entries: Iterable[_Entry]
) -> Iterable[dict[str, str]]:
    """Yield what names the entries that *entry* depends on: by version only where need be."""
    if versions.get(name, 0) < 2:
        yield {"name": name}
        return
    own = {target.name for target, _ in entry.packages}
    for other in entries:
        if other.first.name == name and own & {target.name for target, _ in other.packages}:
            yield {"name": name, "version": str(other.first.version)}


def _index(package: Package) -> str | None:
    source = package.candidate.source
    base, _, last = source.rstrip("/").rpartition("/")
    return f"{base}/" if last == package.name else None


def _file(
    candidate: Candidate, folder: Path, digests: Callable[[Candidate], Mapping[str, str]]
) -> dict[str, Any]:
    file = candidate.file
    tree: dict[str, Any] = {}
    if unquote(urlsplit(file.url).path.rpartition("/")[2]) != candidate.filename:
        tree["name"] = candidate.filename
    if file.upload_time is not None and (uploaded := _time(file.upload_time)) is not None:
        tree["upload-time"] = uploaded
    if is_local(file.url):
        tree["path"] = _relative(local_path(file.url), folder)
    else:
        tree["url"] = redacted(file.url).replace("****@", "")
    if file.size is not None:
        tree["size"] = file.size
    hashes = dict(file.hashes) or digests(candidate)
    tree["hashes"] = dict(sorted(hashes.items()))
    return tree


def _relative(path: Path, folder: Path) -> str:
    try:
        return Path(os.path.relpath(path, folder)).as_posix()
    except ValueError:  # another drive
        return path.as_posix()


def _time(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    return found if found.tzinfo is not None else None


def _variants(
    entry: _Entry, labels: set[str], document: Callable[[Package], Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the metadata with the labels that are listed, each of them whole."""
    found: dict[str, Any] | None = None
    for _, package in entry.packages:
        if package.metadata is None:
            continue
        tree = _without_none(document(package))
        known = {package.metadata.label_of(label) for label in labels} | labels
        tree["variants"] = {
            label: properties
            for label, properties in sorted(tree.get("variants", {}).items())
            if label in known
        }
        if found is None:
            found = tree
        elif found != tree:
            raise LockError(
                f"{package.name} {package.version}: its sources have different variant metadata, "
                "of which a lock file holds one: give the targets files of their own"
            )
    if found is None:
        raise LockError(
            f"{entry.first.name} {entry.first.version}: nothing is known of its variants "
            f"{', '.join(sorted(labels))}"
        )
    return found


def _without_none(value: Any) -> Any:  # noqa: ANN401
    """Return JSON data without null, which TOML has not got."""
    if isinstance(value, Mapping):
        return {key: _without_none(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_none(item) for item in value if item is not None]
    return value


def _all_requires(entry: _Entry) -> Iterable[str]:
    for _, package in entry.packages:
        yield from itertools.chain(*package.requires_dist.values())


def _is_conditional(entry: _Entry) -> bool:
    """Return whether it takes more than a list of names to say what a package depends on."""
    if any(package.extras for _, package in entry.packages):
        return True
    return any(uses_variant_terms(text) or "[" in text for text in _all_requires(entry))


def _requires_dist(entry: _Entry) -> list[str] | dict[str, list[str]]:
    by_label = {
        label: list(requires)
        for _, package in entry.packages
        for label, requires in package.requires_dist.items()
    }
    every = list(by_label.values())
    if all(texts == every[0] for texts in every):
        return every[0]
    return dict(sorted(by_label.items()))


def _named(asked: tuple[str, set[str]]) -> str:
    name, extras = asked
    wanted = sorted(extras - {""})
    return f"{name}[{','.join(wanted)}]" if wanted else name
