"""`uv-variants add` leaves the comments of pyproject.toml as plain uv does, byte for byte."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.index import Index
from support.projects import app_index
from support.uvs import Machine

Serve = Callable[[Index], Index]

PROJECT = """\
# The first line.
[project]  # ours
name = "project"  # the name
version = "1.0"
requires-python = ">=3.10"
# What is needed.
dependencies = []  # nothing yet

"""
INDEX = """\
[[tool.uv.index]]  # header
# Inside.
name = "mirror"  # its name
url = "URL"
default = true  # all of it
"""
OTHER = """\
[tool.other]  # another tool
# Its key.
x = 1  # one
"""
FORMS = {
    "above": PROJECT + "# Our mirror.\n# It is fast.\n" + INDEX,
    "above, other after": PROJECT + "# Our mirror.\n" + INDEX + "\n# Something else.\n" + OTHER,
    "other before": PROJECT + OTHER + "\n# Our mirror.\n" + INDEX,
    "at the end": PROJECT + INDEX + "\n# The end.\n",
    "apart": PROJECT + "# A remark.\n\n# Our mirror.\n\n" + INDEX + "\n" + OTHER + "\n# The end.\n",
    "none": PROJECT + INDEX,
}


WITHOUT_INDEX = {
    "at the end": PROJECT + "# The end.\n",
    "at the end, other": PROJECT + OTHER + "\n# The end.\n",
    "several at the end": PROJECT + OTHER + "# One.\n\n# Two.\n# Three.\n",
    "before another table": PROJECT + "# Before.\n" + OTHER,
    "none": PROJECT,
}


def after_adding(machine: Machine, text: str) -> dict[str, str]:
    """Return what is in the file after `add`, by who did it: ``uv`` or ``uv-variants``."""
    found = {}
    for name, run in (("uv", machine.plain), ("uv-variants", machine.run)):
        folder = machine.work / name
        folder.mkdir()
        (folder / "pyproject.toml").write_bytes(text.encode())
        done = run("add", "--no-sync", "always", cwd=folder)
        assert done.code == 0, done
        found[name] = (folder / "pyproject.toml").read_bytes().decode()
    return found


@pytest.mark.parametrize("form", FORMS)
def test_comments_around_an_index(machine: Machine, serve: Serve, form: str) -> None:
    index = serve(app_index())
    found = after_adding(machine, FORMS[form].replace("URL", index.url))
    assert comments(found["uv-variants"]) == comments(found["uv"])


@pytest.mark.parametrize("form", WITHOUT_INDEX)
@pytest.mark.parametrize("ending", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_a_user_s_index(machine: Machine, serve: Serve, form: str, ending: str) -> None:
    """One that uv does not write into the project: the file has the same bytes."""
    index = serve(app_index())
    settings = machine.home / ".config" / "uv"
    settings.mkdir(parents=True)
    (settings / "uv.toml").write_text(f'[[index]]\nurl = "{index.url}"\ndefault = true\n')
    found = after_adding(machine, WITHOUT_INDEX[form].replace("\n", ending))
    assert found["uv-variants"] == found["uv"]


def comments(text: str) -> list[str]:
    """Return the lines with comments, sorted: uv moves the tables of indexes."""
    return sorted(line for line in text.splitlines() if "#" in line)
