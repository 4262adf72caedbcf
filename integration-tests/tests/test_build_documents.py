"""The documents that this project comes from: each row's command is typed, and the page is true."""

from __future__ import annotations

import platform
import sys
from pathlib import Path

import pytest

from support import build_documents
from support.build_documents import ROOT, Row, documents, printed
from support.build_projects import write_project
from support.documents import Page, Reader

ROWS = [row for rows in documents().values() for row in rows]
PAGE = build_documents.PAGE.read_text("utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the page has typed first."""
    made = tmp_path_factory.mktemp("typed")
    build_documents.prepare(made)
    return made


def check(row: Row, folder: Path) -> None:
    """Check that the page has what the command of *row* prints."""
    assert f"| {row.words} | `{row.command}` | {printed(row, folder)} |\n" in PAGE


@pytest.mark.parametrize("number", range(25))
def test_rows(number: int, folder: Path) -> None:
    """One in many: most rows are one command with each label."""
    for row in ROWS[number::250]:
        check(row, folder)


@pytest.mark.nightly
def test_page() -> None:
    assert build_documents.page() == PAGE


@pytest.mark.parametrize("row", [row for row in ROWS if row.page], ids=str)
def test_rows_of_other_pages(row: Row) -> None:
    assert row.command in [command.text for command in Page(ROOT / row.page).commands]


def test_the_page_has_each_row() -> None:
    assert [
        line.split(" | ")[0].removeprefix("| ") for line in PAGE.splitlines() if "| `" in line
    ] == [row.words for row in ROWS]


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
