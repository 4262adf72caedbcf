"""The how-to pages about machines: their console blocks are run, in order, and compared.

What stands for hardware is a driver library compiled here, which the programs load as the real one.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

import variants_catalog
from pep_variants.catalog.store import DirectoryCatalog
from support.documents import Page, Reader
from support.environments import PIPS, ROOT
from support.nvidia_drivers import NVML, build_library, nvml
from support.published_builds import Field, field_of, standing_in

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="these machines have Linux")
TORCH = ("2.5.1", "2.7.1", "2.8.0", "2.9.1", "2.10.0", "2.13.0", "2.15.0")
"""Every place of the catalogue has at least one of them."""
PYTHON = "3.12"


@contextmanager
def with_catalog(reader: Reader, projects: Sequence[str]) -> Iterator[Field]:
    """Let the catalogue's places of *projects* be here, with all of `TORCH`."""
    catalog = DirectoryCatalog(variants_catalog.projects())
    entries = [entry for name in projects if (entry := catalog.project(name)) is not None]
    with standing_in(field_of(entries, dict.fromkeys(projects, TORCH))) as field:
        reader.environ |= {
            "PIP_INDEX_URL": field.index.url,
            "UV_DEFAULT_INDEX": field.index.url,
            "VARIANTS_CATALOG_MIRROR": " ".join(field.mirrors),
            "VARIANTS_CATALOG": "default",
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


def test_from_index_url(reader: Reader) -> None:
    reader.use_python()
    reader.use_variants()
    reader.use_uv()
    with_drivers(reader, {"nvidia-driver-580": nvml("13.0", "9.0")}, "nvidia-driver-580")
    with_environment(reader)
    with with_catalog(reader, ["torch"]) as field:
        del reader.environ["VARIANTS_CATALOG"]
        page = Page(ROOT / "docs/how-to/from-index-url.md")
        reader.follow(page, replaced=field.builds.mirrors)
