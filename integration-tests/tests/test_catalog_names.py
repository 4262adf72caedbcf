"""Plain pip and plain uv at a proxy: builds of another name from install to uninstall.

The shipped catalogue on a stand-in for the public index, whose builds of a project have the same
modules, as the real ones have.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from support.catalog_places import add_cupy
from support.environments import PIPS, Environments
from support.index import Index, served
from support.proxies import running_proxy
from support.uvs import Machine
from variants_proxy import Settings, Upstream

pytestmark = pytest.mark.skipif(
    (sys.platform, platform.machine()) != ("linux", "x86_64"),
    reason="the builds are for Linux on x86_64",
)

OLD, NEW = "14.1.0", "14.2.0"
CUDA_12, CUDA_13 = "v100-broadwell", "h100-sapphirerapids"


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a proxy with the catalogue, whose upstream has the builds of cupy."""
    index = Index(ranges=True)
    add_cupy(index, "py3-none-manylinux_2_17_x86_64", mac="py3-none-macosx_11_0_arm64")
    folder = tmp_path_factory.mktemp("proxy")
    with served(index):
        upstream = Upstream("main", index.url)
        with running_proxy(Settings((upstream,), folder, environ={}, catalog="default")) as url:
            yield url


@pytest.mark.parametrize(
    "client",
    [PIPS[0], pytest.param(PIPS[-1], marks=pytest.mark.nightly), "uv"],
)
def test_a_life(
    client: str, proxy: str, environments: Environments, machine: Machine, tmp_path: Path
) -> None:
    """C1, C2: one distribution owns the files of the build, whatever is done."""
    if client == "uv":
        environment = machine.create_environment(sys.executable)
        pip, yes = partial(machine.plain, "pip"), ()
    else:
        python = "{}.{}".format(*sys.version_info)
        environment = environments.plain(python, client).copied(tmp_path / "pip")
        pip, yes = environment.pip, ("--yes",)
    force = "--force-reinstall"
    for key, arguments, expected in (
        (CUDA_12, (f"cupy=={OLD}",), f"cupy-cuda12x {OLD}"),
        (CUDA_12, ("--upgrade", "cupy"), f"cupy-cuda12x {NEW}"),
        (CUDA_13, (force, "cupy"), f"cupy-cuda13x {NEW}"),
        (CUDA_12, (force, "cupy"), f"cupy-cuda12x {NEW}"),
    ):
        done = pip("install", "--index-url", f"{proxy}/p/{key}/simple/", *arguments)
        assert done.code == 0, done
        (owner,) = environment.site_packages.glob("cupy*.dist-info")
        assert "cupy/__init__.py," in (owner / "RECORD").read_text()
        assert environment.run("-c", "import cupy; print(cupy.BUILD)").out.strip() == expected
    done = pip("uninstall", *yes, "cupy")
    assert done.code == 0, done
    assert not list(environment.site_packages.glob("cupy*"))
