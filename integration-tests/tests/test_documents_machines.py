"""The how-to pages about machines: their console blocks are run, in order, and compared.

What stands for hardware is a driver library compiled here, which the programs load as the real one.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from pep_variants._providers.nvidia import DRIVER_OVERRIDE
from support.cuda_torch import FILES
from support.documents import Page, Reader
from support.environments import ROOT
from support.index import Index, served
from support.nvidia_drivers import (
    CUDA,
    NVML,
    build_library,
    cuda_library,
    driver_library,
    driver_variables,
    nvml,
    redirection,
)
from support.published_builds import LINUX, TORCH, Field, published, standing_in
from support.wheels import Wheel

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(sys.platform != "linux", reason="these machines have Linux"),
]


@pytest.fixture
def there(reader: Reader) -> Reader:
    """The reader, with our programs and an environment whose pip has the shim."""
    reader.use_python()
    reader.use_variants()
    reader.with_pip(shim=True)
    reader.environ["PIP_REQUIRE_VIRTUALENV"] = "1"
    return reader


@pytest.fixture
def field(there: Reader, request: pytest.FixtureRequest) -> Iterator[Field]:
    """PyPI and PyTorch's indexes, with torch alone."""
    with standing_in(published(torch=getattr(request, "param", TORCH))) as field:
        there.environ |= {
            "PIP_INDEX_URL": field.index.url,
            "UV_DEFAULT_INDEX": field.index.url,
            "VARIANTS_CATALOG_MIRROR": " ".join(field.mirrors),
        }
        yield field


def with_drivers(reader: Reader, drivers: Mapping[str, str]) -> None:
    """Have a machine with the first of NVIDIA's drivers, and ``sudo apt-get install`` for others.

    Args:
        drivers: CUDA version by name of the package.
    """
    for name, cuda in drivers.items():
        build_library(reader.home / "drivers" / name, NVML, nvml(cuda, "9.0"))
    library = reader.home / "lib" / NVML[1]
    library.parent.mkdir()
    library.symlink_to(reader.home / "drivers" / next(iter(drivers)) / NVML[1])
    reader.environ["LD_LIBRARY_PATH"] = str(library.parent)
    install = f'ln -sf "{reader.home}/drivers/$3/{NVML[1]}" {library}'
    reader.tool("sudo", f'case "$1" in apt-get) {install};; esac')
    reader.use_uv()


@pytest.mark.usefixtures("field")
def test_driver_upgrade(there: Reader) -> None:
    with_drivers(there, {"nvidia-driver-550": "12.4", "nvidia-driver-580": "13.0"})
    there.environ["VARIANTS_CATALOG"] = "default"
    (there.work / "project").mkdir()
    (there.work / "project/pyproject.toml").write_text(
        '[project]\nname = "project"\nversion = "1.0"\nrequires-python = ">=3.10"\n'
        'dependencies = ["torch"]\n'
    )
    there.type_in("pip install --quiet torch; (cd project; unset VIRTUAL_ENV; uv-variants sync)")
    page = Page(ROOT / "docs/how-to/driver-upgrade.md")
    there.follow(page, failing=["variants check", "variants doctor torch"])


@pytest.mark.parametrize("field", [("2.13.0", "2.14.0", "2.15.0")], indirect=True)
def test_driver_too_old(there: Reader, field: Field) -> None:
    with_drivers(there, {"nvidia-driver-550": "12.4"})
    field.index.add_wheel(Wheel("torch", "2.15.0", tag=LINUX, files=FILES), metadata_file=True)
    page = "https://download.pytorch.org/whl/cu126/torch/"
    field.builds.put(page, Wheel("torch", "2.14.0+cu126", tag=LINUX, files=FILES))
    there.type_in("pip install --quiet torch")
    there.environ["VARIANTS_CATALOG"] = "default"
    there.follow(Page(ROOT / "docs/how-to/driver-too-old.md"))


def test_from_index_url(there: Reader, field: Field) -> None:
    with_drivers(there, {"nvidia-driver-580": "13.0"})
    there.follow(Page(ROOT / "docs/how-to/from-index-url.md"), replaced=field.builds.mirrors)


@pytest.mark.usefixtures("field")
def test_wrong_choice(there: Reader) -> None:
    """An override that was forgotten, on a machine with a driver for CUDA 12.4."""
    there.environ |= driver_variables(driver_library(there.environments), "12.4", "9.0")
    there.environ |= {"VARIANTS_CATALOG": "default", DRIVER_OVERRIDE: "11.8"}
    there.type_in("pip install --quiet torch==2.14.0")
    page = Page(ROOT / "docs/how-to/wrong-choice.md")
    there.follow(page, failing=["variants doctor torch", "variants doctor torch"])


def on_machine(
    reader: Reader, files: Mapping[str, str], libraries: Mapping[str, Path], machine: str = ""
) -> None:
    """Have a machine with these *files* and *libraries*, by path, in place of this one's.

    Args:
        machine: its kind of CPU, as ``uname -m`` prints it.
    """
    root = reader.home / "root"
    for place, text in files.items():
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        (root / place).write_text(text)
    for place, library in libraries.items():
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        (root / place).symlink_to(library)
    reader.environ |= {
        "LD_PRELOAD": str(redirection(reader.home / "redirection")),
        "REDIRECTED_ROOT": str(root),
        "REDIRECTED_MACHINE": machine or platform.machine(),
    }


