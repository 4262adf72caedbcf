"""Which commands have a catalogue, and which projects it leaves alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from uv_variants._command_line import parse, scope_of
from uv_variants._context import Context
from uv_variants._own_options import read_options
from uv_variants._state import CommandState

HEAD = '[project]\nname = "x"\nversion = "1"\n'
PINNED = (
    '[tool.uv.sources]\ntorch = { index = "own" }\n'
    '[[tool.uv.index]]\nname = "own"\nurl = "https://own.example/simple"\n'
)


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Return the plan of a command in a project; ``entries`` is an empty catalogue."""
    (tmp_path / "work" / "entries").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "work")

    def made(line: str, more: str = "", **environ: str) -> CommandState:
        Path("pyproject.toml").write_text(HEAD + more)
        variables = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), **environ}
        options = read_options(line.split())
        invocation = parse(options.uv_arguments)
        scope = scope_of(invocation)
        return CommandState(
            Context.of("uv", invocation, scope, options, variables, tmp_path / "cache")
        )

    return made


@pytest.mark.parametrize(
    ("line", "environ", "expected"),
    [
        ("lock", {}, False),
        ("--variant-catalog entries lock", {}, True),
        ("lock", {"VARIANTS_CATALOG": "entries"}, True),
        ("--variant-catalog none lock", {"VARIANTS_CATALOG": "entries"}, False),
        ("--variant-catalog entries --no-variants lock", {}, False),
        ("--variant-catalog entries pip install --torch-backend auto torch", {}, False),
        ("--variant-catalog entries pip install torch", {"UV_TORCH_BACKEND": "cpu"}, False),
        ("--variant-catalog entries tool install --torch-backend cpu x", {}, False),
    ],
)
def test_the_catalogue(plan, line, environ, expected):
    found = plan(line, **environ)
    assert found.context.catalog == (str(Path("entries").absolute()) if expected else None)
    settings = found.settings()
    assert settings.proxy.catalog == found.context.catalog


def test_settings_of_a_project(plan):
    backend = '[tool.uv.pip]\ntorch-backend = "cpu"\n'
    assert plan("--variant-catalog entries pip install torch", backend).context.catalog is None
    assert plan("--variant-catalog entries lock", backend).context.catalog is not None
    assert plan("--variant-catalog entries lock", PINNED).settings().proxy.pinned == {"torch"}
    assert plan("lock", PINNED).settings().proxy.pinned == set()
    mirrors = plan("--variant-catalog entries --variant-catalog-mirror http://a=http://b lock")
    assert mirrors.settings().proxy.catalog_mirrors == {"http://a": "http://b"}
    Path("variants.toml").write_text('catalog = "entries"\n')
    assert plan("lock").context.catalog is None  # a project's own file names none
