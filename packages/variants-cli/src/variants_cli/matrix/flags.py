"""Compiler flags that are added to what a build compiles with anyway, per build backend.

Every backend has a variable such as ``CFLAGS``, but it does not mean the same: setuptools 75.7 and
newer compiles with it *instead of* the interpreter's own flags, ``-O3`` among them; CMake and Meson
ignore it where the project sets the same option; Cargo ignores its configuration where
``RUSTFLAGS`` is set. `additions` says what to set, so that a variant compiles like the null
variant, with its own flags behind.
"""

from __future__ import annotations

import ast
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pep_variants.formats import toml

from .build_plan import BuildError
from .interpreters import RUNNING
from .model import Matrix, Variant
from .source_project import MESON, SCIKIT_BUILD, SETUPTOOLS, SourceProject, read_source

MSVC = "msvc"


@dataclass(frozen=True)
class Route:
    """How flags of one language reach its compiler.

    Attributes:
        variable: environment variable that they are appended to.
        replaces: whether `variable` takes the place of the interpreter's own flags.
        options: options of the build tool that replace `variable` where they are set.
    """

    variable: str
    replaces: bool = False
    options: tuple[str, ...] = ()


_ROUTES: Mapping[str, Route] = {
    "c": Route("CFLAGS"),
    "cxx": Route("CXXFLAGS"),
    "fortran": Route("FFLAGS"),
    "cuda": Route("NVCC_APPEND_FLAGS"),  # read by nvcc itself, whatever runs it
    "rust": Route("RUSTFLAGS"),
    "link": Route("LDFLAGS"),
    MSVC: Route("_CL_"),  # read by cl itself
}

LANGUAGES = tuple(_ROUTES)
"""Languages that flags can be given for; ``link`` is the linker, ``msvc`` the compiler of Visual
Studio, which takes the place of ``c`` and ``cxx`` on Windows."""

ROUTES: Mapping[str, Mapping[str, Route]] = {
    SETUPTOOLS: {
        **_ROUTES,
        "c": Route("CFLAGS", replaces=True),
        "cxx": Route("CXXFLAGS", replaces=True),
    },
    SCIKIT_BUILD: {
        **_ROUTES,
        "c": Route("CFLAGS", options=("CMAKE_C_FLAGS",)),
        "cxx": Route("CXXFLAGS", options=("CMAKE_CXX_FLAGS",)),
        "fortran": Route("FFLAGS", options=("CMAKE_Fortran_FLAGS",)),
        "link": Route(
            "LDFLAGS", options=("CMAKE_SHARED_LINKER_FLAGS", "CMAKE_MODULE_LINKER_FLAGS")
        ),
    },
    MESON: {
        **_ROUTES,
        "c": Route("CFLAGS", options=("c_args",)),
        "cxx": Route("CXXFLAGS", options=("cpp_args",)),
        "fortran": Route("FFLAGS", options=("fortran_args",)),
        "link": Route("LDFLAGS", options=("c_link_args", "cpp_link_args")),
    },
}
"""Routes by backend; all other backends have the plain variables."""

_LANGUAGE_OF = {"CFLAGS": "c", "CXXFLAGS": "cxx"}
_OPTIMISES = re.compile(r"(?:^|\s)[-/]O\S")
_CMAKE_VARIABLES = ("CMAKE_ARGS", "SKBUILD_CMAKE_ARGS", "SKBUILD_CMAKE_DEFINE")


@dataclass(frozen=True)
class Additions:
    """What the flags of a variant change in its build.

    Attributes:
        environment: variables to set, with what they have already.
        config_settings: settings of the backend (PEP 517), in place of those of the same key.
    """

    environment: Mapping[str, str] = field(default_factory=dict)
    config_settings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def additions(
    flags: Mapping[str, Sequence[str]],
    source: SourceProject,
    environ: Mapping[str, str],
    config_settings: Mapping[str, tuple[str, ...]],
    *,
    folder: Path | None = None,
    system: str = sys.platform,
    interpreter: str = RUNNING.flags,
) -> Additions:
    """Return what to set so that *flags* are added.

    Args:
        flags: words by language, see `LANGUAGES`.
        source: the project that is built.
        environ: environment of the build without them.
        config_settings: settings of the backend without them.
        folder: where source trees are unpacked; Cargo reads its configuration above it.
        system: `sys.platform` of the machine that builds.
        interpreter: what the interpreter that builds compiles extensions with.

    Raises:
        BuildError: the project or the environment sets an option in a way that cannot be added to.
    """
    environment: dict[str, str] = {}
    settings: dict[str, tuple[str, ...]] = {}
    routes = ROUTES.get(source.backend, _ROUTES)
    for language, words in flags.items():
        if not words or _left_to_others(language, flags, system):
            continue
        if language == "rust":
            name, text = _rust(words, source, environ, folder)
            environment[name] = text
            continue
        route, added = routes[language], _joined(words, system)
        replacing = [
            _option(option, added, source, environ, config_settings, settings)
            for option in route.options
        ]
        if not all(replacing) or not replacing:
            before = environ.get(route.variable)
            if before is None and route.replaces:
                before = interpreter
            environment[route.variable] = f"{before or ''} {added}".lstrip()
    return Additions(environment, settings)


