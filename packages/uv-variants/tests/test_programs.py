"""How uv is run so that programs have the user's environment variables."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from uv_variants.place import Place
from uv_variants.programs import program_run
from uv_variants.programs.startup.sitecustomize import STATE
from uv_variants.programs.state import state_of

STARTUP = Path(program_run.__code__.co_filename).with_name("startup")
LAUNCHER = str(STARTUP / "sitecustomize.py")


def planned(*arguments, cwd=Path()):
    place = Place(cwd, cwd, {"A": "1"})
    context = SimpleNamespace(uv="/bin/uv", place=place)
    return program_run(context, arguments, {"A": "2"})


@pytest.fixture
def folder(tmp_path):
    for name in ("a.py", "b.PYC", "text", "package/__main__.py", "empty/other.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    for name, content in (("archive", "__main__.py"), ("data.zip", "data")):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr(content, "")
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        "run a.py x",
        "run b.PYC",
        "run package",
        "run archive",
        "run -",
        "run https://example.org/a",
        "run -m mod",
        "run -qm mod",
        "run --script text",
        "run",
        "run --with x",
        "run -- a.py",
        "sync",
        "pip install a.py",
    ],
)
def test_what_uv_itself_runs_with_python_stays(folder, words):
    command, environ = planned(*words.split(), cwd=folder)
    assert command == ["/bin/uv", *words.split()]
    assert environ["PYTHONPATH"].split(os.pathsep)[0] == str(STARTUP)


@pytest.mark.parametrize("program", ["text", "empty", "data.zip", "c.py", "./text", "python3", "x"])
@pytest.mark.parametrize("before", ["run", "run --", "run --with y -q", "run -p 3.12 --"])
def test_programs_start_by_way_of_the_launcher(folder, before, program):
    command, _ = planned(*before.split(), program, "-c", "--", cwd=folder)
    again = ["/bin/uv", "run", "--no-project", "--", program, "-c", "--"]
    launched = [sys.executable, "-I", "-S", LAUNCHER, "program", *again]
    assert command == ["/bin/uv", *before.split(), *launched]


def test_python_starts_the_launcher_itself(folder):
    command, _ = planned("run", "--", "Python", "-m", "x", cwd=folder)
    launched = ["Python", "-I", "-S", LAUNCHER, "python", "-m", "x"]
    assert command == ["/bin/uv", "run", "--", *launched]


def test_only_what_differs_is_in_the_state():
    user = {"same": "1", "changed": "user's", "gone": "", "odd": os.fsdecode(b"\xff;=\n")}
    own = {"same": "1", "changed": "ours", "added": "secret", "LC_CTYPE": "C.UTF-8"}
    changed = b"user's".hex()
    assert state_of(own, user) == f"LC_CTYPE;added;changed={changed};gone=;odd=ff3b3d0a"


@pytest.mark.skipif(os.name == "nt", reason="the process is not replaced there")
@pytest.mark.parametrize("way", ["program", "python", "start"])
def test_the_variables_are_restored(way, tmp_path):
    user = {**os.environ, "PYTHONPATH": str(tmp_path), "ODD": os.fsdecode(b"\xff;=\n"), "EMPTY": ""}
    user.pop("LC_CTYPE", None)
    own = {**user, "PYTHONPATH": str(STARTUP), "ODD": "x", "EMPTY": "x", "SECRET": "x"}
    own[STATE] = state_of(own, user)
    code = "import os, sys; sys.stdout.buffer.write(open('/proc/self/environ', 'rb').read())"
    if not sys.platform.startswith("linux"):
        code = "import os; print(*sorted(os.environ.items()), sep='\\0')"
    end = ["-c", code]
    command = {
        "program": ["-I", "-S", LAUNCHER, "program", "no-uv", "--", sys.executable, *end],
        "python": ["-I", "-S", LAUNCHER, "python", *end],
        "start": end,
    }[way]
    found = subprocess.run([sys.executable, *command], env=own, stdout=subprocess.PIPE, check=True)
    plain = subprocess.run([sys.executable, *end], env=user, stdout=subprocess.PIPE, check=True)
    assert sorted(found.stdout.split(b"\0")) == sorted(plain.stdout.split(b"\0"))
