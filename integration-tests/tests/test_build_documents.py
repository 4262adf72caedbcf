"""The documents that this project comes from: each row's command is typed, the data are true."""

from __future__ import annotations

import json
import platform
import re
import sys
from collections import Counter
from pathlib import Path

import pytest

from support import build_documents
from support.build_documents import DATA, PAGE, ROOT, Row, documents, entry
from support.build_projects import write_project
from support.documents import Page, Reader

ROWS = [(title, row) for title, rows in documents().items() for row in rows]
FOUND = [json.loads(line) for line in DATA.read_text("utf-8").splitlines()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the page has typed first."""
    made = tmp_path_factory.mktemp("typed")
    build_documents.prepare(made)
    return made


@pytest.mark.parametrize("number", range(25))
def test_rows(number: int, folder: Path) -> None:
    """One in many, as `data` has it: most rows are one command with each label."""
    for (title, row), found in zip(ROWS[number::250], FOUND[number::250], strict=True):
        assert found == entry(title, row, folder)


@pytest.mark.nightly
def test_data() -> None:
    assert build_documents.data() == DATA.read_text("utf-8")


@pytest.mark.parametrize("row", [row for _, row in ROWS if row.page], ids=str)
def test_rows_of_other_pages(row: Row) -> None:
    assert row.command in [command.text for command in Page(ROOT / row.page).commands]


def test_the_data_have_each_row_with_a_command() -> None:
    assert [(each["document"], each["row"], each["command"]) for each in FOUND] == [
        (title, row.words, row.command) for title, row in ROWS
    ]
    assert [each["row"] for each in FOUND if not each["command"].strip()] == []
    assert [each["row"] for each in FOUND if not (each.get("page") or each["prints"])] == []


def test_the_summary() -> None:
    """How many rows a document has, and which commands are in them."""
    lines = re.findall(r"^\| (.+) \| (\d+) \| (.+) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert lines == [
        (title, str(len(rows)), ", ".join(f"`{name}`" for name in commands_of(rows)))
        for title, rows in documents().items()
    ]


def commands_of(rows: list[Row]) -> list[str]:
    words = re.compile(r"(?:^| )((?:uv-variants pip|pip|variants) (?=[a-z])\w+)")
    found = Counter(match[1] for row in rows if (match := words.search(row.command)))
    return [name for name, _ in found.most_common()]


@pytest.mark.nightly
@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64",
    reason="the builds are for Linux on x86-64",
)
def test_building(reader: Reader) -> None:
    """With checkouts that have a backend of their own, as a compiler would take hours."""
    torch = write_project(reader.work / "torch", "", "2.9.1").parent
    torch.rename(reader.work / "pytorch")
    vision = write_project(reader.work / "torchvision", "", "0.24.0", ["torch"]).parent
    vision.rename(reader.work / "vision")
    reader.use_uv()
    reader.use_variants()
    reader.follow(Page(ROOT / "docs/reference/build-documents.md"))
