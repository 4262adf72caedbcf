"""What uv's configuration says: the indexes that it uses, in its order, and requirements."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from pep_variants.errors import PlatformFileError
from uv_variants._command_line import parse, scope_of
from uv_variants._indexes import (
    Configuration,
    has_variants,
    index_at,
    link_options,
    read_configuration,
    used_indexes,
)
from uv_variants._named_projects import CommandPlace
from uv_variants._uv_lock import Lock, LockMachine
from variants_index.uv_files import project_table

PROJECT = '[project]\nname = "p"\n'
CORP = "https://me:secret@corp.example/simple/"
FILE = '[[index]]\nname = "f"\nurl = "https://f.example"\n'


def read(arguments, cwd, environ=None, files=None, *, reader=used_indexes):
    """Return what uv uses for a command line."""
    environ = {
        "XDG_CONFIG_HOME": str(cwd / "config"),
        "XDG_CONFIG_DIRS": "/none",
        **(environ or {}),
    }
    for name, text in (files or {}).items():
        path = cwd / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    invocation = parse(arguments.split())
    return reader(invocation, scope_of(invocation), CommandPlace.of(invocation, cwd, environ))


@pytest.mark.parametrize(
    ("arguments", "environ", "files", "wanted"),
    [
        ("sync", {}, {}, ["pypi"]),
        ("sync --no-index", {}, {"uv.toml": FILE}, []),
        (
            "sync --default-index https://pypi.org/simple/",
            {"UV_DEFAULT_INDEX": f"a={CORP}"},
            {},
            ["pypi"],
        ),
        ("sync", {"UV_INDEX": f"a={CORP} b=https://b.example"}, {}, ["a", "b", "pypi"]),
        (
            "sync --index a=https://a.example",
            {"UV_INDEX": "unused=https://unused.example"},
            {"uv.toml": FILE},
            ["a", "f", "pypi"],
        ),
        # What is given under a name replaces what a file has under it.
        (
            "sync",
            {"UV_INDEX": "f=https://a.example"},
            {"uv.toml": f"{FILE}default = true\n"},
            ["f", "pypi"],
        ),
        # A default of a file's `index` outranks --index-url; its `index-url` does not.
        (
            "sync",
            {"UV_INDEX_URL": "https://pypi.org/simple"},
            {"uv.toml": f"{FILE}default = true\n"},
            ["f"],
        ),
        (
            "sync",
            {"UV_INDEX_URL": "https://pypi.org/simple"},
            {"uv.toml": 'index-url = "https://f.example"\n'},
            ["pypi"],
        ),
        (
            "pip install -r r.txt",
            {},
            {"r.txt": "-r more.txt\n", "more.txt": f"--index-url {CORP}\nx\n"},
            ["corp.example-c8c5bc9d2e"],
        ),
        # The user's file counts for tools, the project's does not.
        (
            "tool run x",
            {},
            {"uv.toml": FILE, "config/uv/uv.toml": '[[index]]\nname = "u"\nurl = "https://u"\n'},
            ["u", "pypi"],
        ),
        # And `uv pip` has a table of its own.
        (
            "pip install x",
            {},
            {
                "pyproject.toml": PROJECT
                + '[tool.uv]\nindex-url = "https://f"\n'
                + '[tool.uv.pip]\nindex-url = "https://pypi.org/simple"\n'
            },
            ["pypi"],
        ),
        # Flat indexes are asked before the default in name only: their files are merged.
        (
            "sync",
            {},
            {"uv.toml": f'{FILE}format = "flat"\nexplicit = true\n'},
            ["pypi", "f"],
        ),
    ],
)
def test_the_order_is_that_of_uv(tmp_path, arguments, environ, files, wanted):
    found = read(arguments, tmp_path, environ, files)
    assert [name.partition("-")[0] for name in tuple(found.indexes)] == [
        name.partition("-")[0] for name in wanted
    ]


def test_explicit_indexes_are_for_the_projects_that_name_them(tmp_path):
    files = {
        "pyproject.toml": PROJECT
        + '[tool.uv.sources]\nTorch = { index = "gpu" }\n'
        + 'b = [{ index = "gpu", marker = "x" }, { git = "y" }]\n'
        + '[tool.uv.workspace]\nmembers = ["packages/*"]\n'
        + '[[tool.uv.index]]\nname = "gpu"\nurl = "https://gpu.example"\nexplicit = true\n',
        "packages/m/pyproject.toml": PROJECT
        + '[tool.uv.sources]\nc = { index = "own" }\n'
        + '[[tool.uv.index]]\nname = "own"\nurl = "https://own.example"\nformat = "flat"\n',
    }
    found = read("sync", tmp_path, {}, files)
    assert found.projects == {"gpu": {"torch", "b"}, "own": {"c"}}
    assert tuple(found.indexes) == ("gpu", "pypi", "own")
    assert (found.indexes["own"].links, found.indexes["own"].explicit) == (True, True)


def test_local_projects_have_indexes_of_their_own(tmp_path):
    """V10: path dependencies, and theirs, and projects that a command names."""
    own = '[tool.uv.sources]\n{0} = {{ index = "{0}" }}\n{1}\n[[tool.uv.index]]\nname = "{0}"\n'
    own += 'url = "https://{0}.example"\nexplicit = true\n'
    files = {
        "app/pyproject.toml": PROJECT
        + '[tool.uv.sources]\nb = { path = "../b", editable = true }\n',
        "b/pyproject.toml": PROJECT + own.format("torch", 'c = [{ path = "../c" }]'),
        "c/pyproject.toml": PROJECT + own.format("numpy", 'b = { path = "../b" }'),
    }
    read("sync", tmp_path, files=files)
    both = {"torch": {"torch"}, "numpy": {"numpy"}}
    assert read("sync", tmp_path / "app").projects == both
    assert read("pip install ../b", tmp_path / "app").projects == both
    assert read("pip install -e ./c[x]", tmp_path).projects == both
    assert read("pip install b", tmp_path).projects == {}


def test_a_tool_is_upgraded_from_the_indexes_in_its_receipt(tmp_path):
    receipt = '[tool]\n[tool.options]\nindex = [{ name = "a", url = "https://a.example" }]\n'
    environ = {"UV_TOOL_DIR": str(tmp_path / "tools")}
    files = {"tools/x/uv-receipt.toml": receipt}
    assert read("tool upgrade x", tmp_path, environ, files).indexes.keys() == {"a", "pypi"}
    assert read("tool upgrade --all", tmp_path, environ, files).indexes.keys() == {"a", "pypi"}
    assert read("tool upgrade y", tmp_path, environ, files).indexes.keys() == {"pypi"}


def test_find_links_come_last_and_local_ones_may_have_variants(tmp_path):
    plain, variants = tmp_path / "plain", tmp_path / "variants"
    plain.mkdir()
    variants.mkdir()
    (plain / "a-1-py3-none-any.whl").touch()
    (variants / "a-1-py3-none-any-cu128.whl").touch()
    found = read("pip install -f plain -f variants,https://a/links a", tmp_path)
    first, *rest = found.indexes.values()
    assert first.default
    assert [index.links for index in rest] == [True, True, True]
    assert [has_variants(index) for index in rest[:2]] == [False, True]


def test_names_are_the_same_everywhere_and_tell_no_secret(tmp_path):
    found = read("sync", tmp_path, {"UV_INDEX": CORP})
    other = read("sync", tmp_path, {"UV_INDEX": "https://corp.example/simple"})
    assert tuple(found.indexes) == tuple(other.indexes)
    assert "secret" not in repr(found)


def test_directories_with_variants_have_urls_in_their_place(tmp_path):
    """Of an option that names one of two; the other is of a file, which the option outranks."""
    shown = {}
    for name in ("own", "filed"):
        index = index_at(name, tmp_path, {}, links=True, legacy=True)
        shown[index.proxy_name] = replace(index, shown=f"http://find-links.localhost/{name}/")
    invocation = parse(["pip", "install", "--find-links", "own", "app"])
    values, added = link_options(invocation, CommandPlace.of(invocation, tmp_path, {}), shown)
    assert values == {2: "http://find-links.localhost/own/"}
    assert added == ["--find-links", "http://find-links.localhost/filed/"]


def test_requirement_files(tmp_path):
    first, second = ("0123456789abcdef" * 4, "f" * 64)
    (tmp_path / "a.in").write_text(
        "-r b.in\n-c c.txt\ntorch>=2; python_version > '3'  # why\n"
        f"xgboost[x]==3.1 \\\n    --hash=sha256:{first} \\\n    --hash=sha256:{second}\n"
    )
    (tmp_path / "b.in").write_text(f"My.App==2.0 --hash sha256:{first}\r\n# jax\n")
    (tmp_path / "c.txt").write_text("torch<2.15\n-f https://a.example/\n")
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\ndependencies = ['cupy']\n")
    found = read("pip install -r a.in", tmp_path, reader=read_configuration)
    assert [line.split()[0] for line in found.requirements] == [
        *("torch>=2;", "xgboost[x]==3.1", "My.App==2.0", "torch<2.15"),
    ]
    assert [index.links for index in found.indexes] == [True]
    assert found.hashes == {"xgboost": {first, second}, "my-app": {first}}
    found = read("pip compile pyproject.toml", tmp_path, reader=read_configuration)
    assert found.requirements == ("cupy",)


@pytest.fixture(params=["device", "pipe", "directory", "deep"])
def put(request):
    """Files that are not what they seem: uv says itself what it thinks of them."""
    if os.name == "nt":
        pytest.skip("Windows has no such files")

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


@pytest.mark.parametrize("name", ["uv.toml", "pyproject.toml", "requirements.txt", "script.py"])
def test_files_of_a_project(name, put, tmp_path):
    path = put(tmp_path / name)
    command = {"script.py": f"sync --script {path}", "requirements.txt": f"pip sync {path}"}
    # Text that is no requirement may be on a line of requirements.
    found = replace(
        read(command.get(name, "sync"), tmp_path, reader=read_configuration), requirements=()
    )
    assert found == Configuration()
    assert project_table(tmp_path) == {}


def test_lock_file(put, tmp_path):
    assert Lock.read(put(tmp_path / "uv.lock")).wheels == ()


def test_the_machine_of_a_lock(put, tmp_path):
    put(tmp_path / "uv.variants.toml")
    with pytest.raises(PlatformFileError, match="mend it, or lock with --variant-platform"):
        LockMachine.read(tmp_path / "uv.lock")
