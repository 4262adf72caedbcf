"""Every promise of SECURITY.md names tests and attacks that exist."""

from __future__ import annotations

import os
import re
import subprocess
import sys
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


def test_the_tests_are_collected() -> None:
    tests = named_tests()
    assert tests
    files = sorted({path for path, _ in tests})
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *files],
        cwd=ROOT,
        env={**os.environ, "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    collected = printed_tests(done.stdout)
    assert tests <= collected, tests - collected


def printed_tests(output: str) -> set[tuple[str, str]]:
    """Return path and name of every test that pytest printed, without parameters."""
    found = set()
    for line in output.splitlines():
        path, separator, name = line.partition("::")
        if separator:
            found.add((path, name.partition("[")[0]))
    return found


@pytest.mark.parametrize("case", [case for case in read_cases() if case != "honest"])
def test_every_attack_is_about_a_promise(case: str) -> None:
    names = [name for text in PROMISES.values() for name in named_cases(text)]
    assert any(fnmatch(case, name) for name in names)
