"""Distributions that are installed in the environment of a command, and their variants."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

if TYPE_CHECKING:
    from .invocation import Invocation
    from .place import Place

_MAX_BYTES = 1 << 20


@dataclass(frozen=True)
class Installed:
    """A distribution that is installed.

    Attributes:
        name: normalized project name.
        version: as in the name of its dist-info directory.
        label: of its variant, None without one.
        tags: of its wheel.
    """

    name: str
    version: str
    label: str | None
    tags: frozenset[str] = frozenset()


def environment_of(invocation: Invocation, place: Place, root: Path | None) -> Path | None:
    """Return where the command installs, None if only uv can find out.

    Args:
        invocation: uv's command line.
        place: where it runs.
        root: directory of the project, None without one.
    """
    environ = place.environ
    if invocation.command[:1] != ("pip",):
        if root is None:
            return None
        named = environ.get("UV_PROJECT_ENVIRONMENT")
        active = environ.get("VIRTUAL_ENV")
        if invocation.has("active") and active:
            return Path(active)
        return root / (named or ".venv")
    if invocation.has("system") or environ.get("UV_SYSTEM_PYTHON"):
        return None
    for option in ("target", "prefix"):
        value = invocation.last(option)
        if value is not None:
            return place.cwd / value
    python = invocation.last("python") or environ.get("UV_PYTHON")
    if python:
        path = place.cwd / python
        # A path to an environment or its interpreter; a version has no path.
        return next(
            (each for each in (path, *path.parents[:2]) if (each / "pyvenv.cfg").is_file()), None
        )
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if environ.get(name):
            return Path(environ[name])
    start = place.cwd.absolute()
    for folder in (start, *start.parents):
        if (folder / ".venv" / "pyvenv.cfg").is_file():
            return folder / ".venv"
    return None


def installed_variants(environment: Path | None) -> dict[str, Installed]:
    """Return the variants in *environment*, by name."""
    found: dict[str, Installed] = {}
    for folder in _site_packages(environment) if environment is not None else ():
        for path in folder.glob("*.dist-info/variant.json"):
            label = _label(path)
            name, _, version = path.parent.name.removesuffix(".dist-info").rpartition("-")
            if label is not None and name:
                normalized = canonicalize_name(name)
                found[normalized] = Installed(normalized, version, label, _tags(path.parent))
    return found


def installed_names(environment: Path | None) -> set[str]:
    """Return the names (normalized) of all distributions in *environment*."""
    return {name for name, _ in installed_versions(environment)}


def installed_versions(environment: Path | None) -> set[tuple[str, str]]:
    """Return normalized name and version of all distributions in *environment*."""
    found: set[tuple[str, str]] = set()
    for folder in _site_packages(environment) if environment is not None else ():
        for path in folder.glob("*.dist-info"):
            name, _, version = path.name.removesuffix(".dist-info").rpartition("-")
            found.add((canonicalize_name(name), version))
    return found


def installed_without_variant(environment: Path | None, name: str) -> Installed | None:
    """Return the non-variant distribution *name* of *environment*, None without one."""
    if environment is None:
        return None
    escaped = canonicalize_name(name).replace("-", "_")
    for folder in _site_packages(environment):
        for path in folder.glob(f"{escaped}-*.dist-info"):
            version = path.name[len(escaped) + 1 : -len(".dist-info")]
            if not (path / "variant.json").exists():
                return Installed(canonicalize_name(name), version, None, _tags(path))
    return None


def _site_packages(environment: Path) -> Iterator[Path]:
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
