"""Plain pip and plain uv at a proxy: builds of another name from install to uninstall.

The shipped catalogue on a stand-in for the public index, whose builds of a project have the same
modules, as the real ones have.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from threading import Thread

import pytest
import uvicorn

from support.environments import PIPS, Environment, Environments, Result
from support.index import Index, served
from support.uvs import Machine
from support.wheels import Wheel
from variants_proxy import Settings, Upstream, create_app
from variants_proxy.server.listening import listen

pytestmark = pytest.mark.skipif(
    (sys.platform, platform.machine()) != ("linux", "x86_64"),
    reason="the builds are for Linux on x86_64",
)

LINUX, MAC = "py3-none-manylinux_2_17_x86_64", "py3-none-macosx_11_0_arm64"
BUILDS = {
    "xgboost": (("xgboost", "xgboost-cpu"), ("3.3.0", "3.4.0")),
    "cupy": (("cupy-cuda12x", "cupy-cuda13x"), ("14.1.0", "14.2.0")),
}
"""Names of the builds of a project, and versions."""
NO_GPU, CUDA_12, CUDA_13 = "cpu-zen4", "v100-broadwell", "h100-sapphirerapids"

Installer = Callable[..., Result]
"""Runs ``pip`` or ``uv pip`` with the index of a platform: its name, and arguments."""


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a proxy with the catalogue, whose upstream has the builds."""
    index = Index(ranges=True)
    for project, (names, versions) in BUILDS.items():
        for name, version in product(names, versions):
            files = {f"{project}/__init__.py": f"BUILD = '{name} {version}'\n"}
            wheel = Wheel(name, version, tag=LINUX, files=files)
            index.add_wheel(wheel, metadata_file=True)
        for version in versions:
            index.add_wheel(Wheel(project, version, tag=MAC), metadata_file=True)
    with served(index):
        settings = Settings(
            (Upstream("main", index.url),),
            tmp_path_factory.mktemp("proxy"),
            environ={},
            catalog="default",
        )
        server = uvicorn.Server(uvicorn.Config(create_app(settings), log_level="critical"))
        listening = listen("127.0.0.1", 0)
        arguments = {"sockets": [listening]}
        thread = Thread(target=server.run, kwargs=arguments, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        thread.join(10)


@pytest.fixture(params=[f"pip {PIPS[0]}", f"pip {PIPS[-1]}", "uv"])
def installer(
    request: pytest.FixtureRequest,
    proxy: str,
    environments: Environments,
    machine: Machine,
    tmp_path: Path,
) -> tuple[Installer, Environment]:
    """What installs, and where."""
    name, _, version = request.param.partition(" ")
    if name == "pip":
        python = "{}.{}".format(*sys.version_info)
        environment = environments.plain(python, version).copied(tmp_path / "pip")

        def pip(key: str, command: str, *arguments: str) -> Result:
            index = ("--index-url", f"{proxy}/p/{key}/simple/") if command == "install" else ("-y",)
            return environment.pip(command, *index, *arguments)

        return pip, environment
    environment = machine.create_environment(sys.executable)

    def uv(key: str, command: str, *arguments: str) -> Result:
        index = (
            ("--index-url", f"{proxy}/p/{key}/simple/", "--refresh") if command == "install" else ()
        )
        return machine.plain("pip", command, *index, *arguments)

    return uv, environment


def imported(environment: Environment, project: str) -> str:
    """Return which build is imported, after a look at who owns its files."""
    owners = environment.site_packages.glob(f"{project}*.dist-info")
    assert len({path.name.partition("-")[0] for path in owners}) == 1
    (owner,) = environment.site_packages.glob(f"{project}-*.dist-info")
    assert f"{project}/__init__.py," in (owner / "RECORD").read_text()
    done = environment.run("-c", f"import {project}; print({project}.BUILD)")
    return done.out.strip()


@pytest.mark.parametrize(
    ("project", "first", "second", "builds"),
    [
        ("xgboost", NO_GPU, CUDA_13, ("xgboost-cpu", "xgboost")),
        ("cupy", CUDA_12, CUDA_13, ("cupy-cuda12x", "cupy-cuda13x")),
    ],
)
def test_a_life(
    installer: tuple[Installer, Environment],
    project: str,
    first: str,
    second: str,
    builds: tuple[str, str],
) -> None:
    """C1, C2: one distribution owns the files of the build, whatever is done."""
    run, environment = installer
    old, new = BUILDS[project][1]
    force = "--force-reinstall"
    for key, arguments, expected in (
        (first, (f"{project}=={old}",), f"{builds[0]} {old}"),
        (first, ("--upgrade", project), f"{builds[0]} {new}"),
        (first, (force, project), f"{builds[0]} {new}"),
        (second, (force, project), f"{builds[1]} {new}"),
        (first, (force, project), f"{builds[0]} {new}"),
        (second, (force, f"{project}=={old}"), None),
        (first, ("--upgrade", project), f"{builds[0]} {new}"),
    ):
        done = run(key, "install", *arguments)
        assert done.code == 0, done
        found = imported(environment, project)
        assert expected in (None, found), done
    done = run(first, "uninstall", project)
    assert done.code == 0, done
    assert not list(environment.site_packages.glob(f"{project}*"))
