"""The source that all variants are built from: a source tree or a source distribution."""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from pep_variants.formats import toml

from .model import BuildError

PYPROJECT = "pyproject.toml"
SETUPTOOLS = "setuptools"


def read_pyproject(source: Path) -> Mapping[str, Any]:
    """Return the contents of the ``pyproject.toml`` of *source*, empty if it has only a setup.py.

    Raises:
        BuildError: it is not a project, its pyproject.toml is not valid TOML, or the archive cannot
            be read.
        OSError: it cannot be read.
    """
    text = b""
    if source.is_dir():
        path = source / PYPROJECT
        if not path.is_file() and not (source / "setup.py").is_file():
            raise BuildError(f"{source}: there is neither {PYPROJECT} nor setup.py")
        text = path.read_bytes() if path.is_file() else b""
    else:
        for name, _, stream in members(source):
            if name.partition("/")[2] == PYPROJECT and stream is not None:
                text = stream.read()
    try:
        return toml.loads(text.decode())
    except (ValueError, RecursionError) as error:
        raise BuildError(f"{source}: {PYPROJECT} is not valid TOML: {error}") from None


def build_requires(pyproject: Mapping[str, Any]) -> frozenset[str]:
    """Return the normalized names of what the build backend needs (PEP 518)."""
    requires = _build_system(pyproject).get("requires")
    found = set()
    for text in requires if isinstance(requires, list) else []:
        try:
            found.add(str(canonicalize_name(Requirement(str(text)).name)))
        except InvalidRequirement:
            continue
    return frozenset(found)


def is_setuptools(pyproject: Mapping[str, Any]) -> bool:
    """Return whether setuptools builds the project: it is the default (PEP 518).

    Its backend may be wrapped by one of the project itself (``backend-path``).
    """
    system = _build_system(pyproject)
    module = str(system.get("build-backend") or SETUPTOOLS)
    wrapped = "backend-path" in system and SETUPTOOLS in build_requires(pyproject)
    return wrapped or re.split(r"[.:]", module)[0] == SETUPTOOLS


def _build_system(pyproject: Mapping[str, Any]) -> Mapping[str, Any]:
    found = pyproject.get("build-system")
    return found if isinstance(found, Mapping) else {}


def members(sdist: Path) -> Iterator[tuple[str, int, IO[bytes] | None]]:
    """Yield name (and that of its target), executable bits and contents of members of *sdist*.

    Raises:
        BuildError: it is not an archive (PEP 625).
    """
    try:
        with tarfile.open(sdist) as tar:
            for member in tar:
                contents = tar.extractfile(member) if member.isfile() else None
                yield member.name + member.linkname, member.mode & 0o111, contents
    except (tarfile.TarError, EOFError) as error:
        raise BuildError(f"{sdist}: not a source distribution: {error}") from None
