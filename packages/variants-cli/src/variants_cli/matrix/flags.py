"""Compiler flags: how they reach the compilers, and checks of variables that builds read.

setuptools 75.7 and newer compiles with ``CFLAGS`` *instead of* the interpreter's own flags, ``-O3``
among them, so these come first there. CMake, Meson and others add the variables to flags of their
own.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .model import BuildError, Matrix, Variant
from .source import is_setuptools, read_pyproject

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
_OPTIMISES = re.compile(r"(?:^|\s)[-/]O\S")

INTERPRETER = "\0"
"""Stands for the flags of an interpreter on another machine."""
COMMAND = '$(python -c \'import sysconfig; print(sysconfig.get_config_var("CFLAGS") or "")\')'
"""Gives them in a POSIX shell."""


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


def planned_additions(
    variant: Variant, pyproject: Mapping[str, Any], system: str = "linux"
) -> dict[str, str]:
    """Return what `additions` says for a build on another machine.

    Args:
        variant: what is built.
        pyproject: of the project that is built.
        system: `sys.platform` of the machine that builds, if the variant does not say.
    """
    settings, target = variant.settings, variant.platform
    own = {**settings.environment, **{n: " ".join(text) for n, text in settings.flags.items()}}
    return additions(
        settings.compiler_flags, pyproject, own, system=target.system if target else system
    )


def planned_source(matrix: Matrix, variants: Iterable[Variant]) -> Mapping[str, Any]:
    """Return the pyproject.toml of *matrix*; empty where no variant has flags or there is none."""
    if not any(variant.settings.compiler_flags for variant in variants):
        return {}
    try:
        return read_pyproject(matrix.build.source)
    except (BuildError, OSError):  # there may be no source here, only a plan
        return {}


def warnings_of_lost_flags(
    matrix: Matrix, variants: Iterable[Variant], environ: Mapping[str, str]
) -> list[str]:
    """Return a warning for each variable of *variants* that drops the interpreter's own flags.

    Flags that optimise are meant to replace those.
    """
    interpreter = str(sysconfig.get_config_var("CFLAGS") or "")
    found: dict[tuple[str, str], list[str]] = {}
    for variant in variants:
        settings = variant.settings
        words = {name: " ".join(text) for name, text in settings.flags.items()}
        for language in _REPLACING:
            name = _VARIABLES[language]
            text = {**settings.environment, **words}.get(name, "")
            if text and name not in environ and not _OPTIMISES.search(text):
                found.setdefault((language, text), []).append(variant.label)
    if not found or not _OPTIMISES.search(interpreter):
        return []
    try:
        if not is_setuptools(read_pyproject(matrix.build.source)):
            return []
    except (BuildError, OSError):  # there may be no source here, only a plan
        return []
    return [
        f"{', '.join(labels)}: {_VARIABLES[language]} takes the place of what this Python compiles "
        f"with in setuptools 75.7 and newer ({interpreter}): write "
        f"flags.{language} = {json.dumps(shlex.split(text))} instead, which adds to it"
        for (language, text), labels in found.items()
    ]


# Variables whose values are known.

_NAMED = (
    "Kepler+Tesla", "Kepler", "Maxwell+Tegra", "Maxwell", "Pascal", "Volta+Tegra", "Volta",
    "Turing", "Ampere+Tegra", "Ampere", "Ada", "Hopper", "Blackwell+Tegra", "Blackwell",
)  # fmt: skip
_WHOLE = ("All", "Common", "Auto", "native")
"""Words that stand for the whole list, for one of the two readers."""
_CAPABILITY = re.compile(r"\d{1,2}\.\d[af]?(\(\d{1,2}\.\d\))?")
_CODE = re.compile(r"(?:sm|compute)?_?(\d{1,2})(\d)([af]?)(\+PTX)?")


def problem_of(name: str, text: str) -> str:
    """Return why the variable *name* cannot be *text*, empty if it can or is not known.

    ``TORCH_CUDA_ARCH_LIST`` is read by PyTorch's own build and by `torch.utils.cpp_extension`:
    names of architectures and compute capabilities, with ``a`` for features of one architecture
    alone and ``+PTX``, separated by ``;`` or spaces. Both refuse ``sm_90``. vLLM reads it, too, and
    takes ``f`` for the features of a family.
    https://github.com/pytorch/pytorch/blob/v2.10.0/cmake/Modules_CUDA_fix/upstream/FindCUDA/select_compute_arch.cmake
    https://github.com/pytorch/pytorch/blob/v2.10.0/torch/utils/cpp_extension.py
    """
    if name != "TORCH_CUDA_ARCH_LIST" or text in _WHOLE:
        return ""
    for word in re.split(r"[;\s]+", text.strip("; \t")):
        own = word.removesuffix("+PTX")
        if own in _NAMED or _CAPABILITY.fullmatch(own):
            continue
        code = _CODE.fullmatch(word)
        if code:
            meant = f"{code[1]}.{code[2]}{code[3]}{code[4] or ''}"
        else:
            meant = "compute capabilities such as '8.6;9.0a;12.0+PTX', or names such as 'Hopper'"
        return f"PyTorch does not take {word!r}: write {meant}"
    return ""
