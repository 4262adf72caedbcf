"""Compiler flags: how they reach the compilers, and checks of variables that builds read.

setuptools 75.7 and newer compiles with ``CFLAGS`` *instead of* the interpreter's own flags, ``-O3``
among them, so these come first there. CMake, Meson and others add the variables to flags of their
own.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from .source import is_setuptools

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
