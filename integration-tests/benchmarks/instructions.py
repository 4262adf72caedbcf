"""Counting the instructions of a command: the same on a busy machine as on an idle one.

Valgrind counts them to a few in a million but runs a command fifty times as long. `perf` is as
fast as the command, where the kernel offers the event, which few virtual machines do.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .report import BenchmarkError

UNIT = "Minstr"
"""Millions of instructions; the unit of a row that is counted."""
MISSING = "neither valgrind nor perf's event instructions:u is here: no instructions are counted"
_VALGRIND = ("--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null")
_REFERENCES = re.compile(r"^==\d+== I +refs: +([\d,]+)$", re.MULTILINE)
_EVENT = re.compile(r"^(\d+),[^,]*,instructions:u", re.MULTILINE)


@dataclass(frozen=True)
class Counter:
    """A program that counts.

    Attributes:
        name: of the program, with its version: counts of two programs do not compare.
        command: what goes before the counted command; the path of the report is appended to the
            last item.
        pattern: finds the number in the report.
    """

    name: str
    command: tuple[str, ...]
    pattern: re.Pattern[str]

    def count(self, command: Sequence[str], folder: Path, cwd: Path | None = None) -> float:
        """Return the millions of instructions of *command*, run in an environment of its own.

        It is run once before, not counted, so that bytecode is compiled. Other programs that it
        starts are not counted.

        Args:
            command: program and arguments.
            folder: for its home, bytecode and temporary files; kept between calls.
            cwd: where it runs.

        Raises:
            BenchmarkError: the command or the program that counts fails.
        """
        environ = _environ(folder)
        _run(command, environ, cwd)
        report = folder / "counted"
        report.unlink(missing_ok=True)
        *options, last = self.command
        _run([*options, f"{last}{report}", *command], environ, cwd)
        # A process that was forked writes its own part, before the end of the first one.
        found = self.pattern.findall(report.read_text("utf-8", "replace"))
        if not found:
            raise BenchmarkError(f"{self.name} counted nothing of {' '.join(command)}")
        return int(found[-1].replace(",", "")) / 1e6


def counter() -> Counter | None:
    """Return what counts here, `MISSING` says why it may be None."""
    if valgrind := shutil.which("valgrind"):
        done = subprocess.run([valgrind, "--version"], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            name = done.stdout.strip()
            return Counter(name, (valgrind, *_VALGRIND, "--log-file="), _REFERENCES)
    if perf := shutil.which("perf"):
        command = (perf, "stat", "--field-separator=,", "--event=instructions:u", "--output=")
        found = Counter("perf", command, _EVENT)
        with tempfile.TemporaryDirectory() as folder:
            try:
                found.count([sys.executable, "-c", "pass"], Path(folder))
            except BenchmarkError:
                return None
        return found
    return None


def _environ(folder: Path) -> dict[str, str]:
    """Return variables that are the same on every machine."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    return {
        "HOME": str(home),
        "LC_ALL": "C.UTF-8",
        "PATH": os.defpath,
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_CACHE_DIR": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONPYCACHEPREFIX": str(folder / "bytecode"),
        "TMPDIR": str(folder),
    }


def _run(command: Sequence[str], environ: dict[str, str], cwd: Path | None) -> None:
    done = subprocess.run(
        command, env=environ, cwd=cwd, capture_output=True, text=True, errors="replace", check=False
    )
    if done.returncode:
        output = (done.stderr or done.stdout).strip()[-500:]
        raise BenchmarkError(
            f"{' '.join(command)[:200]} ended with exit code {done.returncode}: {output}"
        )