@pytest.mark.usefixtures("field")
def test_wsl(there: Reader) -> None:
    library = build_library(there.home / "driver", NVML, nvml("12.8", "8.9"))
    files = {"proc/sys/kernel/osrelease": "5.15.167.4-microsoft-standard-WSL2\n", "dev/dxg": ""}
    on_machine(there, files, {"usr/lib/wsl/lib/libnvidia-ml.so.1": library})
    there.follow(Page(ROOT / "docs/how-to/wsl.md"))


ORIN = """\
processor       : 0
Features        : fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm \
lrcpc dcpop asimddp uscat ilrcpc flagm paca pacg
CPU implementer : 0x41
CPU architecture: 8
CPU variant     : 0x0
CPU part        : 0xd42
CPU revision    : 1
"""


@pytest.mark.usefixtures("field")
def test_jetson(there: Reader) -> None:
    """An NVML that tells the version alone, and CUDA's library where the loader does not look."""
    management = build_library(there.home / "driver", NVML, nvml("12.6", "!3"))
    library = build_library(there.home / "cuda", CUDA, cuda_library("12.6", "8.7"))
    libraries = {"usr/lib/aarch64-linux-gnu/nvidia/libcuda.so.1": library}
    on_machine(there, {"proc/cpuinfo": ORIN}, libraries, "aarch64")
    there.environ["LD_LIBRARY_PATH"] = str(management.parent)
    with served(Index()) as jetson:
        jetson.add_wheel(Wheel("torch", "2.9.1", tag="py3-none-linux_aarch64"))
        replaced = {"https://pypi.jetson-ai-lab.io/jp6/cu126": jetson.url.rstrip("/")}
        there.follow(Page(ROOT / "docs/how-to/jetson.md"), replaced=replaced)


@pytest.mark.usefixtures("field")
def test_mig(there: Reader) -> None:
    """A container with a slice is this machine with an NVML that does not show the GPU."""
    library = build_library(there.home / "driver", NVML, nvml("13.0", "9.0"))
    inside = there.home / "container"
    build_library(inside, NVML, nvml("13.0", "^4"))
    build_library(inside, CUDA, cuda_library("13.0", "9.0"))
    there.tool("docker", f'shift 5; LD_LIBRARY_PATH={inside} exec "$@"')
    on_machine(there, {"proc/driver/nvidia/capabilities/gpu0/mig/gi1/access": ""}, {})
    there.environ["LD_LIBRARY_PATH"] = str(library.parent)
    there.follow(Page(ROOT / "docs/how-to/mig.md"))


@pytest.mark.usefixtures("field")
def test_several_gpus(there: Reader) -> None:
    library = build_library(there.home / "driver", NVML, nvml("13.0", "6.1,8.9"))
    nodes = "sys/class/kfd/kfd/topology/nodes"
    files = {
        f"{nodes}/0/properties": "simd_count 0\ngfx_target_version 0\n",
        f"{nodes}/1/properties": "simd_count 96\ngfx_target_version 110000\n",
        f"{nodes}/2/properties": "simd_count 2\ngfx_target_version 100306\n",
    }
    on_machine(there, files, {})
    there.environ["LD_LIBRARY_PATH"] = str(library.parent)
    there.follow(Page(ROOT / "docs/how-to/several-gpus.md"))


@pytest.mark.usefixtures("field")
def test_amd(there: Reader) -> None:
    """A laptop whose kernel lists a CPU, and the GPU in it."""
    nodes = "sys/class/kfd/kfd/topology/nodes"
    files = {
        f"{nodes}/0/properties": "simd_count 0\ngfx_target_version 0\n",
        f"{nodes}/1/properties": "simd_count 24\ngfx_target_version 110003\n",
    }
    on_machine(there, files, {})
    there.follow(Page(ROOT / "docs/how-to/amd.md"))


OTHERS = [
    ("amd", "gfx=gfx942", "linux", "2.13.0, ROCm 7.2"),
    ("amd", "gfx=gfx1101", "linux", "2.13.0, ROCm 7.2"),
    ("amd", "gfx=gfx1103", "linux", "2.13.0, ROCm 10.0"),
    ("amd", "gfx=gfx1101", "windows", "2.13.0, ROCm 10.0"),
    ("amd", "gfx=gfx906", "linux", "2.9.1, ROCm 6.3"),
    ("windows", "gfx=gfx1103", "windows", "2.13.0, ROCm 10.0"),
    ("windows", "cuda=12.0,sm=8.9", "windows", "2.14.0, CUDA 12.6"),
    ("windows", "cuda=13.0,sm=6.1", "windows", "2.14.0, CUDA 12.6"),
    ("windows", "cuda=12.9,sm=12.0", "windows", "2.11.0, CUDA 12.8"),
]
"""Pages, machines, and what the table of the page has for these."""


@pytest.mark.parametrize(
    "field", [("2.9.1", "2.11.0", "2.13.0", "2.14.0", "2.15.0")], indirect=True
)
@pytest.mark.usefixtures("field")
def test_what_there_is(there: Reader) -> None:
    """The tables of pages about machines that cannot be had."""
    there.environ["VARIANTS_CATALOG"] = "default"
    for page, facts, system, said in OTHERS:
        release, name = said.lower().replace(" ", "").split(",")
        options = f"--platform {facts},cpu=zen4 --python-platform {system}"
        there.type_in(f"variants explain torch {options} > explained")
        explained = (there.work / "explained").read_text("utf-8").split(None, 3)
        assert explained[:2] == ["torch", release], (facts, system)
        assert explained[2].startswith(name), (facts, system)
        assert f" {said}" in (ROOT / f"docs/how-to/{page}.md").read_text("utf-8")
