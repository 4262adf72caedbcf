"""Every promise of SECURITY.md names tests and attacks that exist."""

from __future__ import annotations

import ast
import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

from hostile.cases import read_cases

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "SECURITY.md").read_text("utf-8")
PROMISES = dict(re.findall(r"^### (P-\d+)\. .*?\n(.*?)(?=^##)", TEXT, re.M | re.S))
TEST = re.compile(r"`([\w/-]+\.py)::([\w:]+)`")
CASES = re.compile(r"cases((?:,?\s+`[\w*-]+`)+)")


def named_tests() -> set[tuple[str, str]]:
    return {found for text in PROMISES.values() for found in TEST.findall(text)}


def named_cases(text: str) -> list[str]:
    return [name for names in CASES.findall(text) for name in re.findall(r"`([\w*-]+)`", names)]


def test_promises_are_numbered() -> None:
    assert list(PROMISES) == [f"P-{number + 1}" for number in range(len(PROMISES))]
    assert len(PROMISES) >= 10
    assert TEXT.count("\n### ") == len(PROMISES)


@pytest.mark.parametrize("promise", PROMISES)
def test_a_promise_names_tests_and_cases_that_exist(promise: str) -> None:
    text = PROMISES[promise]
    assert TEST.findall(text), "it names no test"
    for name in named_cases(text):
        assert any(fnmatch(case, name) for case in read_cases()), name


def defined(path: str) -> set[str]:
    """Return the tests that a module defines, those of classes as ``CLASS::NAME``."""
    found = set()
    for node in ast.parse((ROOT / path).read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            names = [each.name for each in node.body if isinstance(each, ast.FunctionDef)]
            found |= {node.name, *(f"{node.name}::{name}" for name in names)}
    return found


def test_the_tests_exist() -> None:
    assert named_tests()
    assert {(path, name) for path, name in named_tests() if name not in defined(path)} == set()


def test_every_attack_is_about_a_promise() -> None:
    names = [name for text in PROMISES.values() for name in named_cases(text)]
    cases = [case for case in read_cases() if case != "honest"]
    assert [case for case in cases if not any(fnmatch(case, name) for name in names)] == []
