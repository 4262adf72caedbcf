"""The conformance corpus: its files, every case in the engine, a sample of it in every
client.

``make conformance`` has every client play every case.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import jsonschema
import pytest

from conformance.case import SCHEMA, case_files, matches, read_cases, read_file
from conformance.runners import RUNNERS, Runner, make
from conformance.verdict import play, read_differences
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


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Pair cases and clients: all with ``--full-matrix``, else one client with each case."""
    if metafunc.function is not test_client:
        return
    clients = [name for name in RUNNERS if name not in IN_FULL]
    full = metafunc.config.getoption("full_matrix")
    pairs = [
        (case, name)
        for number, case in enumerate(sorted(SAMPLE))
        for name in (clients if full else clients[number % len(clients) :][:1])
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
