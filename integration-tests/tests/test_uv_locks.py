"""Locks that stay right: what a command does not change in a lock is as it was."""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.catalog_places import entry, variant
from support.index import Index
from support.projects import cuda
from support.uvs import Machine, project
from support.wheels import Release, SourceDistribution, Wheel

Serve = Callable[[Index], Index]

REQUIRES = (
    "cudalib==12.8; variant_label == 'cu128'",
    "cudalib==13.0; variant_label == 'cu130'",
)
LINUX, MAC = "py3-none-manylinux_2_17_x86_64", "py3-none-macosx_11_0_arm64"
LARGE = 33 * 2**20
"""Bytes of a wheel that is not read to know its hash after it is rewritten."""


def large(wheels: Iterator[Wheel] | tuple[Wheel, ...]) -> Iterator[Wheel]:
    contents = random.Random(0).randbytes(LARGE)
    for wheel in wheels:
        yield Wheel(
            *(wheel.name, wheel.version, wheel.label, wheel.tag, wheel.requires),
            variant_json=wheel.variant_json,
            files={"app/data": contents},
        )


def field(*, size: str = "small") -> Index:
    """Return an index with ``app``: variants, a plain wheel for macOS and its sources."""
    index, release = Index(ranges=True), Release("app", "1.0", cuda("12.8", "13.0"), REQUIRES)
    index.add_release(release, metadata_file=True)
    if size == "large":
        for wheel in large(tuple(release.wheels())):
            index.add_wheel(wheel, metadata_file=True)
    index.add_wheel(Wheel("app", "1.0", tag=MAC), metadata_file=True)
    sources = SourceDistribution("app", "1.0")
    index.add("app", sources.filename, sources.build())
    for version in ("12.8", "13.0"):
        index.add_wheel(Wheel("cudalib", version), metadata_file=True)
    for name in ("a-first", "plain"):
        index.add_wheel(Wheel(name, "1.0"), metadata_file=True)
    return index


def in_project(machine: Machine, index: Index, *dependencies: str) -> Machine:
    project(machine.work, dependencies)
    return machine.with_environ({"UV_DEFAULT_INDEX": index.url, "UV_PYTHON": sys.executable})


def lock_of(machine: Machine) -> str:
    return (machine.work / "uv.lock").read_text()


def cudalib(machine: Machine) -> list[str]:
    """Return the versions of the library that a variant requires."""
    return re.findall(r'name = "cudalib"\nversion = "([^"]*)"', lock_of(machine))


def locked_for(machine: Machine, driver: str, *words: str) -> None:
    done = machine.run("--variant-platform", f"cuda={driver},sm=9.0", *(words or ("lock",)))
    assert done.code == 0, done


@pytest.mark.everywhere
@pytest.mark.parametrize("size", ["small", "large"])
def test_other_commands_keep_dependencies(every_machine: Machine, serve: Serve, size: str) -> None:
    machine = in_project(every_machine, serve(field(size=size)), "app")
    locked_for(machine, "12.8")
    first = lock_of(machine)
    assert cudalib(machine) == ["12.8"]
    assert "app-1.0.tar.gz" in first
    missing = [line for line in first.splitlines() if "url = " in line and "hash = " not in line]
    mixes = not {"uv-0.5.31", "uv-0.8.24"} & {*every_machine.uv.parts}
    assert len(missing) == ((1 if mixes else 3) if size == "large" else 0), missing
    done = machine.run("add", "--no-sync", "plain")
    assert done.code == 0, done
    assert cudalib(machine) == ["12.8"]
    told = "uv.lock has no hash of 1 file of app: the index has none, or they are large and changed"
    assert (told in done.err) == (size == "large")
    done = machine.run("remove", "--no-sync", "plain")
    assert done.code == 0, done
    assert lock_of(machine) == first
    assert machine.run("lock", "--upgrade-package", "app").code == 0
    assert lock_of(machine) == first
    # Another machine, and back.
    locked_for(machine, "13.0")
    assert cudalib(machine) == ["13.0"]
    assert "/.variant/cu130/" in lock_of(machine)
    locked_for(machine, "12.8")
    assert lock_of(machine) == first


@pytest.mark.parametrize("size", ["small", "large"])
def test_a_sync_does_not_change_the_lock(machine: Machine, serve: Serve, size: str) -> None:
    machine = in_project(machine, serve(field(size=size)), "app")
    locked_for(machine, "12.8")
    first = lock_of(machine)
    assert machine.run("sync").code == 0
    assert machine.run("add", "--no-sync", "plain").code == 0
    assert machine.run("remove", "plain").code == 0
    assert lock_of(machine) == first
    assert machine.run("lock", "--check").code == 0
    locked_for(machine, "12.8", "lock", "--check")


@pytest.mark.everywhere
@pytest.mark.parametrize("dependencies", [("app",), ("app", "plain"), ("a-first", "app")])
@pytest.mark.parametrize("drivers", [("12.8", "13.0"), ("13.0", "12.8")])
def test_what_changed_is_upgraded(
    every_machine: Machine, serve: Serve, dependencies: tuple[str, ...], drivers: tuple[str, str]
) -> None:
    machine = in_project(every_machine, serve(field()), *dependencies)
    for driver in drivers:
        locked_for(machine, driver)
        assert cudalib(machine) == [driver]


