"""Two publishers at once, each with a batch of one release, and killed at will.

They are processes of ``variants publish``. What users of the index get meanwhile is what
``variants resolve`` chooses for their machines.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from pep_variants.errors import VariantError
from pep_variants.model.label import split_label
from variants_cli.main import cli

from .environments import clean_environ
from .json_outputs import check_output

# Ends the process just before a rename: what replaces a file, in a directory.
_PROGRAM = """
import os, signal, sys
left = int(os.environ.pop("KILL_AT_RENAME", 0))
def count(event, arguments):
    global left
    if event == "os.rename":
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
if left:
    sys.addaudithook(count)
from variants_cli.main import main
main()
"""


@dataclass(frozen=True)
class Machine:
    """A user's machine.

    Attributes:
        platform: name of a known machine.
        system: what ``--python-platform`` is to be.
        requires: what is installed beside.
    """

    platform: str
    system: str
    requires: tuple[str, ...] = ()


class Publishers:
    """Processes that publish, which can all be killed from any thread."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._lock = threading.Lock()
        self._running: list[subprocess.Popen[str]] = []

    def run(self, commands: Sequence[Sequence[str | Path]], **variables: str) -> list[int]:
        """Run all commands at once; return their exit codes, ``-SIGKILL`` of those killed.

        Raises:
            AssertionError: one fails.
        """
        with self._lock:
            self._running = [
                subprocess.Popen(
                    [sys.executable, "-c", _PROGRAM, *map(str, command)],
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                    text=True, env=clean_environ({**self._environ, **variables}),
                )
                for command in commands
            ]  # fmt: skip
        outputs = [process.communicate(timeout=120)[0] for process in self._running]
        codes = [process.returncode for process in self._running]
        for code, output in zip(codes, outputs, strict=True):
            assert code in (0, -signal.SIGKILL), output
        return codes

    def kill(self) -> None:
        """End all that run, as a machine that goes off would."""
        with self._lock:
            for process in self._running:
                if process.poll() is None:
                    os.kill(process.pid, signal.SIGKILL)


def chosen(
    project: str, machine: Machine, index: str, links: Path
) -> tuple[str, str | None] | None:
    """Return version and label of what *machine* gets of *project*; None if nothing fits.

    Args:
        project: its name.
        machine: the user's.
        index: URL of the index.
        links: folder with wheels of other projects; they count if *machine* requires some.
    """
    options = [
        "--json", "--no-cache", "-i", index, "-f", str(links),
        "--index-strategy", "unsafe-best-match", "--target", machine.platform,
        "--python-version", "3.12", "--python-platform", machine.system,
    ]  # fmt: skip
    if not machine.requires:
        tree = _answer(["explain", project, *options])
        return None if tree is None else (tree["version"], _label(tree["file"]))
    tree = _answer(["resolve", project, *machine.requires, *options])
    if tree is None:
        return None
    (resolution,) = tree["resolutions"]
    (package,) = (item for item in resolution["packages"] if item["name"] == project)
    return package["version"], package["label"]


def _answer(arguments: list[str]) -> dict[str, Any] | None:
    done = CliRunner().invoke(cli, arguments)
    if done.exception is not None and not isinstance(done.exception, SystemExit | VariantError):
        raise done.exception
    if done.exit_code:
        return None
    check_output(arguments, done.stdout)
    tree: dict[str, Any] = json.loads(done.stdout)
    return tree


def _label(filename: str | None) -> str | None:
    return None if filename is None else split_label(filename)[1]
