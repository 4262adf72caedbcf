"""The how-to pages about machines: their console blocks are run, in order, and compared.

What stands for hardware is a driver library compiled here, which the programs load as the real one.
"""

from __future__ import annotations

import platform
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

import variants_catalog
from support.documents import Page, Reader
from support.environments import PIPS, ROOT
from support.index import Index, served
from support.nvidia_drivers import CUDA, NVML, build_library, cuda_library, nvml, redirection
from support.published_builds import TORCH, Field, field_of, standing_in
from support.wheels import Wheel
from variants_catalog.catalogs import DirectoryCatalog

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(sys.platform != "linux", reason="these machines have Linux"),
]
PYTHON = "3.12"


@contextmanager
def with_catalog(
    reader: Reader, projects: Sequence[str], versions: Sequence[str] = TORCH
) -> Iterator[Field]:
    """Let the catalogue's places of *projects* be here, with all of these *versions*."""
    catalog = DirectoryCatalog(variants_catalog.projects())
    entries = [entry for name in projects if (entry := catalog.project(name)) is not None]
    with standing_in(field_of(entries, dict.fromkeys(projects, versions))) as field:
        reader.environ |= {
            "PIP_INDEX_URL": field.index.url,
            "UV_DEFAULT_INDEX": field.index.url,
            "VARIANTS_CATALOG_MIRROR": " ".join(field.mirrors),
        }
        yield field


def with_environment(reader: Reader) -> None:
    """Activate an environment whose pip has the shim."""
    environment = reader.environments.patched(PYTHON, PIPS[-1]).copied(reader.home / "env")
    reader.environ["VIRTUAL_ENV"] = str(environment.path)
    reader.environ["PIP_REQUIRE_VIRTUALENV"] = "1"
    for name in ("python", "pip"):
        reader.tool(name, f'exec {environment.python} {"-m pip" if name == "pip" else ""} "$@"')


def type_in(reader: Reader, command: str) -> None:
    """Do what was done before the reader came to the page."""
    subprocess.run(["bash", "-c", command], cwd=reader.work, env=reader.variables, check=True)


def with_drivers(reader: Reader, drivers: dict[str, dict[str, str]], first: str) -> None:
    """Have a machine with an NVIDIA driver, and others that ``sudo apt-get install`` has."""
    for name, says in drivers.items():
        build_library(reader.home / "drivers" / name, NVML, says)
    library = reader.home / "lib" / NVML[1]
    library.parent.mkdir()
    library.symlink_to(reader.home / "drivers" / first / NVML[1])
    reader.environ["LD_LIBRARY_PATH"] = str(library.parent)
    install = f'ln -sf "{reader.home}/drivers/$3/{NVML[1]}" {library}'
    reader.tool("sudo", f'case "$1" in apt-get) {install};; esac')


def test_driver_upgrade(reader: Reader) -> None:
    drivers = {"nvidia-driver-550": nvml("12.4", "9.0"), "nvidia-driver-580": nvml("13.0", "9.0")}
    reader.use_python()
    reader.use_variants()
    reader.use_uv()
    with_drivers(reader, drivers, "nvidia-driver-550")
    with_environment(reader)
    with with_catalog(reader, ["torch"]):
        reader.environ["VARIANTS_CATALOG"] = "default"
        (reader.work / "project").mkdir()
        (reader.work / "project/pyproject.toml").write_text(
            '[project]\nname = "project"\nversion = "1.0"\nrequires-python = ">=3.10"\n'
            'dependencies = ["torch"]\n'
        )
        type_in(
            reader, "pip install --quiet torch; cd project; unset VIRTUAL_ENV; uv-variants sync"
        )
        page = Page(ROOT / "docs/how-to/driver-upgrade.md")
        reader.follow(page, failing=["variants check", "variants doctor torch"])


