"""Files of a project that are not what they seem: uv says itself what it thinks of them."""

import os
from dataclasses import replace

import pytest

from pep_variants.errors import PlatformFileError
from uv_variants.command_line import parse, scope_of
from uv_variants.indexes import Configuration, read_configuration
from uv_variants.named_projects import Place
from uv_variants.uv_lock import Lock, LockMachine
from variants_index.uv_files import project_table

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no such files")


@pytest.fixture(params=["device", "pipe", "directory", "deep"])
def put(request):
    def put(path):
        if request.param == "device":
            path.symlink_to("/dev/zero")
        elif request.param == "pipe":
            os.mkfifo(path)
        elif request.param == "directory":
            path.mkdir()
        else:
            path.write_text("a = " + "[" * 100_000 + "\n[" + "a." * 100_000)
        return path

    return put


def read(command, folder):
    """Return what is read for a command in *folder*."""
    invocation = parse(command.split())
    environ = {"XDG_CONFIG_HOME": str(folder / "none"), "XDG_CONFIG_DIRS": "/none"}
    place = Place.of(invocation, folder, environ)
    return read_configuration(invocation, scope_of(invocation), place)


@pytest.mark.parametrize("name", ["uv.toml", "pyproject.toml", "requirements.txt", "script.py"])
def test_files_of_a_project(name, put, tmp_path):
    path = put(tmp_path / name)
    command = {"script.py": f"sync --script {path}", "requirements.txt": f"pip sync {path}"}
    # Text that is no requirement may be on a line of requirements.
    found = replace(read(command.get(name, "sync"), tmp_path), requirements=())
    assert found == Configuration()
    assert project_table(tmp_path) == {}


def test_lock_file(put, tmp_path):
    assert Lock.read(put(tmp_path / "uv.lock")).wheels == ()


def test_the_machine_of_a_lock(put, tmp_path):
    put(tmp_path / "uv.variants.toml")
    with pytest.raises(PlatformFileError, match="mend it, or lock with --variant-platform"):
        LockMachine.read(tmp_path / "uv.lock")


def test_requirement_files(tmp_path):
    first, second = ("0123456789abcdef" * 4, "f" * 64)
    (tmp_path / "a.in").write_text(
        "-r b.in\n-c c.txt\ntorch>=2; python_version > '3'  # why\n"
        f"xgboost[x]==3.1 \\\n    --hash=sha256:{first} \\\n    --hash=sha256:{second}\n"
    )
    (tmp_path / "b.in").write_text(f"My.App==2.0 --hash sha256:{first}\r\n# jax\n")
    (tmp_path / "c.txt").write_text("torch<2.15\n-f https://a.example/\n")
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\ndependencies = ['cupy']\n")
    found = read("pip install -r a.in", tmp_path)
    assert [line.split()[0] for line in found.requirements] == [
        *("torch>=2;", "xgboost[x]==3.1", "My.App==2.0", "torch<2.15"),
    ]
    assert [index.links for index in found.indexes] == [True]
    assert found.hashes == {"xgboost": {first, second}, "my-app": {first}}
    assert read("pip compile pyproject.toml", tmp_path).requirements == ("cupy",)
