"""The programs that builds run: uv, which builds and makes environments, and interpreters."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from .model import BuildError
from .targets import Python

_SHOWN_LINES = 12
_HIDDEN = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PIP_TARGET", "PIP_PREFIX", "PIP_USER")
_QUERY = """
import json, platform, sys, sysconfig
version = f"{sys.version} {sysconfig.get_platform()} {platform.machine()}"
print(json.dumps([sys.executable, version, sysconfig.get_config_var("CFLAGS") or ""]))
"""
_LOCK = threading.Lock()


@dataclass(frozen=True)
class Interpreter:
    """A Python interpreter of this machine.

    Attributes:
        executable: path of its program.
        version: its `sys.version`, and what it builds for.
        flags: what it compiles extensions with: ``CFLAGS`` of its configuration.
    """

    executable: str
    version: str
    flags: str


def find_uv() -> str:
    """Return the path of uv, its name if it is not installed."""
    # Prefer the one in the current environment.
    own = shutil.which("uv", path=str(Path(sys.executable).parent))
    return own or shutil.which("uv") or "uv"


def command(
    kind: str,
    source: Path,
    target: Path,
    config_settings: Mapping[str, tuple[str, ...]],
    *,
    isolated: bool = True,
    python: str = sys.executable,
    constraints: Path | None = None,
) -> list[str]:
    """Return the command line that builds *source* (PEP 517).

    Args:
        kind: ``wheel`` or ``sdist``.
        source: the source tree.
        target: the folder that gets the result.
        config_settings: for the build backend.
        isolated: build in an isolated environment.
        python: the interpreter to build with, by default the running one.
        constraints: file with constraints on what an isolated environment gets.
    """
    line = [find_uv(), "build", f"--{kind}", "--python", python, "--out-dir", str(target)]
    line += [] if isolated else ["--no-build-isolation"]
    line += ["--build-constraints", str(constraints)] if constraints is not None else []
    settings = (f"-C{key}={text}" for key, texts in config_settings.items() for text in texts)
    return [*line, *settings, str(source)]


# Interpreters.


def find_interpreter(python: Python | None) -> Interpreter:
    """Return the interpreter for *python*, the running one for None.

    The running one is used if it fits, else the one that uv finds or fetches.

    Raises:
        BuildError: there is none.
    """
    with _LOCK:  # what many builds want is looked for once
        return _found(python)


@lru_cache(maxsize=64)
def _found(python: Python | None) -> Interpreter:
    free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    name = {"cpython": "cp", "pypy": "pp"}.get(sys.implementation.name, "")
    line = [sys.executable]
    if python not in (None, Python(name, sys.version_info[:2], free_threaded)):
        line = [find_uv(), "run", "--no-project", "--python", python.request, "python"]
    try:
        done = subprocess.run(
            [*line, "-c", _QUERY], capture_output=True, text=True, check=True, timeout=1800
        )
        return Interpreter(*json.loads(done.stdout))
    except subprocess.CalledProcessError as error:
        lines = error.stderr.strip().splitlines()
        problem = lines[-1].strip() if lines else f"exit code {error.returncode}"
    except (OSError, subprocess.TimeoutExpired, ValueError, TypeError) as error:
        problem = str(error)
    raise BuildError(
        f"{python or 'Python'} is not on this machine, and uv could not fetch it ({problem}): "
        "install it"
    )


# Environments.


def make_environment(
    folder: Path,
    python: str,
    requirements: Sequence[str],
    constraints: Path | None,
    runner: Runner,
    log: Path,
    what: str,
) -> dict[str, str]:
    """Make a fresh virtual environment in *folder*; return the variables of commands in it.

    Args:
        folder: where to make it.
        python: the interpreter.
        requirements: what is installed in it: requirements, and paths of wheels.
        constraints: file with constraints on that, such as the wheels that it was built against.
        runner: runs the commands.
        log: file for their output.
        what: what it is for, for messages.

    Raises:
        BuildError: something cannot be installed.
    """
    programs = folder / ("Scripts" if sys.platform == "win32" else "bin")
    program = str(programs / ("python.exe" if sys.platform == "win32" else "python"))
    variables = {name: text for name, text in os.environ.items() if name not in _HIDDEN}
    options = ["--constraint", str(constraints)] if constraints is not None else []
    for line in (
        ["venv", "--python", python, str(folder)],
        ["pip", "install", "--python", program, *options, *requirements],
    ):
        runner.run([find_uv(), *line, "--quiet"], log, variables, what)
    path = os.pathsep.join([str(programs), variables.get("PATH", os.defpath)])
    return {**variables, "PATH": path, "VIRTUAL_ENV": str(folder)}


# Processes.


class Runner:
    """Runs commands with their output in a log, and ends them when the build is stopped."""

    def __init__(self, stop: threading.Event) -> None:
        """Take the event that is set to stop the build."""
        self._stop = stop

    def run(
        self,
        line: Sequence[str],
        log: Path,
        environment: Mapping[str, str],
        what: str,
        otherwise: str = "name its folder in PATH",
        folder: Path | None = None,
    ) -> None:
        """Run the command *line*.

        Args:
            line: the command and its arguments.
            log: file for its output.
            environment: its environment variables.
            what: what the command makes, for messages.
            otherwise: what to do other than installing a missing command, for messages.
            folder: working directory, by default that of this process.

        Raises:
            BuildError: the command failed, cannot be started, or was stopped.
        """
        if self._stop.is_set():
            raise BuildError(f"{what}: stopped")
        with log.open("wb") as stream:
            stream.write(f"$ {' '.join(line)}\n".encode())
            stream.flush()
            try:
                process = subprocess.Popen(
                    line,
                    stdin=subprocess.DEVNULL,
                    stdout=stream,
                    stderr=subprocess.STDOUT,
                    env=dict(environment),
                    cwd=folder,
                    # Compilers are grandchildren: terminate the whole process group.
                    start_new_session=os.name == "posix",
                )
            except FileNotFoundError:
                raise BuildError(
                    f"{what}: {line[0]} not found: install it, or {otherwise}"
                ) from None
            try:
                while process.poll() is None and not self._stop.wait(0.02):
                    pass
            finally:
                if process.poll() is None:
                    _terminate(process)
        if self._stop.is_set():
            raise BuildError(f"{what}: stopped")
        if process.returncode:
            lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
            killed = " (killed, perhaps for lack of memory)" * (process.returncode == -9)
            raise BuildError(
                f"{what}: exit code {process.returncode}{killed}: see {log}", lines[-_SHOWN_LINES:]
            )


def _terminate(process: subprocess.Popen[bytes]) -> None:
    for name in ("SIGTERM", "SIGKILL"):
        with suppress(ProcessLookupError):
            if os.name == "posix":
                os.killpg(process.pid, getattr(signal, name))
            else:
                process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(5)
            return
