"""The arguments and variables that uv gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from uv_variants.command_scope import scope_of
from uv_variants.invocation import parse
from uv_variants.place import Place
from uv_variants.plan import make_plan


def rewritten(arguments, cwd, environ=None, files=None):
    """Return uv's arguments, variables and the plan; the URL of an index is its name."""
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
    plan = make_plan(invocation, scope_of(invocation), Place(cwd, cwd, environ))
    found, variables = plan.rewritten(invocation, lambda index: f"<{index.proxy_name}>")
    return " ".join(found), variables, plan


PROJECT = '[project]\nname = "p"\n'
CORP = "https://me:secret@corp.example/simple/"


@pytest.mark.parametrize(
    ("arguments", "environ", "files", "wanted", "variables"),
    [
        ("sync", {}, {}, "sync", {"UV_DEFAULT_INDEX": "<pypi>"}),
        ("sync --no-index", {}, {}, "sync --no-index", {}),
        ("sync", {"UV_DEFAULT_INDEX": f"a={CORP}"}, {}, "sync", {"UV_DEFAULT_INDEX": "a=<a>"}),
        (
            "sync --default-index https://pypi.org/simple/",
            {"UV_DEFAULT_INDEX": f"a={CORP}"},
            {},
            "sync --default-index <pypi>",
            {},
        ),
        (
            "sync",
            {"UV_INDEX": f"a={CORP} b=https://b.example"},
            {},
            "sync",
            {"UV_INDEX": "a=<a> b=<b>", "UV_DEFAULT_INDEX": "<pypi>"},
        ),
        # A file's index goes after what was given, in the same way.
        (
            "sync --index a=https://a.example",
            {"UV_INDEX": "unused=https://unused.example"},
            {"uv.toml": '[[index]]\nname = "f"\nurl = "https://f.example"\n'},
            "sync --index a=<a> --index f=<f>",
            {"UV_DEFAULT_INDEX": "<pypi>"},
        ),
        # What is given under a name replaces what a file has under it.
        (
            "sync",
            {"UV_INDEX": "f=https://a.example"},
            {"uv.toml": '[[index]]\nname = "f"\nurl = "https://f.example"\n'},
            "sync",
            {"UV_INDEX": "f=<f>", "UV_DEFAULT_INDEX": "<pypi>"},
        ),
        # A default of a file's `index` outranks --index-url; its `index-url` does not.
        (
            "sync",
            {"UV_INDEX_URL": "https://pypi.org/simple"},
            {"uv.toml": '[[index]]\nname = "f"\nurl = "https://f.example"\ndefault = true\n'},
            "sync",
            {"UV_INDEX_URL": "<pypi>", "UV_DEFAULT_INDEX": "f=<f>"},
        ),
        (
            "sync",
            {"UV_INDEX_URL": "https://pypi.org/simple"},
            {"uv.toml": 'index-url = "https://f.example"\n'},
            "sync",
            {"UV_INDEX_URL": "<pypi>"},
        ),
        # The index of a requirement file is not passed over for PyPI.
        (
            "pip install -r r.txt",
            {},
            {"r.txt": "-r more.txt\n", "more.txt": "--index-url https://pypi.org/simple/\nx\n"},
            "pip install -r r.txt",
            {"UV_DEFAULT_INDEX": "<pypi>"},
        ),
        # The user's file counts for tools, the project's does not.
        (
            "tool run x",
            {},
            {
                "uv.toml": 'index-url = "https://f.example"\n',
                "config/uv/uv.toml": '[[index]]\nname = "u"\nurl = "https://u"\ndefault = true\n',
            },
            "tool run x",
            {"UV_DEFAULT_INDEX": "u=<u>"},
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
            "pip install x",
            {"UV_DEFAULT_INDEX": "<pypi>"},
        ),
    ],
)
def test_indexes_keep_their_places(tmp_path: Path, arguments, environ, files, wanted, variables):
    found, changed, _ = rewritten(arguments, tmp_path, environ, files)
    assert found == wanted
    assert changed == variables


def test_explicit_indexes_are_for_the_projects_that_name_them(tmp_path):
    files = {
        "pyproject.toml": PROJECT
        + '[tool.uv.sources]\nTorch = { index = "gpu" }\n'
        + 'b = [{ index = "gpu", marker = "x" }, { git = "y" }]\n'
        + '[tool.uv.workspace]\nmembers = ["packages/*"]\n'
        + '[[tool.uv.index]]\nname = "gpu"\nurl = "https://gpu.example"\nexplicit = true\n',
        "packages/m/pyproject.toml": PROJECT
        + '[tool.uv.sources]\nc = { index = "own" }\n'
        + '[[tool.uv.index]]\nname = "own"\nurl = "https://own.example"\n',
    }
    _, variables, plan = rewritten("sync", tmp_path, {}, files)
    assert variables == {"UV_DEFAULT_INDEX": "<pypi>", "UV_INDEX": "gpu=<gpu> own=<own>"}
    assert plan.projects == {"gpu": {"torch", "b"}, "own": {"c"}}
    assert plan.order == ("gpu", "own", "pypi")


def test_find_links_go_through_the_proxy_if_they_may_have_variants(tmp_path):
    plain, variants = tmp_path / "plain", tmp_path / "variants"
    plain.mkdir()
    variants.mkdir()
    (plain / "a-1-py3-none-any.whl").touch()
    (variants / "a-1-py3-none-any-cu128.whl").touch()
    found, _, plan = rewritten("pip install -f plain -f variants -f https://a/links a", tmp_path)
    first, second, third = plan.indexes
    assert (first.startswith("local-"), second.startswith("a-"), third) == (True, True, "pypi")
    assert found == f"pip install -f plain -f <{first}> -f <{second}> a"


def test_names_are_the_same_everywhere_and_tell_no_secret(tmp_path):
    _, _, plan = rewritten("sync", tmp_path, {"UV_INDEX": CORP})
    _, _, other = rewritten("sync", tmp_path, {"UV_INDEX": "https://corp.example/simple"})
    assert list(plan.indexes) == list(other.indexes)
    assert "secret" not in repr(plan)
