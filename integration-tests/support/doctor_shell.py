"""A shell in which doctor is asked, and what it says is typed."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from .doctor_report import check_report
from .documents import Reader

PROGRAMS = "bash cat cp env ln mkdir mv rm sed sh touch"
"""What people type, and what their tools run; no installer of this machine is beside them."""


def link_programs(folder: Path) -> None:
    """Put `PROGRAMS` into *folder*, which can be all of ``PATH`` then."""
    for name in PROGRAMS.split():
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(shutil.which(name) or name)


class Shell:
    """A shell: variables that a command exports are there for the next one."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.environ = dict(reader.variables)

    def type(self, command: str) -> str:
        """Run *command*, return what it prints."""
        kept = self.reader.home / "variables"
        done = subprocess.run(
            ["bash", "-c", f"{command}\nstatus=$?\n/usr/bin/env -0 > {kept}\nexit $status"],
            cwd=self.reader.work, env=self.environ, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        lines = kept.read_text().split("\0")
        self.environ = dict(line.split("=", 1) for line in lines if "=" in line)
        return done.stdout

    def doctor(self, *arguments: str) -> dict[str, Any]:
        """Return what ``variants doctor`` prints."""
        done = subprocess.run(
            ["variants", "doctor", "--json", "--no-cache", *arguments],
            cwd=self.reader.work, env=self.environ, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.stdout.startswith("{"), done.stderr
        tree: dict[str, Any] = json.loads(done.stdout)
        check_report(tree)
        assert done.returncode == (0 if tree["well"] else 1)
        return tree


def first(tree: dict[str, Any], code: str, *said: str) -> str:
    """Return the command of the first problem, which says this."""
    problem = tree["problems"][0]
    assert problem["code"] == code, tree["problems"]
    for text in said:
        assert text in problem["text"]
    command: str = problem["command"]
    return command
