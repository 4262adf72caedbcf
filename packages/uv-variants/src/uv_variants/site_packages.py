"""Distributions that are installed in the environment of a command, and their variants."""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from .project_names import normalized

_MAX_BYTES = 1 << 20


@dataclass(frozen=True)
class Installed:
    """A distribution that is installed.

    Attributes:
        name: normalized project name.
        version: as in the name of its dist-info directory.
        label: of its variant, None without one.
        tags: of its wheel.
        folder: its dist-info directory, None for what is only locked.
    """

    name: str
    version: str
    label: str | None
    tags: frozenset[str] = frozenset()
    folder: Path | None = field(default=None, compare=False)


def installed_variants(environments: Iterable[Path]) -> dict[str, Installed]:
    """Return the variants in *environments*, by name."""
    found: dict[str, Installed] = {}
    for folder in _folders(environments):
        for path in folder.glob("*.dist-info/variant.json"):
            label = _label(path)
            name, _, version = path.parent.name.removesuffix(".dist-info").rpartition("-")
            if label is not None and name:
                project = normalized(name)
                tags = _tags(path.parent)
                found[project] = Installed(project, version, label, tags, path.parent)
    return found


def installed_names(environments: Iterable[Path]) -> set[str]:
    """Return the names (normalized) of all distributions in *environments*."""
    return {name for name, _ in installed_versions(environments)}


def installed_versions(environments: Iterable[Path]) -> set[tuple[str, str]]:
    """Return normalized name and version of all distributions in *environments*."""
    found: set[tuple[str, str]] = set()
    for folder in _folders(environments):
        for path in folder.glob("*.dist-info"):
            name, _, version = path.name.removesuffix(".dist-info").rpartition("-")
            found.add((normalized(name), version))
    return found


def installed_without_variant(environments: Iterable[Path], name: str) -> Installed | None:
    """Return the non-variant distribution *name* of *environments*, None without one."""
    escaped = normalized(name).replace("-", "_")
    for folder in _folders(environments):
        for path in folder.glob(f"{escaped}-*.dist-info"):
            version = path.name[len(escaped) + 1 : -len(".dist-info")]
            if not (path / "variant.json").exists():
                return Installed(normalized(name), version, None, _tags(path))
    return None


def installed_files(environments: Iterable[Path], name: str) -> set[Path]:
    """Return the files of the distribution *name* (normalized), without those of its dist-info."""
    found: set[Path] = set()
    for folder in _folders(environments):
        for path in folder.glob("*.dist-info/RECORD"):
            if normalized(path.parent.name.partition("-")[0]) == name:
                with path.open(encoding="utf-8", errors="replace", newline="") as stream:
                    rows = (row[0] for row in csv.reader(stream) if row)
                    found |= {folder / row for row in rows if ".dist-info/" not in row}
    return found


def _folders(environments: Iterable[Path]) -> Iterator[Path]:
    for environment in environments:
        yield from site_packages(environment)


def site_packages(environment: Path) -> Iterator[Path]:
    """Yield the directories with the distributions of *environment*."""
    if (environment / "pyvenv.cfg").is_file() or (environment / "conda-meta").is_dir():
        if os.name == "nt":
            yield environment / "Lib" / "site-packages"
        else:
            yield from environment.glob("lib/python*/site-packages")
        return
    yield environment  # --target
    yield from environment.glob("lib/python*/site-packages")  # --prefix
    if sys.platform == "win32":
        yield environment / "Lib" / "site-packages"


def _tags(folder: Path) -> frozenset[str]:
    try:
        lines = (folder / "WHEEL").read_text("utf-8", "replace").splitlines()
    except OSError:
        return frozenset()
    return frozenset(line[4:].strip() for line in lines if line.startswith("Tag:"))


def _label(path: Path) -> str | None:
    try:
        if path.stat().st_size > _MAX_BYTES:
            return None
        tree = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    variants = tree.get("variants") if isinstance(tree, dict) else None
    if not isinstance(variants, Mapping) or len(variants) != 1:
        return None
    return str(next(iter(variants)))