def _left_to_others(language: str, flags: Mapping[str, Sequence[str]], system: str) -> bool:
    if language == MSVC:
        return system != "win32"
    return language in ("c", "cxx") and system == "win32" and bool(flags.get(MSVC))


def _option(
    option: str,
    added: str,
    source: SourceProject,
    environ: Mapping[str, str],
    given: Mapping[str, tuple[str, ...]],
    settings: dict[str, tuple[str, ...]],
) -> bool:
    """Add to *option* in *settings* if it is set, which hides the variable; return whether."""
    present = {**given, **settings}
    if source.backend == SCIKIT_BUILD:
        found = _cmake_define(option, source, environ, present)
        if found is not None:
            settings[f"cmake.define.{option}"] = (f"{found} {added}".lstrip(),)
        return found is not None
    found = _meson_option(option, source, present)
    if found is not None:
        argument = f"-D{option}={f'{found} {added}'.lstrip()}"
        settings["setup-args"] = (*present.get("setup-args", ()), argument)
    return found is not None


def dropped_flags(
    name: str,
    text: str,
    source: SourceProject,
    environ: Mapping[str, str],
    interpreter: str = RUNNING.flags,
) -> str:
    """Return the interpreter's flags that are lost where the variable *name* is set to *text*.

    Empty if none are, or if *text* or the environment has flags that optimise: then the loss is
    meant.
    """
    routes = ROUTES.get(source.backend, _ROUTES).values()
    if name in environ or not any(r.variable == name and r.replaces for r in routes):
        return ""
    return interpreter if _OPTIMISES.search(interpreter) and not _OPTIMISES.search(text) else ""


def warnings_of_lost_flags(
    matrix: Matrix, variants: Iterable[Variant], environ: Mapping[str, str]
) -> list[str]:
    """Return a warning for each variable of *variants* that drops flags of the interpreter."""
    found: dict[tuple[str, str], list[str]] = {}
    source: SourceProject | None = None
    for variant in variants:
        settings = variant.settings
        words = {name: " ".join(text) for name, text in settings.flags.items()}
        for name, text in {**settings.environment, **words}.items():
            if name not in _LANGUAGE_OF or not text or _OPTIMISES.search(text):
                continue
            try:
                source = source or read_source(matrix.build.source)
            except (BuildError, OSError):  # there may be no source here, only a plan
                return []
            if dropped_flags(name, text, source, environ):
                found.setdefault((name, text), []).append(variant.label)
    return [
        f"{', '.join(labels)}: {name} takes the place of what this Python compiles with in "
        f"setuptools 75.7 and newer ({RUNNING.flags}): write "
        f"flags.{_LANGUAGE_OF[name]} = {json.dumps(shlex.split(text))} instead, which adds to it"
        for (name, text), labels in found.items()
    ]


def _joined(words: Sequence[str], system: str) -> str:
    return subprocess.list2cmdline(words) if system == "win32" else shlex.join(words)


def _cmake_define(
    option: str,
    source: SourceProject,
    environ: Mapping[str, str],
    settings: Mapping[str, tuple[str, ...]],
) -> str | None:
    """Return what *option* of CMake is set to, None if it comes from the environment."""
    skbuild = source.table("tool", "scikit-build", "cmake")
    places = {name: environ.get(name, "") for name in _CMAKE_VARIABLES}
    places["cmake.args"] = " ".join(
        [*settings.get("cmake.args", ()), *map(str, skbuild.get("args", ()))]
    )
    for place, text in places.items():
        if re.search(rf"(?:-D\s*|\b){option}\s*[:=]", text):
            raise BuildError(
                f"{place} sets {option}, which flags cannot be added to: set it as "
                f"cmake.define.{option}, or give all flags in one place"
            )
    key = f"cmake.define.{option}"
    if key in settings:
        return settings[key][-1]
    value = skbuild.get("define", {}).get(option) if skbuild else None
    if value is None or isinstance(value, str):
        return value
    raise BuildError(
        f"pyproject.toml: tool.scikit-build.{key} is {value!r}, which flags cannot be added to: "
        "make it a string"
    )


