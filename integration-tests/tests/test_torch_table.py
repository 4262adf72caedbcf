"""The newest torch that uses the GPU of each machine, in every client; and what uv and pip take.

What is expected of our clients follows from the facts of `support.torch_field`; what the others
take is in the table of the page, which ``python -m support.torch_table`` prints.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

import pytest

from support.environments import ROOT, Environments
from support.torch_field import BOXES, Box
from support.torch_table import (
    OURS,
    PROJECTS,
    THEIRS,
    World,
    cell,
    resolved,
    running,
    table,
    verdict,
)

PAGE = (ROOT / "docs/explanation/compared.md").read_text("utf-8")
ROW = re.compile(r"(?m)^\| (.+?)(?:, driver (\d+)(?: to (\d+))?)?(, Windows)? \| (.+) \|$")
SAMPLE = ("P100, driver 580", "B200, driver 570", "MI300X", "T4, driver 550, Windows")
linux = pytest.mark.skipif(sys.platform != "linux", reason="uv is shown other machines")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests with a machine on all of them in ``make test-matrix``, else on a few."""
    if "box" in metafunc.fixturenames:
        full = metafunc.config.getoption("full_matrix")
        boxes = [box for box in BOXES if full or box.title in SAMPLE]
        metafunc.parametrize("box", boxes, ids=[box.title for box in boxes])


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, environments: Environments) -> Iterator[World]:
    with running(tmp_path_factory.mktemp("field"), environments) as found:
        yield found


@pytest.mark.parametrize("projects", PROJECTS[1:], ids=" ".join)
@pytest.mark.parametrize("system", ["linux", "windows", "macos"])
def test_every_machine(system: str, projects: tuple[str, ...], world: World) -> None:
    if "vllm" in projects and system != "linux":
        pytest.skip("vLLM is for Linux")
    boxes = [box for box in BOXES if box.system == system]
    for box, picks in zip(boxes, resolved(world, boxes, projects), strict=True):
        assert verdict(picks, box, projects) == "right", f"{box.title}: {picks}"


@pytest.mark.parametrize("client", [*OURS][1:])
def test_every_client(client: str, box: Box, world: World) -> None:
    picks = OURS[client](world, box, PROJECTS[1])
    assert verdict(picks, box, PROJECTS[1]) == "right", picks


def test_a_build_that_has_to_agree_with_torch(world: World) -> None:
    """Of the versions of torch, the newest has no build for this GPU, and others no such label."""
    (box,) = (box for box in BOXES if box.title == "H100, driver 570")
    picks = OURS["`uv-variants`"](world, box, ["vllm"])
    assert verdict(picks, box, ["vllm"]) == "right", picks


@linux
@pytest.mark.parametrize("client", THEIRS)
def test_other_tools(client: str, box: Box, world: World) -> None:
    number = [*THEIRS].index(client) + 1
    assert _in_page(box)[number] == cell(THEIRS[client](world, box, ["torch"]), box)


@linux
@pytest.mark.nightly
def test_the_page(world: World) -> None:
    assert table(world) in PAGE


def _in_page(box: Box) -> list[str]:
    """Return the cells of the machine's line in the table of the page."""
    for name, first, last, windows, cells in ROW.findall(PAGE):
        is_driver = int(first or 0) <= box.driver <= int(last or first or 0)
        if (name, bool(windows)) == (box.name, box.system == "windows") and is_driver:
            return str(cells).split(" | ")
    raise AssertionError(box.title)
