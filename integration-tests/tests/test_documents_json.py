"""docs/reference/json.md: its example, and a section with the schema of every command."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from support.environments import ROOT
from variants_cli.schemas import names, schema

PAGE = ROOT / "docs/reference/json.md"
TEXT = PAGE.read_text("utf-8")


def test_example(tmp_path, monkeypatch):
    (code,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    (printed,) = re.findall(r"```text\n(.*?)```", TEXT, re.DOTALL)
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, printed), done.stderr


def test_every_schema_is_on_the_page():
    listed = re.findall(r"^\| `variants ([a-z ]+)` \|.*/([a-z-]+)\.schema\.json\) \|$", TEXT, re.M)
    assert sorted(name.replace(" ", "-") for name, _ in listed) == list(names())
    files = {name.replace(" ", "-"): file for name, file in listed}
    assert files.pop("doctor") == "report"
    assert all(name == file for name, file in files.items())
    shown = set(re.findall(r"^```\{literalinclude\} .*/([a-z-]+)\.schema\.json$", TEXT, re.M))
    # The page says of these that they are the same; that of the doctor has a page of its own.
    same = {"catalog-check": "validate"}
    assert shown == set(names()) - same.keys() - {"doctor"}
    for name, other in same.items():
        assert {**schema(name), "title": ""} == {**schema(other), "title": ""}
