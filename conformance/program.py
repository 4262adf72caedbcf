"""Programs that runners start: once per case, or forked from one that has imported everything."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from . import FOLDER
from .prefork import SECONDS


class Finished(NamedTuple):
    """A run that ended: its exit code, and all that was printed."""

    code: int
    output: str


def execute(
    command: Sequence[str], variables: Mapping[str, str], directory: Path, stdin: str = ""
) -> Finished:
    """Run *command*."""
    done = subprocess.run(
        command,
        env=variables,
        cwd=directory,
        input=stdin.encode(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=SECONDS,
        check=False,
    )
    return Finished(done.returncode, done.stdout.decode("utf-8", "replace"))


class Program:
    """The function *entry* (``MODULE:FUNCTION``) of the interpreter *python*, see `prefork`.

    Several threads may run it at the same time. *remembered* are called once before all runs.
    """

    def __init__(self, python: str, entry: str, *remembered: str) -> None:
        self.entry = entry
        self._command = [python, str(FOLDER / "prefork.py"), entry, *remembered]
        self._idle: list[subprocess.Popen[bytes]] = []

    def run(
        self, arguments: Sequence[str], variables: Mapping[str, str], directory: Path
    ) -> Finished:
        """Run it with *arguments*, the first of which is its name."""
        job = {"arguments": arguments, "variables": variables, "directory": str(directory)}
        try:
            process = self._idle.pop()
        except IndexError:
            # The first run's variables: what is imported reads no others.
            process = subprocess.Popen(
                self._command,
                env={**variables, "PYTHONPATH": ""},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(job).encode() + b"\n")
        process.stdin.flush()
        code = int(process.stdout.readline())
        self._idle.append(process)
        output = directory / ".output"
        text = output.read_text("utf-8", "replace")
        output.unlink()
        return Finished(code, text)

    def close(self) -> None:
        """End it."""
        while self._idle:
            self._idle.pop().communicate()