def _meson_option(
    option: str, source: SourceProject, settings: Mapping[str, tuple[str, ...]]
) -> str | None:
    """Return what *option* of Meson is set to, None if it comes from the environment.

    The last one given to ``meson setup`` counts, or else the default of the project in
    ``meson.build``; each takes the place of the environment.
    """
    own = source.table("tool", "meson-python", "args").get("setup", ())
    given = [*(own if isinstance(own, list) else ()), *settings.get("setup-args", ())]
    for argument in reversed(given):
        text = str(argument)
        if text.startswith((f"-D{option}=", f"-D {option}=")):
            return _meson_words(text.partition("=")[2])
    found = re.search(rf"""(['"])(?:{option}=)((?:(?!\1).)*)\1""", source.meson_build)
    return _meson_words(found[2]) if found else None


def _meson_words(text: str) -> str:
    """Return the value of an array option as words, which it may be, or as a list of Meson."""
    if not text.startswith("["):
        return text
    try:
        return shlex.join(map(str, ast.literal_eval(text)))
    except (ValueError, SyntaxError, TypeError):
        raise BuildError(f"{text} is not a list of words that Meson takes") from None


def _rust(
    words: Sequence[str], source: SourceProject, environ: Mapping[str, str], folder: Path | None
) -> tuple[str, str]:
    """Return the variable that adds *words* to the flags of rustc, and its value.

    Cargo takes the first of ``CARGO_ENCODED_RUSTFLAGS``, ``RUSTFLAGS``, ``target.*.rustflags`` and
    ``build.rustflags``; for the last two, a variable adds to what the files say.
    https://doc.rust-lang.org/cargo/reference/config.html#buildrustflags
    """
    if any(re.search(r"\s", word) for word in words):
        raise BuildError(f"flags.rust: {list(words)!r} has a space in a word: Cargo splits there")
    name, separator = "CARGO_ENCODED_RUSTFLAGS", "\x1f"
    if name not in environ:
        separator = " "
        configs = [source.cargo, *_cargo_configs(environ, folder)]
        if "RUSTFLAGS" in environ:
            name = "RUSTFLAGS"
        elif any(_has_target_flags(config) for config in configs):
            name = f"CARGO_TARGET_{_host_triple(environ)}_RUSTFLAGS"
        else:
            name = "CARGO_BUILD_RUSTFLAGS"
    return name, separator.join([*filter(None, [environ.get(name, "")]), *words])


def _has_target_flags(config: Mapping[str, Any]) -> bool:
    targets = config.get("target")
    tables = targets.values() if isinstance(targets, Mapping) else ()
    return any(isinstance(table, Mapping) and "rustflags" in table for table in tables)


def _cargo_configs(environ: Mapping[str, str], folder: Path | None) -> list[Mapping[str, Any]]:
    """Return Cargo's configuration above *folder*, and the user's own."""
    places = [above / ".cargo" for above in (folder, *folder.parents)] if folder else []
    places.append(Path(environ.get("CARGO_HOME") or Path.home() / ".cargo"))
    found: list[Mapping[str, Any]] = []
    for path in (place / name for place in places for name in ("config.toml", "config")):
        try:
            found.append(toml.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError):  # missing, or Cargo says what is wrong with it
            continue
    return found


def _host_triple(environ: Mapping[str, str]) -> str:
    """Return the name of rustc's own target, as Cargo's variables spell it.

    Raises:
        BuildError: there is no rustc.
    """
    rustc = environ.get("RUSTC") or "rustc"
    try:
        done = subprocess.run(
            [rustc, "-vV"], capture_output=True, text=True, check=True, env=dict(environ),
            timeout=60,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        raise BuildError(f"flags.rust: {rustc} -vV fails: install Rust on this machine") from None
    found = re.search(r"^host: (\S+)$", done.stdout, re.MULTILINE)
    triple = environ.get("CARGO_BUILD_TARGET") or (found[1] if found else "")
    if not triple:
        raise BuildError(f"flags.rust: {rustc} -vV does not name its host")
    return triple.upper().replace("-", "_")
