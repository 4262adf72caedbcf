"""Programs that runners start: once per case, or forked from one that has imported everything."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from . import FOLDER

SECONDS = 120


class Finished(NamedTuple):
    """A run that ended: its exit code, and all that was printed."""

    code: int
    output: str


def execute(
    command: Sequence[str], variables: Mapping[str, str], directory: Path, seconds: int = SECONDS
) -> Finished:
    """Run *command*."""
    try:
        done = subprocess.run(
            list(command),
            env=dict(variables),
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        return Finished(124, (error.stdout or b"").decode("utf-8", "replace"))
    return Finished(done.returncode, done.stdout.decode("utf-8", "replace"))


class PythonProgram:
    """A program in Python, forked for each run, see `prefork`.

    Several threads may run it at the same time.
    """

    def __init__(self, python: str, entry: str, *remembered: str) -> None:
        """Set up.

        Args:
            python: the interpreter.
            entry: ``MODULE:FUNCTION``, called without arguments.
            remembered: functions with a cache, which are called once before all runs, if they
                exist.
        """
        self._python = python
        self._entry = entry
        self._remembered = remembered
        self._idle: list[subprocess.Popen[bytes]] = []

    def run(
        self,
        name: str,
        arguments: Sequence[str],
        variables: Mapping[str, str],
        directory: Path,
        seconds: int = SECONDS,
    ) -> Finished:
        """Run it with *arguments*; *name* is ``sys.argv[0]``."""
        output = directory / ".output"
        job = {
            "arguments": [name, *arguments],
            "variables": dict(variables),
            "directory": str(directory),
            "output": str(output),
            "seconds": seconds,
        }
        try:
            process = self._idle.pop()
        except IndexError:
            process = self._start(variables)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(job).encode() + b"\n")
        process.stdin.flush()
        line = process.stdout.readline()
        self._idle.append(process)
        if not line:
            raise RuntimeError(f"{self._python}: {self._entry} cannot be started")
        text = output.read_text("utf-8", "replace") if output.exists() else ""
        output.unlink(missing_ok=True)
        return Finished(int(line), text)

    def _start(self, variables: Mapping[str, str]) -> subprocess.Popen[bytes]:
        # The first run's variables: what is imported reads no others.
        return subprocess.Popen(
            [self._python, str(FOLDER / "prefork.py"), self._entry, *self._remembered],
            env={**variables, "PYTHONPATH": ""},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def close(self) -> None:
        """End it."""
        while self._idle:
            self._idle.pop().communicate()
