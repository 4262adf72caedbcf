"""Which environment doctor looks at, and the pip that it types."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from variants_index.doctor import (
    SYSTEM,
    choose_pip,
    find_environment,
    find_pips,
    pip_commands,
    pip_settings,
    uv_commands,
)
from variants_index.doctor._environment import Environment
from variants_index.doctor._installers import Pip
from variants_index.http import TargetError


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with virtual environments; each in one of the project."""
    folder = tmp_path_factory.mktemp("environments")
    for name in ("active", "conda", "project/.venv"):
        command = [sys.executable, "-m", "venv", "--without-pip", folder / name]
        subprocess.run(command, check=True)
    (folder / "project/below").mkdir()
    return folder


@pytest.mark.parametrize(
    ("environ", "place", "expected", "found_by"),
    [
        ({"VIRTUAL_ENV": "active", "CONDA_PREFIX": "conda"}, "project", "active", "VIRTUAL_ENV"),
        ({"CONDA_PREFIX": "conda", "CONDA_DEFAULT_ENV": "gpu"}, "project", "conda", "CONDA_PREFIX"),
        # The base environment may be active all the time.
        ({"CONDA_PREFIX": "conda", "CONDA_DEFAULT_ENV": "base"}, "project/below", "project/.venv",
         "found from the working directory"),
        ({"CONDA_PREFIX": "conda", "CONDA_DEFAULT_ENV": "base"}, "", "conda", "CONDA_PREFIX"),
        ({}, "project", "project/.venv", "found from the working directory"),
    ],
)  # fmt: skip
def test_the_active_environment(made, environ, place, expected, found_by):
    names = ("VIRTUAL_ENV", "CONDA_PREFIX")
    environ = {key: str(made / text) if key in names else text for key, text in environ.items()}
    found = find_environment(None, environ, made / place)
    assert (found.root, found.found_by) == (made / expected, found_by)
    assert found.in_project == (expected == "project/.venv")
    assert all(Path(path).is_relative_to(found.root) for path in found.paths)
    given = find_environment(made / "active", environ, made / place)
    assert (given.root, given.found_by) == (made / "active", "--python")


def test_no_active_environment(made, monkeypatch):
    """That of this Python, unless it is a tool's: then the first one on PATH."""
    found = find_environment(None, {"PATH": ""}, made)
    assert (str(found.python), found.found_by) == (sys.executable, "the Python that runs this")
    monkeypatch.setattr(sys, "prefix", str(made / "tool"))
    (made / "tool").mkdir()
    (made / "tool/uv-receipt.toml").touch()
    found = find_environment(None, {"PATH": str(made / "active/bin")}, made)
    assert (found.root, found.found_by) == (made / "active", "the first on PATH")
    with pytest.raises(TargetError, match="no Python on PATH"):
        find_environment(None, {"PATH": str(made)}, made)


def pip(path, *, patched, own=False):
    return Pip((path,), f"{path}/site/pip", "26.3", patched, patched, own)


FIRST, OTHER = "/a/pip", "/b/pip"


@pytest.mark.parametrize(
    ("pips", "words", "chosen"),
    [
        ([pip(FIRST, patched=True, own=True)], ("pip",), 0),
        ([pip(FIRST, patched=False), pip(OTHER, patched=True, own=True)], (OTHER,), 1),
        ([pip(FIRST, patched=False), pip(OTHER, patched=False, own=True)], (OTHER,), 1),
        ([pip(FIRST, patched=True)], ("pip", "--python", "/env/bin/python"), 0),
        ([pip(FIRST, patched=False)], ("pip", "--python", "/env/bin/python"), None),
        ([], ("pip", "--python", "/env/bin/python"), None),
    ],
)
def test_which_pip(pips, words, chosen):
    environment = Environment(Path("/env/bin/python"), "3.12.1", Path("/env"), (), "VIRTUAL_ENV")
    assert choose_pip(environment, pips) == (words, None if chosen is None else pips[chosen])


@pytest.mark.skipif(os.name == "nt", reason="a shell script is no program there")
def test_what_pip_is_set_to(tmp_path):
    """Those of install count before those of all commands, and variables before both."""
    path = tmp_path / "pip"
    listed = (
        ":env:.index-url='https://c.example'\n"
        "global.extra-index-url='\\nhttps://a.example\\nhttps://b.example'\n"
        "global.index-url='https://a.example'\n"
        "install.find-links='/links'\nglobal.find-links='/others'\nodd\nglobal.x='\n"
    )
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{listed}END\n")
    path.chmod(0o755)
    assert pip_settings([str(path)], {"PATH": os.defpath}) == {
        "index-url": "https://c.example",
        "extra-index-url": "\nhttps://a.example\nhttps://b.example",
        "find-links": "/links",
    }
    assert find_pips({"PATH": str(tmp_path)}, tmp_path / "python")[0].version == ""


def test_an_environment_of_the_system():
    """What a package manager owns takes an option, of both commands."""
    given = ("--python", "/usr/bin/python3", SYSTEM)
    found = uv_commands(("--variant-catalog", "default"), given, explain="", doctor="")
    assert found.switched(["torch"]) == (
        "uv-variants --variant-catalog default --variant-switch pip install --python "
        "/usr/bin/python3 --break-system-packages torch"
    )
    assert found.removed(["torch"]) == (
        "uv pip uninstall --python /usr/bin/python3 --break-system-packages torch"
    )
    found = pip_commands(("pip",), (SYSTEM, "--pre"), explain="", doctor="", knows=True)
    assert found.switched(["a"]) == "pip install --variant-switch --break-system-packages --pre a"
    assert found.removed(["a"]) == "pip uninstall --yes --break-system-packages a"
