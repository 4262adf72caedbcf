"""The tables of uv's options beside uv: what every help text names, and what its parser takes."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.environments import Environments
from support.uvs import UVS, downloaded_uv
from uv_variants._command_line import HIDDEN, TAKES_VALUE, parse

_OPTION = re.compile(r"^(?:  -(?P<letter>\w), |      )--(?P<name>[a-z][\w-]*)(?P<value> <)?", re.M)
_COMMANDS = re.compile(r"^Commands:\n((?:  .*\n)+)", re.M)
_HIDDEN_IN = (("pip", "compile"), ("pip", "sync"), ("pip", "install"), ("run",), ("export",))
_NO_OPTION = "--no-such-option"


def shown(uv: Path, *arguments: str) -> tuple[str, str]:
    """Return what uv prints, on both streams, without configuration."""
    variables = {"UV_NO_CONFIG": "1", "NO_COLOR": "1"}
    variables |= {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
    done = subprocess.run(
        [str(uv), *arguments], capture_output=True, text=True, env=variables, check=False
    )
    return done.stdout, done.stderr


def helps(uv: Path, command: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the help text of every command below *command*."""
    text, _ = shown(uv, *command, "--help")
    yield command, text
    listed = _COMMANDS.search(text)
    for line in listed[1].splitlines() if listed else ():
        name = re.match(r"  ([a-z][\w-]+)", line)
        if name and name[1] != "help":
            yield from helps(uv, (*command, name[1]))


@pytest.mark.parametrize(
    "version",
    [UVS[0], *(pytest.param(uv, marks=pytest.mark.nightly) for uv in UVS[1:-1]), UVS[-1]],
)
def test_every_option_of_every_command(version: str, environments: Environments) -> None:
    """An option that takes a value takes the next argument; a flag leaves it where it is."""
    texts = dict(helps(downloaded_uv(version, environments.wheelhouse)))
    assert len(texts) > 40
    for command, text in texts.items():
        operand = "x" if command and not _COMMANDS.search(text) else ""
        for option in _OPTION.finditer(text):
            for spelling in filter(None, (f"--{option['name']}", option["letter"])):
                written = spelling if spelling.startswith("--") else f"-{spelling}"
                found = parse([*command, written, "VALUE", operand])
                values = [given.value for given in found.given]
                assert values == (["VALUE"] if option["value"] else []), (command, written)


def test_options_that_no_help_text_has(environments: Environments) -> None:
    """Each of them takes a value in one of uv's commands; whether there are more is not tested."""
    uv = downloaded_uv(UVS[-1], environments.wheelhouse)
    for name in HIDDEN:
        assert name in TAKES_VALUE
        said = [shown(uv, *command, f"--{name}=x", _NO_OPTION)[1] for command in _HIDDEN_IN]
        assert any(f"'{_NO_OPTION}' found" in text or "invalid value" in text for text in said), (
            name,
            said,
        )
