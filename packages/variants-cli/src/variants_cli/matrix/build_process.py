"""Build commands as processes: output to a log file, stopped together with their children."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from .build_plan import BuildError

_SHOWN_LINES = 12


class CommandRunner:
    """Runs one command at a time, and terminates it when the build is stopped."""

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop

    def run(
        self,
        line: Sequence[str],
        log: Path,
        environment: Mapping[str, str],
        what: str,
        otherwise: str = "choose another --frontend",
    ) -> None:
        """Run the command *line*.

        Args:
            line: the command and its arguments.
            log: file for its output.
            environment: its environment variables.
            what: what the command makes, for messages.
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
        if process.returncode:
            if self._stop.is_set():
                raise BuildError(f"{what}: stopped")
            lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
            raise BuildError(
                f"{what}: exit code {process.returncode}: see {log}", lines[-_SHOWN_LINES:]
            )


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
