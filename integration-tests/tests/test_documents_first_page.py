"""The first page: its commands work as typed, and its picture shows them."""

from __future__ import annotations

import sys
from xml.etree import ElementTree

import pytest

import variants_catalog
from demo.terminal import COLUMNS, Typed, svg
from support.documents import Command, Page, expression
from support.environments import PIPS, ROOT
from support.published_builds import field_of, standing_in
from variants_catalog.catalogs import DirectoryCatalog

README = Page(ROOT / "README.md")
PICTURE = ROOT / "docs" / "pictures" / "first-commands.svg"
SVG = "{http://www.w3.org/2000/svg}"
# On PyPI when the picture was made. The pip that ensurepip installs with Python 3.11.
VERSIONS = {"jax": ("0.10.2",)}
OLD_PIP = "23.2.1"


@pytest.mark.skipif(sys.platform != "linux", reason="the machine of the page has Linux")
@pytest.mark.parametrize("pip", [pytest.param(OLD_PIP, marks=pytest.mark.nightly), PIPS[-1]])
def test_the_commands_work_as_typed(reader, pip):
    environment = reader.environments.plain("3.11", pip).copied(reader.home / "env")
    reader.activate(environment)
    reader.use_pip(PIPS[-1])
    (reader.work / "dist").symlink_to(reader.environments.shim_wheel.parent)
    catalog = DirectoryCatalog(variants_catalog.projects())
    entries = [entry for name in VERSIONS if (entry := catalog.project(name)) is not None]
    with standing_in(field_of(entries, VERSIONS)) as field:
        reader.environ |= {
            "PIP_INDEX_URL": field.index.url,
            "VARIANTS_CATALOG_MIRROR": " ".join(field.mirrors),
            "VARIANTS_PLATFORM": "h100-zen4",
        }
        reader.follow(README)


def shown() -> list[str]:
    """Return the text of the picture, line by line, a command after its prompt."""
    rows: dict[str, str] = {}
    for text in ElementTree.fromstring(PICTURE.read_text("utf-8")).iter(f"{SVG}text"):
        if text.get("class") != "title":
            rows[text.get("y", "")] = " ".join(
                filter(None, (rows.get(text.get("y", "")), text.text))
            )
    return list(rows.values())


def test_the_picture_shows_the_commands_of_the_page():
    lines = shown()
    typed = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    commands = [step for step in README.steps if isinstance(step, Command)]
    assert typed == [command.text for command in commands]
    assert max(map(len, lines)) <= COLUMNS
    ends = [lines.index(f"$ {text}") for text in typed] + [len(lines)]
    for command, start, end in zip(commands, ends, ends[1:], strict=False):
        printed = "".join(f"{line}\n" for line in lines[start + 1 : end])
        wanted = [line for line in command.lines if not line.startswith("Would install …")]
        assert expression([*wanted, "…"]).fullmatch(printed), printed


def test_a_recording_escapes_and_wraps_what_was_printed():
    text = svg("a <title>", [Typed("echo '<&>'", ("<&>", "x" * (COLUMNS + 1)))], ("<",))
    found = list(ElementTree.fromstring(text).iter(f"{SVG}text"))
    assert [item.text for item in found] == [
        "a <title>", "$", "echo '<&>'", "<&>", "x" * COLUMNS, "x",
    ]  # fmt: skip
    assert [item.get("class") for item in found][3:] == ["chosen", "printed", "printed"]
