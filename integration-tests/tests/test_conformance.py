"""The conformance corpus: its files, every case in the engine, a sample of it in every client.

``make conformance`` has every client play every case.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from functools import cache

import jsonschema
import pytest
from variantlib.variants_json import VariantsJson

from conformance import FOLDER, reference
from conformance.case import SCHEMA, Case, case_files, matches, read_cases, read_file
from conformance.families import FAMILIES, SCHEMAS, mixed_markers
from conformance.generate import outdated
from conformance.random_states import random_state
from conformance.runners import RUNNERS
from conformance.runners.base import Runner
from conformance.states import steps, wants
from conformance.table import WHO
from conformance.verdict import play, read_differences
from pep_variants._formats.reader import metadata_from_tree
from pep_variants._formats.writer import metadata_to_tree
from pep_variants._model.generation import V0_2_0
from support.environments import Environments

FILES = case_files()
CASES = read_cases()
SAMPLE = {
    *(
        next(iter(read_file(path))).id
        for path in FILES
        if path.parent.name not in ("field", "states")
    ),
    "field/cupy/apple-m1",
    "field/numpy/2.3.4-apple-m1",
    "field/nvidia-cublas/v100-cuda12.2",
    "field/torch/2.8.0-mi300x-rocm6.4",
    "field/torch/h100-cuda12.8",
    "field/torchvision/arc-b580",
}
"""The first case of every topic, and a few of the field's index, which has a topic per project."""
STATES = [
    ("states/abi-of-what-is-installed/chain", "pip-newest"),
    ("states/abi-of-what-is-installed/no-build", "pip-newest"),
    ("states/abi-of-what-is-installed/upgrade", "pip-newest"),
    ("states/abi-of-what-is-installed/uv-does-not-compare", "uv-variants-newest"),
    ("states/another-machine/an-upgrade-elsewhere", "pip-newest"),
    ("states/another-machine/check-elsewhere", "uv-variants-newest"),
    ("states/locked-again/another-driver", "pip-lock"),
    ("states/switching/a-newer-release-that-does-not-run", "uv-variants-newest"),
    ("states/switching/there-and-back", "pip-newest"),
]
"""Cases with steps, each with a client that plays it: the few that are played every time."""

