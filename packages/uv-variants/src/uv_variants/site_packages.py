"""Distributions that are installed in the environment of a command, and their variants."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from .named_projects import name_of, normalized

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


def installed(environments: Iterable[Path]) -> list[Installed]:
    """Return all distributions in *environments*."""
    return [
        Installed(name, version, _label(path / "variant.json"), _tags(path))
        for name, version, path in _distributions(environments, "*")
    ]


def installed_variants(environments: Iterable[Path]) -> dict[str, Installed]:
    """Return the variants in *environments*, by name."""
    found: dict[str, Installed] = {}
    for name, version, path in _distributions(environments, "*"):
        label = _label(path / "variant.json")
        if label is not None and name:
            found[name] = Installed(name, version, label, _tags(path), path)
    return found


def installed_names(environments: Iterable[Path]) -> set[str]:
    """Return the names (normalized) of all distributions in *environments*."""
    return {name for name, _ in installed_versions(environments)}


def installed_versions(environments: Iterable[Path]) -> set[tuple[str, str]]:
    """Return normalized name and version of all distributions in *environments*."""
    return {(name, version) for name, version, _ in _distributions(environments, "*")}


def installed_requirements(environments: Iterable[Path], name: str) -> Iterator[str]:
    """Yield what distributions in *environments* require of the project *name* (normalized).

    What they require for their extras is left out.
    """
    for _, _, path in _distributions(environments, "*"):
        try:
            headers = (path / "METADATA").read_text("utf-8", "replace").partition("\n\n")[0]
        except OSError:
            continue
        for line in headers.splitlines():
            header, _, text = line.partition(": ")
            if header == "Requires-Dist" and not re.search(r";.*\bextra\b", text):
                named = name_of(text)
                if named is not None and normalized(named) == name:
                    yield text


def installed_without_variant(environments: Iterable[Path], name: str) -> Installed | None:
    """Return the non-variant distribution *name* of *environments*, None without one."""
    project = normalized(name)
    escaped = project.replace("-", "_")
    for found, version, path in _distributions(environments, f"{escaped}-*"):
        if found == project and not (path / "variant.json").exists():
            return Installed(project, version, None, _tags(path))
    return None


def _distributions(environments: Iterable[Path], stem: str) -> Iterator[tuple[str, str, Path]]:
    """Yield normalized name, version and directory of distributions, by the stem of the latter."""
    for environment in environments:
        for folder in site_packages(environment):
            for path in folder.glob(f"{stem}.dist-info"):
                name, _, version = path.name.removesuffix(".dist-info").rpartition("-")
                yield normalized(name), version, path


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
        text = path.read_text("utf-8")
        import json  # few projects have variants

        tree = json.loads(text)
    except (OSError, ValueError, RecursionError):
        return None
    variants = tree.get("variants") if isinstance(tree, dict) else None
    if not isinstance(variants, Mapping) or len(variants) != 1:
        return None
    return str(next(iter(variants)))
