"""The commands of docs/how-to/build-documents.md that need no project, index or GPU."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.environments import ROOT
from variants_cli import matrices

COMMAND = re.compile(r"`((?:[A-Z_]+=\S+ )*variants (?:matrix |rank |detect)[^`]*)`")
ELSEWHERE = re.compile(r"\b[A-Z]{4,}\b(?!_|=)|--build")
"""What stands for a file of the reader's, and what builds something."""


RUN = "from variants_cli.main import main; main()"


def commands() -> list[str]:
    """Return the commands of the page that can run anywhere, in order."""
    text = (ROOT / "docs" / "how-to" / "build-documents.md").read_text("utf-8")
    found = COMMAND.findall(text)
    return [command for command in dict.fromkeys(found) if not ELSEWHERE.search(command)]


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    words = shlex.split(command.replace("/tmp/", f"{folder.as_posix()}/"))
    environment = dict(os.environ)
    while "=" in words[0]:
        name, _, value = words.pop(0).partition("=")
        environment[name] = value
    return subprocess.run(
        [sys.executable, "-c", RUN, *words[1:]],
        cwd=folder, env=environment, capture_output=True, text=True, encoding="utf-8",
    )  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped matrices, and the metadata that some commands read."""
    folder = tmp_path_factory.mktemp("matrices")
    for path in Path(matrices.__path__[0]).glob("*.toml"):
        shutil.copy(path, folder)
    for command in commands():
        if "--format metadata" in command:
            run(command, folder)
    return folder


@pytest.mark.parametrize("command", commands())
def test_command_runs_as_it_stands(command: str, folder: Path) -> None:
    result = run(command, folder)
    assert result.returncode == 0, result.stderr
    if " -o " not in command:
        assert result.stdout.strip()


def test_each_row_has_a_state() -> None:
    rows = [
        line
        for line in (ROOT / "docs" / "how-to" / "build-documents.md")
        .read_text("utf-8")
        .splitlines()
        if line.startswith("| ") and not line.startswith("| the document has")
    ]
    assert len(rows) > 50
    assert len(commands()) > 20
    for row in rows:
        assert row.rsplit("|", 2)[1].strip() in ("yes", "hardware"), row
