"""Which variants are installed in the environment that a command works on."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .invocation import Invocation
    from .plan import Place

_MAX_BYTES = 1 << 20


@dataclass(frozen=True)
class Installed:
    """A distribution that is installed.

    Attributes:
        name: normalized project name.
        version: as its folder has it.
        label: of the variant, None for one without.
        tags: of the wheel it came from.
    """

    name: str
    version: str
    label: str | None
    tags: frozenset[str] = frozenset()


def normalized_name(name: str) -> str:
    """Return the normalized form of a project's name (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def environment_of(invocation: Invocation, place: Place, root: Path | None) -> Path | None:
    """Return where the command installs, None if that cannot be told without asking uv.

    Args:
        invocation: uv's command line.
        place: where it runs.
        root: of the project, for commands that are about one.
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
        # A path to an environment, or to its interpreter; a version says nothing of where.
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
    found = {}
    for folder in _site_packages(environment) if environment is not None else ():
        for path in folder.glob("*.dist-info/variant.json"):
            label = _label(path)
            name, _, version = path.parent.name.removesuffix(".dist-info").rpartition("-")
            if label is not None and name:
                normalized = normalized_name(name)
                found[normalized] = Installed(normalized, version, label, _tags(path.parent))
    return found


def installed_names(environment: Path | None) -> set[str]:
    """Return the names (normalized) of all distributions in *environment*."""
    return {
        normalized_name(path.name.partition("-")[0])
        for folder in (_site_packages(environment) if environment is not None else ())
        for path in folder.glob("*.dist-info")
    }


def installed_without_variant(environment: Path | None, name: str) -> Installed | None:
    """Return the distribution *name* of *environment*, None if it is not there."""
    if environment is None:
        return None
    escaped = normalized_name(name).replace("-", "_")
    for folder in _site_packages(environment):
        for path in folder.glob(f"{escaped}-*.dist-info"):
            version = path.name[len(escaped) + 1 : -len(".dist-info")]
            if not (path / "variant.json").exists():
                return Installed(normalized_name(name), version, None, _tags(path))
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
