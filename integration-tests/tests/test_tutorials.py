"""The tutorials of the site: every console block is run, in order, and its output compared.

The programs are real. What they would fetch from the network is a stand-in on loopback: tiny wheels
on pages laid out as those of the catalogue's places.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import variants_catalog
from pep_variants.catalog.store import DirectoryCatalog
from support.environments import PIPS, ROOT, clean_environ
from support.published_builds import field_of, standing_in
from variants_index.named_platforms import named_platforms

TUTORIALS = ROOT / "docs" / "tutorials"
# Every place of the catalogue has at least one of them.
TORCH = ("2.5.1", "2.7.1", "2.8.0", "2.9.1", "2.10.0", "2.13.0", "2.15.0")
MARK = "\x1e"


def commands(tutorial: Path) -> list[tuple[str, list[str]]]:
    """Return the commands of a tutorial, each with the lines it prints."""
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"^```console\n(.*?)^```$", tutorial.read_text("utf-8"), re.M | re.S):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


def expression(lines: list[str]) -> re.Pattern[str]:
    """Return what matches an output: `…` is any text of a line, alone any number of lines."""
    parts = (
        r"(?:[^\n]*\n)*?" if line == "…" else ".*".join(map(re.escape, line.split("…"))) + r"[ ]*\n"
        for line in lines
    )
    return re.compile("".join(parts))


def run(tutorial: Path, folder: Path, environ: dict[str, str]) -> None:
    """Run a tutorial in one shell, as its reader does.

    Raises:
        AssertionError: a command fails or prints something else.
    """
    listed = commands(tutorial)
    assert listed
    script = "".join(f"{text} || exit 1\nprintf '{MARK}'\n" for text, _ in listed)
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=300,
    )
    outputs = done.stdout.split(MARK)
    for (text, lines), output in zip(listed, outputs):
        assert "WARNING" not in output, f"{text}\n{output}"
        assert expression(lines).fullmatch(output), f"{text}\n{output}"
    assert (done.returncode, len(outputs)) == (0, len(listed) + 1), done.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="the machine of the tutorial has Linux")
def test_torch(environments, tmp_path):
    (tmp_path / "dist").symlink_to(environments.shim_wheel.parent)
    links = tmp_path / "pip"
    links.mkdir()
    wheel = environments.pip_wheel(PIPS[-1])
    (links / wheel.name).symlink_to(wheel)
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "python3").symlink_to(sys.executable)
    entry = DirectoryCatalog(variants_catalog.projects()).project("torch")
    assert entry is not None
    with standing_in(field_of([entry], {"torch": TORCH})) as field:
        environ = {
            "HOME": str(tmp_path),
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "PIP_INDEX_URL": field.index.url,
            "PIP_FIND_LINKS": str(links),
            "PIP_NO_CACHE_DIR": "1",
            "VARIANTS_CATALOG_MIRROR": " ".join(field.mirrors),
            # Whatever this machine has.
            "VARIANTS_PLATFORM": str(named_platforms()["h100-sapphirerapids"]),
        }
        run(TUTORIALS / "torch.md", tmp_path, clean_environ(environ))


def test_every_tutorial_is_run():
    text = Path(__file__).read_text("utf-8")
    for tutorial in TUTORIALS.glob("*.md"):
        assert f'TUTORIALS / "{tutorial.name}"' in text


@pytest.mark.parametrize(
    ("lines", "output", "fits"),
    [
        ([], "", True),
        ([], "more\n", False),
        (["a…c"], "abc\n", True),
        (["a…c"], "ab\nc\n", False),
        (["…", "last"], "first\nsecond\nlast\n", True),
        (["…", "last"], "last\nmore\n", False),
        (["a.c"], "abc\n", False),
    ],
)
def test_comparison(lines, output, fits):
    assert (expression(lines).fullmatch(output) is not None) is fits
