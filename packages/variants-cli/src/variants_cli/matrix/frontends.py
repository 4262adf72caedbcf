"""The programs that builds run: uv, interpreters, and whatever tests the wheels."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from .model import BuildError
from .targets import Python

_SHOWN_LINES = 12
_QUERY = """
import json, platform, sys, sysconfig
version = f"{sys.version} {sysconfig.get_platform()} {platform.machine()}"
print(json.dumps([sys.executable, version, sysconfig.get_config_var("CFLAGS") or ""]))
"""


class Interpreter(NamedTuple):
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


@lru_cache(maxsize=64)
def find_interpreter(python: Python | None) -> Interpreter:
    """Return the interpreter for *python* that uv finds or fetches, the running one for None.

    Raises:
        BuildError: there is none.
    """
    line = [sys.executable]
    if python is not None:
        line = [find_uv(), "run", "--no-project", "--python", python.request, "python"]
    try:
        done = subprocess.run(
            [*line, "-c", _QUERY], capture_output=True, text=True, check=True, timeout=1800
        )
        return Interpreter(*json.loads(done.stdout))
    except subprocess.CalledProcessError as error:
        problem = (error.stderr.strip().splitlines() or [f"exit code {error.returncode}"])[-1]
    except (OSError, subprocess.TimeoutExpired, ValueError, TypeError) as error:
        problem = str(error)
    raise BuildError(
        f"{python or 'Python'} is not on this machine, and uv could not fetch it "
        f"({problem.strip()}): install it"
    )


def run(
    line: Sequence[str],
    log: Path,
    environment: Mapping[str, str],
    what: str,
    folder: Path | None = None,
) -> None:
    """Run a command with its output in a log; end it, and its compilers, if that is interrupted.

    Args:
        line: the command and its arguments.
        log: file for its output.
        environment: its environment variables.
        what: what the command makes, for messages.
        folder: working directory, by default that of this process.

    Raises:
        BuildError: the command failed, or cannot be started.
    """
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
                f"{what}: {line[0]} not found: install it, or name its folder in PATH"
            ) from None
        try:
            process.wait()
        finally:
            if process.poll() is None:
                _terminate(process)
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
