"""The pages about pip and uv: their console blocks are run, in order, and compared."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable

import pytest

from support.documents import Page, Reader
from support.environments import PIPS, ROOT
from support.index import Index
from support.nvidia_drivers import NVML, build_library, nvml
from support.patched_pip import patched_pip
from support.projects import cuda
from support.tools import tool
from support.wheels import Release, Wheel

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(sys.platform != "linux", reason="the machine of the pages has Linux"),
]


def torch_index() -> Index:
    """Return an index with two versions of torch, and a library that one variant needs."""
    index = Index()
    requires = (
        "filelock",
        "nvidia-cublas-cu12==12.8.4.1; variant_label == 'cu128'",
        "nvidia-cublas-cu12==12.6.4.1; variant_label == 'cu126'",
    )
    for version in ("2.8.0", "2.9.0"):
        index.add_release(Release("torch", version, cuda("12.6", "12.8", "13.0"), requires))
    for version in ("12.6.4.1", "12.8.4.1"):
        index.add_wheel(Wheel("nvidia-cublas-cu12", version))
    index.add_wheel(Wheel("filelock", "3.20.0"))
    return index


def with_h100(reader: Reader, cuda_version: str = "12.8") -> None:
    """Have a machine with this GPU, and a driver for that version of CUDA."""
    library = build_library(reader.home / "driver", NVML, nvml(cuda_version, "9.0"))
    reader.environ["LD_LIBRARY_PATH"] = str(library.parent)


def with_pip(reader: Reader, *, shim: bool = True) -> None:
    """Activate an environment with a pip."""
    made = reader.environments.patched if shim else reader.environments.plain
    environment = made("3.12", PIPS[-1]).copied(reader.home / "env")
    reader.environ["VIRTUAL_ENV"] = str(environment.path)
    reader.tool("python", f'exec {environment.python} "$@"')
    reader.tool("pip", f'exec {environment.python} -m pip "$@"')


@pytest.fixture
def index(serve: Callable[[Index], Index]) -> Index:
    """The index of `torch_index`."""
    return serve(torch_index())


def test_pip(reader: Reader, index: Index) -> None:
    with_h100(reader)
    with_pip(reader)
    reader.environ["PIP_INDEX_URL"] = index.url
    page = Page(ROOT / "docs/how-to/pip.md")
    reader.follow(page, failing=["pip install --variant torch=cu126 torch"])


def test_first_page_of_pip(reader: Reader, index: Index) -> None:
    """With an index that has the shim, as PyPI will."""
    with_h100(reader)
    with_pip(reader, shim=False)
    wheel = reader.environments.shim_wheel
    index.add("pep-variants-shim", wheel.name, wheel.read_bytes())
    reader.environ["PIP_INDEX_URL"] = index.url
    reader.follow(Page(ROOT / "pip-patch/README.md"))


def test_patched_pip(reader: Reader, index: Index) -> None:
    """What ``make patched-pip`` builds, installed, run, and given to virtualenv."""
    with_h100(reader)
    with_pip(reader, shim=False)
    (reader.work / "dist").mkdir()
    shutil.copy(patched_pip(reader.environments, PIPS[-1]), reader.work / "dist")
    reader.tool(
        "virtualenv", f'exec {tool(reader.environments, "virtualenv").python} -m virtualenv "$@"'
    )
    reader.environ["PIP_INDEX_URL"] = index.url
    reader.follow(Page(ROOT / "docs/explanation/pip-shim.md"))


def test_uv(reader: Reader, index: Index) -> None:
    with_h100(reader)
    with_uv(reader, index)
    fails = ["uv-variants --variant torch=cu130 pip install torch", "uv sync --frozen --reinstall"]
    reader.follow(Page(ROOT / "docs/how-to/uv.md"), failing=fails)


def test_first_page_of_uv(reader: Reader, index: Index) -> None:
    with_h100(reader)
    with_uv(reader, index)
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", reader.work / ".venv"], check=True
    )
    reader.follow(Page(ROOT / "packages/uv-variants/README.md"))


def with_uv(reader: Reader, index: Index) -> None:
    """Have uv and uv-variants, with *index* as the only one."""
    reader.use_python()
    reader.use_uv()
    reader.use_variants()
    reader.environ["UV_DEFAULT_INDEX"] = index.url
