"""Locks for several platforms: every platform gets what its own wheel requires."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping

import pytest
from packaging.requirements import Requirement

from pep_variants.wheelfile.core_metadata import requirements_of
from support.environments import Environment
from support.index import Index, served
from support.platform_layouts import LAYOUTS, MACHINES, PLATFORMS, layouts_index, needs_of
from support.projects import CUDA_12_8
from support.proxies import running_proxy
from support.uvs import Machine
from variants_proxy import Settings, Upstream, encode, index_url
from variants_proxy.choice.in_place_names import wheel_at

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PYTHON = sys.executable
Serve = Callable[[Index], Index]
Cell = tuple[str, str, int]
"""A layout, a platform, a minor version of Python."""


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("proxy")
    with served(layouts_index(metadata_hashes=True)) as index:
        upstream = Upstream("main", index.url)
        with running_proxy(Settings((upstream,), cache=folder, environ={})) as url:
            yield url


def write_project(machine: Machine) -> None:
    """Write a project with an extra for every layout: not all have wheels for every platform."""
    extras = "".join(
        f'{name} = ["{name}{f"[{layout.extra}]" if layout.extra else ""}"]\n'
        for name, layout in LAYOUTS.items()
    )
    (machine.work / "pyproject.toml").write_text(
        '[project]\nname = "project"\nversion = "1.0"\nrequires-python = ">=3.11"\n'
        f"[project.optional-dependencies]\n{extras}"
    )


def locking(machine: Machine, proxy: str, who: str) -> Machine:
    """Return *machine* with a project, whose index is that of *who*."""
    write_project(machine)
    url = proxy + index_url(encode(MACHINES[who]), "main")
    return machine.with_environ({"UV_DEFAULT_INDEX": url, "UV_PYTHON": PYTHON})


def locked_labels(machine: Machine) -> dict[str, dict[str, str]]:
    """Return the labels in ``uv.lock`` by layout and tag; empty for wheels without one."""
    tree = tomllib.loads((machine.work / "uv.lock").read_text())
    found: dict[str, dict[str, str]] = {}
    for package in tree["package"]:
        for wheel in package.get("wheels", ()) if package["name"] in LAYOUTS else ():
            label, plain = wheel_at(wheel["url"]) or (None, wheel["url"].rpartition("/")[2])
            tag = "-".join(plain.removesuffix(".whl").split("-")[-3:])
            found.setdefault(package["name"], {})[tag] = label or ""
    return found


def expected(locked: Mapping[str, Mapping[str, str]]) -> dict[Cell, frozenset[str]]:
    """Return what every cell needs: that of the wheel that the lock file has for it."""
    found = {}
    for name, layout in LAYOUTS.items():
        for platform, minor in layout.cells():
            build = layout.build_for(platform, minor, locked[name])
            if build is not None:
                found[name, platform, minor] = needs_of(name, build)
    return found


def cells_of(requirements: str, cells: Mapping[Cell, frozenset[str]]) -> dict[Cell, frozenset[str]]:
    """Return what *requirements*, the lines of a requirements file, have for every cell."""
    parsed = [
        Requirement(line)
        for line in map(str.strip, requirements.splitlines())
        if line and line[0] not in "#-"
    ]
    found = {}
    for name, platform, minor in cells:
        where = PLATFORMS[platform].environment(minor)
        found[name, platform, minor] = frozenset(
            f"{item.name}{item.specifier}"
            for item in parsed
            if item.name.startswith(f"{name}-")
            and (item.marker is None or item.marker.evaluate(where))
        )
    return found


def check_cells(got: Mapping[Cell, frozenset[str]], cells: Mapping[Cell, frozenset[str]]) -> None:
    """Check that every cell is as it should be."""
    wrong = {
        cell: (sorted(needs - there), sorted(there - needs))
        for cell, needs in cells.items()
        if (there := got.get(cell, frozenset())) != needs
    }
    assert wrong == {}, "cells with what is missing, and what is too much"


def lock_cells(machine: Machine) -> dict[Cell, frozenset[str]]:
    """Return what ``uv.lock`` has for every cell."""
    cells = expected(locked_labels(machine))
    done = machine.plain(
        "export", "--frozen", "--all-extras", "--no-hashes", "--no-emit-project", "--no-header"
    )
    assert done.code == 0, done
    return cells_of(done.out, cells)


@pytest.mark.everywhere
@pytest.mark.parametrize("who", MACHINES)
def test_a_lock(every_machine: Machine, proxy: str, who: str) -> None:
    machine = locking(every_machine, proxy, who)
    done = machine.plain("lock")
    assert done.code == 0, done
    check_cells(lock_cells(machine), expected(locked_labels(machine)))


@pytest.mark.everywhere
def test_a_lock_of_the_command(every_machine: Machine, serve: Serve) -> None:
    """The same without a proxy of the test: `uv-variants lock` on this machine."""
    write_project(every_machine)
    index = serve(layouts_index(metadata_hashes=True))
    machine = every_machine.with_environ(
        {**CUDA_12_8, "UV_DEFAULT_INDEX": index.url, "UV_PYTHON": PYTHON}
    )
    done = machine.run("lock")
    assert done.code == 0, done
    labels = locked_labels(machine)
    if sys.platform == "linux":
        assert labels["l1"]["py3-none-manylinux_2_17_x86_64"] == "cu128"
    check_cells(lock_cells(machine), expected(labels))
    done = machine.run("sync", "--locked", "--extra", "l9")
    assert done.code == 0, done


@pytest.mark.everywhere
def test_a_synced_platform(every_machine: Machine, proxy: str) -> None:
    machine = locking(every_machine, proxy, "Windows GPU")
    if "--python-platform" not in machine.plain("sync", "--help").out:
        pytest.skip("this uv syncs for its own platform only")
    assert machine.plain("lock").code == 0
    labels = locked_labels(machine)
    cells = {cell: needs for cell, needs in expected(labels).items() if cell[2] == 11}
    got = {}
    for name, platform in PLATFORMS.items():
        extras = [option for cell in cells if cell[1] == name for option in ("--extra", cell[0])]
        command = ["sync", "--frozen", "--no-install-project", "--python-platform"]
        done = machine.plain(*command, platform.triple, *extras)
        assert done.code == 0, done
        freeze = machine.plain("pip", "freeze", "--python", ".venv").out
        here = {cell: needs for cell, needs in cells.items() if cell[1] == name}
        got.update(cells_of(freeze, here))
        for cell in here:
            build = LAYOUTS[cell[0]].build_for(name, 11, labels[cell[0]])
            assert build is not None
            installed = Environment(machine.work / ".venv").site_packages
            metadata = (installed / f"{cell[0]}-1.0.dist-info" / "METADATA").read_bytes()
            # The wheel has its own dependencies inside, those of no other platform.
            where = platform.environment(11) | {"extra": LAYOUTS[cell[0]].extra}
            own = {Requirement(text) for text in requirements_of(metadata)}
            applies = [item for item in own if item.marker is None or item.marker.evaluate(where)]
            assert {item.name for item in applies} == {item.split("==")[0] for item in here[cell]}
    check_cells(got, cells)
