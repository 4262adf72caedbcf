"""The page about machines: its commands, and its table of facts, which are those of the engine."""

from __future__ import annotations

import re

import pytest

from pep_variants.detect.machines import CPU, WORDS, load_machine, parse_facts
from support.documents import Page, Reader
from support.environments import ROOT

PAGE = Page(ROOT / "docs/reference/platforms.md")


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the tables below a heading, without those of the headings below it."""
    text = PAGE.path.read_text("utf-8").split(f"\n{heading}\n")[1]
    section = re.split(rf"(?m)^#{{1,{heading.count('#')}}} ", text)[0]
    found = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in section.splitlines()
        if line.startswith("| ") and not line.startswith("| fact |")
    ]
    assert found
    return found


@pytest.mark.nightly
def test_the_commands(reader: Reader) -> None:
    reader.use_variants()
    failing = ["variants platforms h200", "variants platforms cuda=9.0,sm=6.1"]
    reader.follow(PAGE, failing=failing)


def test_facts() -> None:
    told = {name.strip("`"): rest[-1] for name, *rest in rows("## Facts") if name[0] == "`"}
    assert told.keys() == {*WORDS, CPU}
    for name, examples in told.items():
        for example in re.findall(r"`([^`]+)`", examples):
            assert list(parse_facts(example)) == [name]
            machine = f"cuda=12.8,{example}" if name == "sm" else example
            supported = load_machine(machine).namespaces.values()
            assert any(support.features for support in supported), example
