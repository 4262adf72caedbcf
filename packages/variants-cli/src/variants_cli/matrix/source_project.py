"""What the source of a project says of its own build: its backend and the backend's options."""

from __future__ import annotations

import re
import tarfile
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from pep_variants.formats import toml

from .build_plan import BuildError

SETUPTOOLS, SCIKIT_BUILD, MESON, MATURIN = (
    "setuptools", "scikit-build-core", "meson-python", "maturin",
)  # fmt: skip

_MODULES = {
    "setuptools": SETUPTOOLS,
    "scikit_build_core": SCIKIT_BUILD,
    "mesonpy": MESON,
    "maturin": MATURIN,
}
"""Backends by the first part of the name of their module."""

_PYPROJECT, _SETUP, _MESON_BUILD = "pyproject.toml", "setup.py", "meson.build"
_CARGO = (".cargo/config.toml", ".cargo/config")
_READ = (_PYPROJECT, _MESON_BUILD, *_CARGO)
_BYTES = 1_000_000
"""Bytes that are read of a file; all of these are written by hand."""


@dataclass(frozen=True)
class SourceProject:
    """A project's own settings of its build.

    Attributes:
        backend: name of the build backend on PyPI; its module where that is not known.
        pyproject: contents of ``pyproject.toml``, empty if there is none.
        meson_build: text of the ``meson.build`` beside it, empty if there is none.
        cargo: contents of Cargo's configuration beside it, empty if there is none.
    """

    backend: str = SETUPTOOLS
    pyproject: Mapping[str, Any] = field(default_factory=dict)
    meson_build: str = ""
    cargo: Mapping[str, Any] = field(default_factory=dict)

    @property
    def build_requires(self) -> frozenset[str]:
        """Normalized names of what the build backend needs (PEP 518)."""
        requires = self.table("build-system").get("requires")
        return frozenset(_names(requires if isinstance(requires, list) else []))

    def table(self, *keys: str) -> Mapping[str, Any]:
        """Return a table of ``pyproject.toml``, empty if it is not there."""
        found: object = self.pyproject
        for key in keys:
            found = found.get(key) if isinstance(found, Mapping) else None
        return found if isinstance(found, Mapping) else {}


def read_source(source: Path) -> SourceProject:
    """Return what a source tree or source distribution says.

    Raises:
        BuildError: it is not a project, a file in it is not valid TOML, or the archive cannot be
            read.
        OSError: it cannot be read.
    """
    if source.is_dir() and not any((source / name).is_file() for name in (_PYPROJECT, _SETUP)):
        raise BuildError(f"{source}: there is neither {_PYPROJECT} nor {_SETUP}")
    texts = _texts_of_tree(source) if source.is_dir() else _texts_of_archive(source)
    pyproject = _tree(texts.get(_PYPROJECT, ""), f"{source}: {_PYPROJECT}")
    cargo = next((name for name in _CARGO if name in texts), _CARGO[0])
    return SourceProject(
        backend_of(pyproject),
        pyproject,
        texts.get(_MESON_BUILD, ""),
        _tree(texts.get(cargo, ""), f"{source}: {cargo}"),
    )


def backend_of(pyproject: Mapping[str, Any]) -> str:
    """Return the name of the build backend; setuptools is the default (PEP 518).

    A module that is not known, such as one of the project itself (``backend-path``) or a backend
    with plugins, is named after the one known backend that ``requires`` lists, if there is one.
    """
    system = pyproject.get("build-system")
    table = system if isinstance(system, Mapping) else {}
    module = str(table.get("build-backend") or "")
    first = re.split(r"[.:]", module)[0]
    if first in _MODULES:
        return _MODULES[first]
    requires = table.get("requires")
    names = set(_names(requires if isinstance(requires, list) else []))
    known = [name for name in _MODULES.values() if name in names]
    if not module:
        return SETUPTOOLS
    return known[0] if len(known) == 1 else first


def _names(requirements: Iterable[object]) -> Iterable[str]:
    for text in requirements:
        try:
            yield canonicalize_name(Requirement(str(text)).name)
        except InvalidRequirement:
            continue


def _tree(text: str, place: str) -> dict[str, Any]:
    try:
        return toml.loads(text)
    except (ValueError, RecursionError) as error:
        raise BuildError(f"{place} is not valid TOML: {error}") from None


def _texts_of_tree(folder: Path) -> dict[str, str]:
    texts = {}
    for name in _READ:
        path = folder / name
        if path.is_file():
            with path.open("rb") as stream:
                texts[name] = stream.read(_BYTES).decode("utf-8", "replace")
    return texts


def _texts_of_archive(sdist: Path) -> dict[str, str]:
    texts = {}
    try:
        if sdist.suffix == ".zip":
            with zipfile.ZipFile(sdist) as archive:
                for info in archive.infolist():
                    if (name := _own(info.filename)) is not None:
                        with archive.open(info) as stream:
                            texts[name] = stream.read(_BYTES).decode("utf-8", "replace")
            return texts
        with tarfile.open(sdist) as tar:
            for member in tar:
                name = _own(member.name)
                contents = tar.extractfile(member) if name and member.isfile() else None
                if name and contents is not None:
                    texts[name] = contents.read(_BYTES).decode("utf-8", "replace")
    except (tarfile.TarError, zipfile.BadZipFile, EOFError) as error:
        raise BuildError(f"{sdist}: not a source distribution: {error}") from None
    return texts


def _own(member: str) -> str | None:
    """Return the name of a member that is read, below the one folder of the archive, or None."""
    _, _, name = member.partition("/")
    return name if name in _READ else None
