"""The source that is built, and what its build backend means for compiler flags.

setuptools 75.7 and newer compiles with ``CFLAGS`` *instead of* the interpreter's own flags, ``-O3``
among them, so these come first there. CMake, Meson and others add the variables to flags of their
own.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from pep_variants import safe_files

from .model import BuildError, VariantSettings

PYPROJECT = "pyproject.toml"
SETUPTOOLS = "setuptools"

_VARIABLES = {
    "c": "CFLAGS",
    "cxx": "CXXFLAGS",
    "fortran": "FFLAGS",
    "cuda": "NVCC_APPEND_FLAGS",  # read by nvcc itself, whatever runs it
    "rust": "RUSTFLAGS",
    "link": "LDFLAGS",
    "msvc": "_CL_",  # read by cl itself
}
LANGUAGES = tuple(_VARIABLES)
"""Languages that flags can be given for; ``link`` is the linker, ``msvc`` the compiler of Visual
Studio, which takes the place of ``c`` and ``cxx`` on Windows."""

_REPLACING = ("c", "cxx")
"""Languages whose variable takes the place of the interpreter's flags in setuptools."""

INTERPRETER = "\0"
"""Stands for the flags of an interpreter on another machine."""


def variables(
    settings: VariantSettings,
    pyproject: Mapping[str, Any],
    environ: Mapping[str, str],
    **machine: str,
) -> dict[str, str]:
    """Return the variables of a build: those that are set, appended to, and of `additions`.

    Args:
        settings: of the variant.
        pyproject: of the project that is built.
        environ: environment of the build without them.
        machine: see `additions`.
    """
    own = dict(settings.environment)
    for name, words in settings.flags.items():
        own[name] = " ".join([*filter(None, [environ.get(name, "")]), *words])
    more = additions(settings.compiler_flags, pyproject, {**environ, **own}, **machine)
    return {**own, **more}


def additions(
    flags: Mapping[str, Sequence[str]],
    pyproject: Mapping[str, Any],
    environ: Mapping[str, str],
    *,
    system: str = sys.platform,
    interpreter: str = INTERPRETER,
) -> dict[str, str]:
    """Return the variables to set so that compilers get *flags* in addition.

    Args:
        flags: words by language, see `LANGUAGES`.
        pyproject: of the project that is built.
        environ: environment of the build without them.
        system: `sys.platform` of the machine that builds.
        interpreter: what the interpreter that builds compiles extensions with.
    """
    found = {}
    for language, words in flags.items():
        if language == "msvc" and system != "win32":
            continue
        if not words or (language in _REPLACING and system == "win32" and flags.get("msvc")):
            continue
        added = subprocess.list2cmdline(words) if system == "win32" else shlex.join(words)
        own = interpreter if language in _REPLACING and is_setuptools(pyproject) else ""
        before = environ.get(_VARIABLES[language], own)
        found[_VARIABLES[language]] = f"{before} {added}".lstrip(" ")
    return found


_CODE = re.compile(r"(?:sm|compute)?_?(\d{1,2})(\d)([af]?)(\+PTX)?")


def problem_of(name: str, text: str) -> str:
    """Return why the variable *name* cannot be *text*, empty if it can or is not known.

    PyTorch's own build and extensions take ``9.0`` in ``TORCH_CUDA_ARCH_LIST``, but neither
    ``sm_90``, which some build documents have, nor CMake's ``90``.
    """
    for word in re.split(r"[;,\s]+", text) if name == "TORCH_CUDA_ARCH_LIST" else ():
        if code := _CODE.fullmatch(word):
            meant = f"{code[1]}.{code[2]}{code[3]}{code[4] or ''}"
            return f"PyTorch does not take {word!r}: write {meant}"
    return ""


# The source tree or source distribution that is built.


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
        return safe_files.read_toml(text.decode())
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
