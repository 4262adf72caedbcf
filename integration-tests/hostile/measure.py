"""Run a command in a prepared place, and return what it printed and what it cost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_LAUNCHER = Path(__file__).with_name("launcher.py")
PATIENCE = 10.0
"""Seconds that processes of a client may go on after it."""
OUTPUT_BYTES = 4 << 20
"""As much of each output is kept."""
PASSED_ON = ("PATH", "LANG")
"""Variables of this process that a client sees as well."""


@dataclass(frozen=True)
class Run:
    """How a command ended.

    Attributes:
        code: exit status; negative for a signal.
        output: stdout and stderr.
        cpu: seconds, of it and all processes that it started.
        memory: bytes, the most that one of these processes had.
        seconds: it took.
        timed_out: it was killed after its time.
        left: processes that it started went on after it and had to be killed; on Linux only.
    """

    code: int
    output: str
    cpu: float
    memory: int
    seconds: float
    timed_out: bool
    left: bool


@dataclass(frozen=True)
class Place:
    """A user's machine: directories that are empty at first.

    Attributes:
        root: holds everything.
    """

    root: Path

    @property
    def work(self) -> Path:
        """The working directory."""
        return self.root / "work"

    @property
    def home(self) -> Path:
        """The user's home."""
        return self.root / "home"

    @property
    def target(self) -> Path:
        """Where the client installs."""
        return self.root / "target"

    def create(self) -> None:
        """Make the directories."""
        for folder in (self.work, self.home, self.target, self.root / "tmp"):
            folder.mkdir(parents=True)

    def variables(self, more: Mapping[str, str]) -> dict[str, str]:
        """Return the environment variables of a client here."""
        passed = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        return {
            **passed,
            "HOME": str(self.home),
            "TMPDIR": str(self.root / "tmp"),
            "XDG_CONFIG_DIRS": str(self.root / "etc"),
            "PYTHONDONTWRITEBYTECODE": "1",
            **more,
        }


def run(
    command: Sequence[str],
    place: Place,
    variables: Mapping[str, str],
    seconds: float,
    patience: float = PATIENCE,
) -> Run:
    """Run *command* in the working directory of *place* for *seconds* at most."""
    base = place.root / "launcher"
    base.mkdir(exist_ok=True)
    job = {
        "command": [str(part) for part in command],
        "seconds": seconds,
        "patience": patience,
        "out": str(base / "out"),
        "err": str(base / "err"),
        "result": str(base / "result.json"),
    }
    (base / "job.json").write_text(json.dumps(job), "utf-8")
    subprocess.run(
        [sys.executable, "-I", "-S", str(_LAUNCHER), str(base / "job.json")],
        cwd=place.work,
        env=place.variables(variables),
        check=True,
        timeout=seconds + 60,
    )
    texts = []
    for name in ("out", "err"):
        with (base / name).open("rb") as file:
            texts.append(file.read(OUTPUT_BYTES).decode("utf-8", "replace"))
    return Run(output="".join(texts), **json.loads((base / "result.json").read_text("utf-8")))
