"""Where a command installs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from uv_variants._command_line import parse
from uv_variants._environments import Search, python_version
from uv_variants._named_projects import CommandPlace, requested

BASE = Path(sys.executable).resolve()
"""The interpreter that the environment of the tests was made with."""


def search(arguments, cwd, environ=None, *, uv="uv-that-does-not-exist", **more):
    """Return where a command line installs, relative to *cwd* if it is in there."""
    (cwd / "pyproject.toml").write_text('[project]\nname = "p"\n')
    values = {"settings": {}, "cache": cwd / "cache", **more}
    invocation = parse(arguments.split())
    place = CommandPlace.of(invocation, cwd, {"UV_TOOL_DIR": str(cwd / "tools"), **(environ or {})})
    found = Search(uv, invocation, place, **values).environments()
    return [str(path.relative_to(cwd)) if cwd in path.parents else str(path) for path in found]


@pytest.mark.parametrize(
    ("arguments", "environ", "wanted"),
    [
        ("sync", {}, [".venv"]),
        ("sync", {"UV_PROJECT_ENVIRONMENT": "env"}, ["env"]),
        ("sync --active", {"VIRTUAL_ENV": "/v"}, ["/v"]),
        ("run --no-sync x", {}, []),
        ("run --no-project x", {}, []),
        ("run plain.py", {}, [".venv"]),  # no inline metadata: it runs in the project
        ("pip compile r.txt", {}, []),
        ("pip install x", {}, [".venv"]),
        ("pip install x", {"VIRTUAL_ENV": "/v"}, ["/v"]),
        ("pip install x", {"CONDA_PREFIX": "/c"}, ["/c"]),
        ("pip install --target there x", {"VIRTUAL_ENV": "/v"}, ["there"]),
        ("pip sync --prefix there r.txt", {}, ["there"]),
        ("pip install --python 3.12 x", {"VIRTUAL_ENV": "/v"}, []),  # there is no uv to ask
        ("tool install Torch_Tool>=1", {}, ["tools/torch-tool"]),
        ("tool install --from torch-tool@2 tt", {}, ["tools/torch-tool"]),
        ("tool install ./folder", {}, []),
        ("tool upgrade a b", {}, ["tools/a", "tools/b"]),
        ("tool upgrade --all", {}, ["tools/z"]),
    ],
)
def test_where_a_command_installs(tmp_path: Path, arguments, environ, wanted):
    (tmp_path / "tools" / "z").mkdir(parents=True)
    (tmp_path / "tools" / "z" / "uv-receipt.toml").touch()
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "pyvenv.cfg").touch()
    assert search(arguments, tmp_path, environ) == wanted


def test_uv_is_asked_for_interpreters(tmp_path):
    environment = tmp_path / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    inside = next(environment.glob("[bS]*/python*"))
    uv = tmp_path / "uv"
    uv.write_text(f'#!/bin/sh\ncase "$*" in *--system*) echo {BASE};; *) echo {inside};; esac\n')
    uv.chmod(0o755)
    assert search(f"pip install --python {inside} x", tmp_path, uv=str(uv)) == ["env"]
    assert search(f"pip install --python {inside} x", tmp_path) == ["env"]  # without asking
    settings = {"python": "3.12"}
    assert search("pip sync r.txt", tmp_path, uv=str(uv), settings=settings) == ["env"]
    (system,) = search("pip install --system x", tmp_path, uv=str(uv))
    assert system.endswith(("site-packages", "dist-packages"))
    (tmp_path / "s.py").write_text("# /// script\n# dependencies = []\n# ///\n")
    assert search("run s.py", tmp_path, uv=str(uv)) == ["env"]


def test_the_lock_is_the_one_that_uv_uses(tmp_path):
    """V4: a project's lock does not decide for commands that do not use it."""
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "p"\n')
    (tmp_path / "s.py").write_text('# /// script\n# dependencies = ["torch"]\n# ///\n')

    def lock_of(arguments, environ=None):
        path = CommandPlace.of(parse(arguments.split()), tmp_path, environ or {}).lock_path
        return path.name if path is not None else None

    assert lock_of("sync") == "uv.lock"
    for text in ("run s.py", "lock --script s.py", "run --no-project s.py"):
        assert lock_of(text) == "s.py.lock"
    script = parse(["run", "s.py"])
    assert requested(script, CommandPlace.of(script, tmp_path, {})) == ["torch"]
    named = parse(["pip", "install", "My.App[x]>=1"])
    assert requested(named, CommandPlace.of(named, tmp_path, {})) == ["my-app"]
    assert lock_of("run python", {"UV_NO_PROJECT": "1"}) is None
    assert lock_of("run python", {"UV_NO_PROJECT": "0"}) == "uv.lock"


@pytest.mark.parametrize(
    ("line", "version"),
    [("version_info = 3.13.1", "3.13.1"), ("version = 3.11.7", "3.11.7"), ("=", "")],  # uv, venv
)
def test_the_python_of_an_environment(tmp_path, line, version):
    """K2."""
    assert python_version(tmp_path) == ""
    (tmp_path / "pyvenv.cfg").write_text(f"home = /usr/bin\n{line}\n")
    assert python_version(tmp_path) == version