def test_requirements_with_hashes(machine: Machine, serve: Serve) -> None:
    """uv downloads what it is shown no hash of, and would take the METADATA in it."""
    index = serve(field(size="large"))
    machine = in_project(machine, index)
    command = ("pip", "compile", "--universal", "--generate-hashes", "-o", "req.txt", "req.in")
    for lines in ("app", "app\nplain"):
        (machine.work / "req.in").write_text(f"{lines}\n")
        locked_for(machine, "12.8", *command)
        assert "cudalib==12.8" in (machine.work / "req.txt").read_text()
    wheels = [each for each in index.requests if "app-1.0" in each and each.endswith(".whl")]
    assert all("bytes=" in each.headers.get("Range", "") for each in wheels), wheels


def test_a_label_that_was_asked_for(machine: Machine, serve: Serve) -> None:
    """The lock has the sources as well, for others, as the next command has them."""
    machine = in_project(machine, serve(field()), "app")
    done = machine.run("--variant", "app=null", "lock")
    assert done.code == 0, done
    first = lock_of(machine)
    assert "/.variant/null/" in first
    assert "app-1.0.tar.gz" in first
    assert machine.run("add", "--no-sync", "plain").code == 0
    assert machine.run("remove", "--no-sync", "plain").code == 0
    assert lock_of(machine) == first


def test_the_machine_of_a_lock_without_variants(machine: Machine, serve: Serve) -> None:
    index = serve(field())
    index.add_release(Release("other", "1.0", cuda("13.0")))
    machine = in_project(machine, index, "app")
    record = machine.work / "uv.variants.toml"
    locked_for(machine, "13.0")
    assert machine.run("remove", "--no-sync", "app").code == 0
    locked_for(machine, "12.8", "lock")
    assert '"12.8"' in record.read_text()
    assert machine.run("add", "--no-sync", "other").code == 0
    assert "cu130" not in lock_of(machine)
    assert "/.variant/null/" in lock_of(machine)


def test_a_build_with_the_name_of_another(machine: Machine, serve: Serve, tmp_path: Path) -> None:
    """The project's own wheel is for CUDA 13; the renamed one for CPUs looks like it in a lock."""
    index = Index(ranges=True)
    for name, requires in (("boost", ("nccl",)), ("boost-cpu", ())):
        index.add_wheel(Wheel(name, "3.4", tag=LINUX, requires=requires), metadata_file=True)
    for name in ("nccl", "plain"):
        index.add_wheel(Wheel(name, "1.0"), metadata_file=True)
    own = variant("cuda13", 'local = ""\nplatforms = ["manylinux_2_17_x86_64"]', cuda="13.0")
    null = variant("null", 'requires = ["boost-cpu=={version}"]')
    (tmp_path / "boost.toml").write_text(entry("boost", [own, null]))
    machine = in_project(machine, serve(index), "boost")
    machine = machine.with_environ({"VARIANTS_CATALOG": str(tmp_path)})
    locked_for(machine, "12.8")
    first = lock_of(machine)
    assert "/.variant/null/boost" in first
    assert machine.run("add", "--no-sync", "plain").code == 0
    assert machine.run("remove", "--no-sync", "plain").code == 0
    assert lock_of(machine) == first
    locked_for(machine, "13.0")
    assert "nccl" in lock_of(machine)
    locked_for(machine, "12.8")
    assert lock_of(machine) == first


def test_the_lock_is_complete_while_a_program_runs(machine: Machine, serve: Serve) -> None:
    machine = in_project(machine, serve(field()), "app")
    program = (
        "import pathlib, time\n"
        "end = time.monotonic() + 30\n"
        "read = pathlib.Path('uv.lock').read_text\n"
        "while read().count('hash = ') < read().count('url = ') and time.monotonic() < end:\n"
        "    time.sleep(0.1)\n"
        "print(read().count('hash = ') == read().count('url = '))\n"
    )
    done = machine.run("run", "python", "-c", program)
    assert (done.code, done.out) == (0, "True\n"), done


def test_hashes_of_large_wheels_where_they_are_wanted(machine: Machine, serve: Serve) -> None:
    machine = in_project(machine, serve(field(size="large")), "app")
    asked = machine.with_environ({"VARIANTS_ALL_HASHES": "1"})
    locked_for(asked, "12.8")
    first = lock_of(machine)
    assert first.count("hash = ") == first.count("url = ")
    # Another machine, which has not read the wheel.
    other = machine.with_environ({"VARIANTS_CACHE_DIR": str(machine.work / "other")})
    done = other.run("add", "--no-sync", "plain")
    assert done.code == 0, done
    assert "no hash" not in done.err
    assert other.run("remove", "--no-sync", "plain").code == 0
    assert lock_of(machine) == first
    assert other.run("sync").code == 0


@pytest.mark.parametrize("is_locked", [False, True])
def test_a_label_of_a_dependency_that_does_not_fit(
    machine: Machine, serve: Serve, is_locked: bool
) -> None:
    index = field()
    index.add_wheel(Wheel("user", "1.0", requires=("app",)), metadata_file=True)
    machine = in_project(machine, serve(index), "user")
    if is_locked:
        assert machine.run("lock").code == 0
    before = lock_of(machine) if is_locked else None
    done = machine.run("--variant", "app=cu130", "lock")
    assert done.code == 2, done
    assert "needs CUDA driver 13.0 or newer" in done.err
    assert ((machine.work / "uv.lock").read_text() if is_locked else None) == before
    assert (machine.work / "uv.lock").exists() == is_locked