def test_driver_too_old(reader: Reader) -> None:
    reader.use_python()
    reader.use_variants()
    reader.use_uv()
    with_drivers(reader, {"nvidia-driver-550": nvml("12.4", "9.0")}, "nvidia-driver-550")
    with_environment(reader)
    with with_catalog(reader, ["torch"], ("2.13.0", "2.14.0", "2.15.0")):
        reader.environ["VARIANTS_CATALOG"] = "default"
        reader.follow(Page(ROOT / "docs/how-to/driver-too-old.md"))


def test_from_index_url(reader: Reader) -> None:
    reader.use_python()
    reader.use_variants()
    reader.use_uv()
    with_drivers(reader, {"nvidia-driver-580": nvml("13.0", "9.0")}, "nvidia-driver-580")
    with_environment(reader)
    with with_catalog(reader, ["torch"]) as field:
        page = Page(ROOT / "docs/how-to/from-index-url.md")
        reader.follow(page, replaced=field.builds.mirrors)


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


def test_wsl(reader: Reader) -> None:
    reader.use_variants()
    with_environment(reader)
    library = build_library(reader.home / "driver", NVML, nvml("12.8", "8.9"))
    files = {"proc/sys/kernel/osrelease": "5.15.167.4-microsoft-standard-WSL2\n", "dev/dxg": ""}
    on_machine(reader, files, {"usr/lib/wsl/lib/libnvidia-ml.so.1": library})
    with with_catalog(reader, ["torch"]):
        reader.follow(Page(ROOT / "docs/how-to/wsl.md"))


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


def test_jetson(reader: Reader) -> None:
    """An NVML that tells the version alone, and CUDA's library where the loader does not look."""
    reader.use_variants()
    with_environment(reader)
    management = build_library(reader.home / "driver", NVML, nvml("12.6", "!3"))
    library = build_library(reader.home / "cuda", CUDA, cuda_library("12.6", "8.7"))
    libraries = {"usr/lib/aarch64-linux-gnu/nvidia/libcuda.so.1": library}
    on_machine(reader, {"proc/cpuinfo": ORIN}, libraries, "aarch64")
    reader.environ["LD_LIBRARY_PATH"] = str(management.parent)
    with with_catalog(reader, ["torch"]), served(Index()) as jetson:
        jetson.add_wheel(Wheel("torch", "2.9.1", tag="py3-none-linux_aarch64"))
        replaced = {"https://pypi.jetson-ai-lab.io/jp6/cu126": jetson.url.rstrip("/")}
        reader.follow(Page(ROOT / "docs/how-to/jetson.md"), replaced=replaced)


def test_mig(reader: Reader) -> None:
    """A container with a slice is this machine with an NVML that does not show the GPU."""
    reader.use_variants()
    with_environment(reader)
    library = build_library(reader.home / "driver", NVML, nvml("13.0", "9.0"))
    inside = reader.home / "container"
    build_library(inside, NVML, nvml("13.0", "^4"))
    build_library(inside, CUDA, cuda_library("13.0", "9.0"))
    reader.tool("docker", f'shift 5; LD_LIBRARY_PATH={inside} exec "$@"')
    on_machine(reader, {"proc/driver/nvidia/capabilities/gpu0/mig/gi1/access": ""}, {})
    reader.environ["LD_LIBRARY_PATH"] = str(library.parent)
    with with_catalog(reader, ["torch"]):
        reader.follow(Page(ROOT / "docs/how-to/mig.md"))


def test_several_gpus(reader: Reader) -> None:
    reader.use_variants()
    with_environment(reader)
    library = build_library(reader.home / "driver", NVML, nvml("13.0", "6.1,8.9"))
    nodes = "sys/class/kfd/kfd/topology/nodes"
    files = {
        f"{nodes}/0/properties": "simd_count 0\ngfx_target_version 0\n",
        f"{nodes}/1/properties": "simd_count 96\ngfx_target_version 110000\n",
        f"{nodes}/2/properties": "simd_count 2\ngfx_target_version 100306\n",
    }
    on_machine(reader, files, {})
    reader.environ["LD_LIBRARY_PATH"] = str(library.parent)
    with with_catalog(reader, ["torch"]):
        reader.follow(Page(ROOT / "docs/how-to/several-gpus.md"))
