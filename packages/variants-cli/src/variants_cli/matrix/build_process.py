"""Build commands as processes: output to a log file, stopped together with their children."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from .build_plan import BuildError
from .memory import MemoryWatch

_SHOWN_LINES = 12
_STEP, _LOOK_EVERY = 0.02, 0.3
"""Seconds after which a process is asked whether it has ended, and its memory is looked at."""
_KILLED = -9
_OUT_OF_MEMORY = re.compile(
    r"Killed signal terminated program|\bOut of memory\b|cannot allocate memory|signal: 9, SIGKILL",
    re.IGNORECASE,
)
"""What compilers and build tools print when the kernel ends one of them."""


class CommandRunner:
    """Runs one command at a time, and terminates it when the build is stopped."""

    def __init__(self, stop: threading.Event, memory: int = 0) -> None:
        """Set up.

        Args:
            stop: set to stop the build.
            memory: bytes that a command may take, with its children; 0 for no limit.
        """
        self._stop = stop
        self._memory = memory

    def run(
        self,
        line: Sequence[str],
        log: Path,
        environment: Mapping[str, str],
        what: str,
        otherwise: str = "choose another --frontend",
        folder: Path | None = None,
    ) -> None:
        """Run the command *line*.

        Args:
            line: the command and its arguments.
            log: file for its output.
            environment: its environment variables.
            what: what the command makes, for messages.
            folder: working directory, by default that of this process.
            otherwise: what to do other than installing a missing command, for messages.

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
            watch, looked = MemoryWatch(self._memory), 0.0
            try:
                while process.poll() is None and not self._stop.wait(_STEP):
                    looked += _STEP
                    if looked >= _LOOK_EVERY:
                        looked = 0.0
                        if watch.exceeded(process.pid):
                            break
            finally:
                if process.poll() is None:
                    _terminate(process)
        if process.returncode:
            if self._stop.is_set():
                raise BuildError(f"{what}: stopped")
            watch.check(what)
            lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
            ended = f"exit code {process.returncode}"
            if process.returncode == _KILLED or _OUT_OF_MEMORY.search("\n".join(lines[-200:])):
                ended += " (killed, perhaps for lack of memory: build.memory limits it)"
            raise BuildError(f"{what}: {ended}: see {log}", lines[-_SHOWN_LINES:])


def _terminate(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGTERM)
        else:
            process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            if os.name == "posix":
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
        process.wait()