# The example of PEP 825, "Index-level metadata".
BLAS = {
    "default-priorities": {"namespace": ["x86_64", "aarch64", "blas_lapack"]},
    "variants": {
        "null": {},
        "x86_64_v3_openblas": {
            "blas_lapack": {"library": ["openblas"]},
            "x86_64": {"level": ["v3"]},
        },
        "x86_64_v4_mkl": {"blas_lapack": {"library": ["mkl"]}, "x86_64": {"level": ["v4"]}},
    },
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Pair cases and clients: all with ``--full-matrix``, else one client with each case."""
    if metafunc.function is test_random_states:
        metafunc.parametrize(("seed", "name"), random_states(metafunc))
    if metafunc.function is not test_client:
        return
    clients = [name for name in RUNNERS if name != "engine"]
    full = metafunc.config.getoption("full_matrix")
    pairs = [
        (case, name)
        for number, case in enumerate(sorted(SAMPLE))
        for name in (clients if full else clients[number % len(clients) :][:1])
    ]
    states = [case for case in CASES if case.startswith("states/")]
    pairs += [(case, name) for case in states for name in clients] if full else STATES
    metafunc.parametrize(("case", "name"), pairs)


@pytest.fixture(scope="session")
def runner(environments: Environments) -> Iterator[Callable[[str], Runner]]:
    """Runners by name, each made once."""
    with ExitStack() as stack:
        yield cache(lambda name: stack.enter_context(closing(RUNNERS[name](environments))))


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_files_follow_the_schema(path):
    schema = json.loads(SCHEMA.read_text("utf-8"))
    jsonschema.Draft202012Validator(schema).validate(json.loads(path.read_text("utf-8")))
    for case in read_file(path):
        if case.form == "steps":
            assert wants(case), case.id
            assert all(step.expect["installed"] is not None for step in steps(case))
        elif case.is_installable:
            assert case.form != "document" or case.chosen is None or case.installed
            assert case.installed is not None or "error" in case.expect or case.chosen is None


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_case_in_the_engine(path, runner):
    wrong = [verdict for case in read_file(path) if (verdict := play(runner("engine"), case)).lines]
    assert not [item for item in wrong if item.state == "differs"]


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(json.loads(SCHEMA.read_text("utf-8")))


def test_differences_are_of_runners_and_cases():
    for item in read_differences():
        assert any(name.startswith(item.client) for name in RUNNERS), item
        assert any(matches(name, item.cases) for name in CASES), item
        assert item.right in WHO, item


def test_client(case, name, runner):
    verdict = play(runner(name), CASES[case], read_differences())
    if verdict.state == "refused":
        pytest.skip(verdict.lines[0])
    assert verdict.state != "differs", f"{verdict.lines}\n{verdict.output}"


def random_states(metafunc: pytest.Metafunc) -> list[tuple[int, str]]:
    clients = ("pip-newest", "uv-variants-newest")
    seeds = range(100 if metafunc.config.getoption("full_matrix") else 3)
    return [(seed, name) for seed in seeds for name in clients]


def test_random_states(seed, name, runner):
    """The end is that of an empty environment, or that of no command, see `random_states`."""
    is_uv = name.startswith("uv")
    state = random_state(seed, abi=not is_uv)
    failed, wanted, _ = state.end(runner(name), "install", installed=[])
    if not failed:  # what is installed may go on where nothing else fits
        failed, there, output = state.end(runner(name), "upgrade")
        assert not failed, (state, output)
        assert {project: there.get(project) for project in wanted} == wanted, (state, output)
    was_met = state.is_met(state.installed)
    if was_met or not failed:
        failed, there, output = state.end(runner(name), "install")
        assert not failed, (state, output)
        assert state.is_met(there), (state, output)
    if was_met:
        assert _kept(there, is_uv) == _kept(state.installed, is_uv), (state, output)


def _kept(installed: Mapping[str, str], is_uv: bool) -> dict[str, str]:
    """Return what an installation keeps: with uv versions, see `differences.json`."""
    return {name: text.partition("-")[0] if is_uv else text for name, text in installed.items()}


def test_generated_families():
    """They are what the generator writes, and as many as the readme says."""
    assert outdated() == []
    readme = (FOLDER / "README.md").read_text("utf-8")
    assert f" {sum(item.size for item in FAMILIES)} random cases" in readme


@pytest.mark.parametrize(("name", "size"), [("engine", 100), ("variantlib", 20)])
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.path)
def test_more_cases_of_each_family(family, name, size, runner):
    if family.make is mixed_markers:
        pytest.skip("what is left of a marker has more than one spelling")
    known = read_differences()
    for tree in family.cases(seed=1, size=size):
        verdict = play(runner(name), Case(f"{family.path}/{tree['name']}", tree), known)
        assert verdict.state != "differs", (tree, verdict.lines)


def test_what_we_write_is_read_alike_by_variantlib():
    for family in FAMILIES:
        for tree in family.cases(seed=2, size=100):
            if tree.get("document", {}).get("$schema") != SCHEMAS["0.2.0"]:
                continue
            metadata = metadata_from_tree(tree["document"], "x")
            for written in (tree["document"], metadata_to_tree(metadata, V0_2_0)):
                read = VariantsJson(json.loads(json.dumps(written)))
                assert metadata_from_tree(json.loads(read.to_str()), "x") == metadata


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        (["v4", "v3"], ["x86_64_v4_mkl", "x86_64_v3_openblas", "null"]),
        (["v3", "v2"], ["x86_64_v3_openblas", "null"]),
        (["v2"], ["null"]),
    ],
)
def test_reference_orders_the_example_of_the_pep(levels, expected):
    libraries = {"library": ["openblas", "mkl"]}
    machine = {"blas_lapack": libraries, "x86_64": {"level": levels}}
    assert reference.order(BLAS, machine) == expected


def test_reference_filters_properties_before_markers_see_them():
    # The example of PEP 825, "Environment markers".
    properties = {"nvidia": {"sm_arch": ["110_real", "120_real"]}}
    marker = ("in", "nvidia :: sm_arch :: 110_real", "variant_properties")
    both = {"nvidia": {"sm_arch": ["120_real", "110_real"]}}
    one = {"nvidia": {"sm_arch": ["120_real"]}}
    assert reference.holds(marker, "cuda", properties, both)
    assert not reference.holds(marker, "cuda", properties, one)
