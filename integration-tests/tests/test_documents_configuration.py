"""docs/reference/configuration.md against the code: a name that is in one of them only fails."""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from pep_variants.choose.options import OPTIONS
from pep_variants.choose.preferences import PRIORITIES, Preferences
from pep_variants.settings import loader
from support.documents import Page
from support.environments import ROOT
from variants_cli.main import cli
from variants_plugins.variables import PLUGIN_VARIABLES
from variants_proxy.commands.cli import cli as proxy_cli

PAGE = ROOT / "docs/reference/configuration.md"
TEXT = PAGE.read_text("utf-8")


OF_PIP = {f"PIP_{each.name.upper().replace('-', '_')}" for each in OPTIONS}
"""pip's variables of the options, for which the page has the rule."""


def rows(heading: str, number: int = 0) -> list[list[str]]:
    """Return the cells of the rows of a table of a section, without its first two lines."""
    section = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#+ |\Z)", TEXT, re.M | re.S)
    assert section, heading
    tables = re.findall(r"(?:^\|.*\n)+", section[1], re.M)
    lines = tables[number].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_names():
    assert rows("Names") == [
        [f"`--{each.name}`", f"`{each.key}`", f"`VARIANTS_{each.key.upper().replace('-', '_')}`"]
        for each in OPTIONS
    ]
    assert [row[0] for row in rows("Names", 1)] == [f"`{key}`" for key in PRIORITIES]


def test_values():
    for option, (name, value, default, project, meaning) in zip(
        OPTIONS, rows("Values"), strict=True
    ):
        assert name == f"`--{option.name}`"
        assert value.startswith("list") is option.repeatable
        assert (value == "flag") is (not option.metavar)
        assert meaning.endswith(".")
        # What the loader makes of a project's file.
        expected = "never" if option.key in loader._USERS else "no"
        assert (project == expected) is not option.narrows
        if not option.repeatable and option.metavar:
            attribute = {"platform": "platform_file"}.get(option.key, option.key.replace("-", "_"))
            really = getattr(Preferences(), attribute)
            assert default.strip("`") == (
                really or {"platform": "detection"}.get(option.key, "none")
            )


def command(group: click.Group, path: str) -> click.Command:
    found: click.Command = group
    for word in path.split():
        assert isinstance(found, click.Group)
        found = found.commands.get(word) or found.get_command(click.Context(found), word)
        assert found is not None
    return found


def leaves(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
    """Yield the commands of *group* that have no commands of their own, with their names."""
    for name in group.list_commands(click.Context(group)):
        found = command(group, name)
        if isinstance(found, click.Group):
            yield from leaves(found, f"{path} {name}")
        else:
            yield f"{path} {name}", found


def test_which_command_has_which_option():
    all_but = {"variants resolve", "variants explain", "variants check", "variants doctor"}
    expected = {name: {each.name for each in OPTIONS if not each.installs} for name in all_but}
    for name, options in rows("Which command has which option"):
        expected[name.strip("`")] = set(re.findall(r"`--([a-z-]+)`", options))
    found = {}
    for name, each in (*leaves(cli, "variants"), *leaves(proxy_cli, "variants-proxy")):
        options = {text for parameter in each.params for text in parameter.opts}
        ours = {option.name for option in OPTIONS if f"--{option.name}" in options}
        if ours:
            found[name] = ours
    assert found == expected


def test_variables_of_the_proxy():
    expected: dict[str, str] = {}
    for name in ("serve", "export"):
        for option in command(proxy_cli, name).params:
            if not isinstance(option, click.Option) or not option.allow_from_autoenv:
                continue
            variable = option.envvar or f"VARIANTS_PROXY_{(option.name or '').upper()}"
            longest = max(option.opts, key=len)
            assert isinstance(variable, str)
            # As --help of `serve` says: the name of the variable is that of the option.
            assert variable == "VARIANTS_PROXY_" + longest.removeprefix("--").removeprefix(
                "variant-"
            ).upper().replace("-", "_")
            expected[f"`{longest}`"] = f"`{variable}`"
    assert {row[0]: row[1] for row in rows("variants-proxy")} == expected


def test_variables_of_plugins():
    assert {row[0]: row[1] for row in rows("Variables that plugins see")} == {
        kind: ", ".join(f"`{name}`" for name in names) for kind, names in PLUGIN_VARIABLES.items()
    }


NAME = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+_?")
# Constants of the operating system, of ELF, in a header of ROCm; variables of CMake; the beginning
# of those of the proxy.
NO_VARIABLES = re.compile(
    r"(O|EM|SHT|STT|SC|RLIMIT)_.*|API_VERSION|HIP_VERSION_M(AJ|IN)OR|CMAKE_[A-Z]+_(LINKER_)?FLAGS"
    "|VARIANTS_PROXY"
)


@functools.cache
def read_names() -> frozenset[tuple[str, Path]]:
    """Return what may be the name of a variable in the sources, and the module."""
    return frozenset(_read_names())


def _read_names() -> Iterator[tuple[str, Path]]:
    folders = [*ROOT.glob("packages/*/src"), ROOT / "resolver-ext/src", ROOT / "pip-patch"]
    for path in (path for folder in folders for path in folder.rglob("*.py")):
        if "tests" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                if NAME.fullmatch(node.value) and not NO_VARIABLES.fullmatch(node.value):
                    yield node.value, path
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("environ.get"):
                yield from _literal(node.args[0], path)
            if isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith("environ"):
                yield from _literal(node.slice, path)


def _literal(node: ast.expr, path: Path) -> Iterator[tuple[str, Path]]:
    if isinstance(node, ast.Constant):
        yield node.value, path


def test_every_variable_is_on_the_page():
    there = set(re.findall(r"`([^`\s=]+)[`=]", TEXT)) | OF_PIP
    missing = {
        f"{name} ({path.relative_to(ROOT)})"
        for name, path in read_names()
        if name not in there
        and not (name.endswith("_") and any(each.startswith(name) for each in there))
    }
    assert missing == set()


def test_every_variable_of_the_page_is_in_the_code():
    known = {name for name, _ in read_names()}
    beginnings = tuple(name for name in known if name.endswith("_"))
    known |= {name for names in PLUGIN_VARIABLES.values() for name in names}
    made = {
        name.strip("`")
        for heading in ("Names", "variants-proxy", "uv-variants alone")
        for row in rows(heading)
        for name in row
    }
    there = {name for name in re.findall(r"`([A-Z][A-Z0-9_]+)[`=]", TEXT) if "_" in name}
    unknown = there - known - made - OF_PIP
    assert {name for name in unknown if not name.startswith(beginnings)} == set()


@pytest.mark.nightly
@pytest.mark.skipif(sys.platform != "linux", reason="the page shows the directories of Linux")
def test_example(reader):
    reader.use_variants()
    (doctor,) = (
        step.text
        for step in Page(PAGE).steps
        if getattr(step, "text", "").startswith("variants doctor")
    )
    reader.follow(Page(ROOT / "docs/reference/configuration.md"), failing=[doctor])
