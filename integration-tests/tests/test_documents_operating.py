"""The how-to pages for people who run other people's machines: containers, CI, clusters."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator

import pytest

from support.documents import Page, Reader
from support.environments import PIPS, ROOT
from support.gpu_nodes import driver_library, driver_variables
from support.published_builds import TORCH, Field, published, standing_in

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the pages are about Linux")


@pytest.fixture
def field() -> Iterator[Field]:
    """PyPI and PyTorch's indexes, with torch alone."""
    with standing_in(published(torch=TORCH)) as field:
        yield field


def goes_to(reader: Reader, field: Field) -> None:
    """Let everything that *reader* types find *field* in place of the network."""
    reader.environ |= {
        "PIP_INDEX_URL": field.index.url,
        "UV_DEFAULT_INDEX": field.index.url,
        "VARIANTS_CATALOG_MIRROR": " ".join(field.mirrors),
    }


def test_login_node(reader: Reader, field: Field) -> None:
    reader.use_python()
    reader.use_pip(PIPS[-1])
    reader.use_variants()
    goes_to(reader, field)
    (reader.home / "dist").symlink_to(reader.environments.shim_wheel.parent)
    library = driver_library(reader.environments)
    nodes = {
        "h100": driver_variables(library, "12.8", "9.0"),
        "a100": driver_variables(library, "12.4", "8.0"),
    }
    cases = "\n".join(
        f"--partition={name}) export {' '.join(map(shlex.quote, map('='.join, found.items())))};;"
        for name, found in nodes.items()
    )
    # Without --gpus a job has no devices, and the driver finds none.
    reader.tool(
        "srun",
        f'export SLURM_JOB_ID=4711\ncase "$1" in\n{cases}\nesac\nshift\n'
        'case "$1" in --gpus=*) shift;; *) export FAKE_NVML_DEVICES=;; esac\nexec "$@"',
    )
    reader.tool("sbatch", "exit 1")
    reader.follow(Page(ROOT / "docs/how-to/login-node.md"))
