"""Finding the interpreter that a wheel is built with."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from .build_plan import BuildError
from .frontends import UV, find_uv
from .wheel_targets import Python

_QUERY = """
import json, platform, sys, sysconfig
print(json.dumps([
    sys.executable, sys.version, sysconfig.get_platform(), platform.machine(),
    sysconfig.get_config_var("CFLAGS") or "",
    sys.implementation.name, list(sys.version_info[:2]),
    bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
]))
"""
_LOCK = threading.Lock()
_SECONDS = 60
_FETCH_SECONDS = 1800


@dataclass(frozen=True)
class Interpreter:
    """A Python interpreter of this machine.

    Attributes:
        executable: path of its program.
        version: its `sys.version`.
        platform: its `sysconfig.get_platform()`.
        machine: its `platform.machine()`.
        flags: what it compiles extensions with: ``CFLAGS`` of its configuration.
    """

    executable: str
    version: str
    platform: str
    machine: str
    flags: str = ""


RUNNING = Interpreter(
    sys.executable,
    sys.version,
    sysconfig.get_platform(),
    platform.machine(),
    str(sysconfig.get_config_var("CFLAGS") or ""),
)
"""The interpreter of this process."""


def find_interpreter(python: Python | None, frontend: str) -> Interpreter:
    """Return the interpreter for *python*, the running one for None.

    The running one is used if it fits. Otherwise uv finds it, or fetches it if it is the frontend;
    without uv it has to be a program on the path.

    Raises:
        BuildError: there is none, or it cannot run the frontend.
    """
    if python is None:
        return RUNNING
    with _LOCK:  # what many builds want is looked for once
        found = _found(python, frontend)
    if isinstance(found, BuildError):
        raise found
    return found


@lru_cache(maxsize=64)
def _found(python: Python, frontend: str) -> Interpreter | BuildError:
    try:
        return _find(python, frontend)
    except BuildError as error:
        return error


def forget_interpreters() -> None:
    """Forget what was found, for programs that change what there is."""
    _found.cache_clear()


def _find(python: Python, frontend: str) -> Interpreter:
    for program in _candidates(python, frontend):
        found = _queried(program, python)
        if found is not None:
            if frontend != UV:
                _check_build(found, python)
            return found
    if frontend == UV:
        return _fetched(python)
    raise BuildError(
        f"{python} is not on this machine: install it (the program {python.program}), or use "
        "--frontend uv, which fetches it"
    )


def _candidates(python: Python, frontend: str) -> Iterator[str]:
    yield sys.executable
    uv = find_uv()
    if uv is not None:
        found = _output([uv, "python", "find", "--no-project", python.request])
        if found:
            yield found
    elif frontend != UV:
        launcher = shutil.which("py") if sys.platform == "win32" else None
        if launcher is not None:
            major, minor = python.version
            found = _output(
                [launcher, f"-{major}.{minor}", "-c", "import sys; print(sys.executable)"]
            )
            if found:
                yield found
    # The first one on the path may be pyenv's, which is no Python unless it is chosen.
    for folder in os.get_exec_path():
        program = shutil.which(python.program, path=folder)
        if program is not None:
            yield program


def _queried(program: str, python: Python) -> Interpreter | None:
    """Return what *program* says of itself, None if it is not *python*."""
    try:
        *facts, implementation, version, free_threaded = json.loads(
            _output([program, "-c", _QUERY])
        )
        own = Python({"cpython": "cp", "pypy": "pp"}[implementation], tuple(version), free_threaded)
    except (ValueError, KeyError, TypeError):  # no output, or no Python that we know
        return None
    return Interpreter(*facts) if own == python else None


def _check_build(found: Interpreter, python: Python) -> None:
    if _output([found.executable, "-c", "import build; print(build.__name__)"]) != "build":
        raise BuildError(
            f"{python} ({found.executable}) has no package 'build': install it there, or use "
            "--frontend uv"
        )


def _fetched(python: Python) -> Interpreter:
    uv = find_uv()
    problem = "uv is not on this machine"
    if uv is not None:
        done = subprocess.run(
            [uv, "python", "install", "--no-bin", python.request],
            capture_output=True, text=True, check=False, timeout=_FETCH_SECONDS,
        )  # fmt: skip
        program = _output([uv, "python", "find", "--no-project", python.request])
        found = _queried(program, python) if program else None
        if found is not None:
            return found
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        problem = (
            f"uv could not fetch it ({lines[-1] if lines else f'exit code {done.returncode}'})"
        )
    raise BuildError(
        f"{python} is not on this machine, and {problem}: install it (the program {python.program})"
    )


def _output(line: list[str]) -> str:
    """Return what the command prints, without white space at the end; empty where it fails."""
    try:
        done = subprocess.run(
            line, capture_output=True, text=True, check=False, timeout=_SECONDS,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
