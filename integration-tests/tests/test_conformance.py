"""The conformance corpus: its files, every case in the engine, a sample of it in every
client.

``make conformance`` has every client play every case.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import jsonschema
import pytest

from conformance.case import SCHEMA, Case, case_files, matches, read_cases, read_file
from conformance.runners import RUNNERS, Runner, make
from conformance.table import page
from conformance.verdict import Verdict, play, read_differences
from support.environments import Environments

FILES = case_files()
CASES = read_cases()
SAMPLE = {
    *(next(iter(read_file(path))).id for path in FILES if path.parent.name != "field"),
    "field/cupy/apple-m1",
    "field/numpy/2.3.4-apple-m1",
    "field/nvidia-cublas/v100-cuda12.2",
    "field/torch/2.8.0-mi300x-rocm6.4",
    "field/torch/h100-cuda12.8",
    "field/torchvision/arc-b580",
}
"""The first case of every topic, and a few of the field's index, which has a topic per project."""


IN_FULL = ("engine",)
"""Clients that play every case: it takes milliseconds."""

MAIN = ("resolve", "pip-newest", "uv-variants-newest")
"""Clients of which one plays each case of the sample, by turns; one of the others does, too."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Pair cases and clients: all with ``--full-matrix``."""
    if metafunc.function is not test_client:
        return
    others = [name for name in RUNNERS if name not in (*MAIN, *IN_FULL)]
    full = metafunc.config.getoption("full_matrix")
    pairs = [
        (case, name)
        for number, case in enumerate(sorted(SAMPLE))
        for name in (
            (*MAIN, *others) if full else (MAIN[number % len(MAIN)], others[number % len(others)])
        )
    ]
    metafunc.parametrize(("case", "name"), pairs)


@pytest.fixture(scope="session")
def runner(environments: Environments) -> Iterator[Callable[[str], Runner]]:
    """Runners by name, each made once."""
    made: dict[str, Runner] = {}

    def get(name: str) -> Runner:
        if name not in made:
            made[name] = make(name, environments)
        return made[name]

    yield get
    for item in made.values():
        item.close()


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_files_follow_the_schema(path):
    schema = json.loads(SCHEMA.read_text("utf-8"))
    jsonschema.Draft202012Validator(schema).validate(json.loads(path.read_text("utf-8")))
    for case in read_file(path):
        if case.is_installable:
            assert case.form != "document" or case.chosen is None or case.installed
            assert case.installed is not None or "error" in case.expect or case.chosen is None


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(json.loads(SCHEMA.read_text("utf-8")))


def test_differences_are_of_runners_and_cases():
    for item in read_differences():
        assert any(name.startswith(item.client) for name in RUNNERS), item
        assert any(matches(name, item.cases) for name in CASES), item


@pytest.mark.parametrize("name", IN_FULL)
@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_in_full(path, name, runner):
    wrong = [verdict for case in read_file(path) if (verdict := play(runner(name), case)).lines]
    assert not [item for item in wrong if item.state == "differs"]


def test_client(case, name, runner):
    verdict = play(runner(name), CASES[case], read_differences())
    if verdict.state == "refused":
        pytest.skip(verdict.lines[0])
    assert verdict.state != "differs", f"{verdict.lines}\n{verdict.output}"


def test_page_shows_counts_and_differences():
    case = Case("area/topic/name", {"title": "x", "source": [], "expect": {}})
    left_out = Case("field/topic/name", {"title": "x", "source": [], "expect": {}})
    verdicts = [
        Verdict("engine", case.id, "agrees"),
        Verdict("other", case.id, "differs", ("order: expected a | b",)),
        Verdict("third", case.id, "refused", ("needs a lock file",)),
    ]
    titles = {"engine": "Engine", "other": "Other", "third": "Third"}
    text = page({case.id: case, left_out.id: left_out}, titles, verdicts)
    assert "all 1 that were\nwritten by hand, and 0 of the 1 that were generated" in text
    assert "| area | 1 | 1/1 | 0/1 |  |" in text
    assert "| other | 1 | order: expected a \\| b | not explained yet | `area/topic/name` |" in text
