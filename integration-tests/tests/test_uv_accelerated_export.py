"""One pylock.toml with the groups of all accelerators, exported from the uv.lock of a project."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tomllib

from support.catalog_places import add_cupy, family_entries, numbered_entry, pytorch
from support.environments import PIPS, Environments, clean_environ
from support.projects import DRIVER, GPU
from support.published_builds import Field, standing_in
from support.uvs import Machine, downloaded_uv, project
from support.wheels import Wheel
from uv_variants._environments import installed_versions

LINUX, MAC = "py3-none-manylinux_2_17_x86_64", "py3-none-macosx_11_0_arm64"
GROUPS = {"cpu": "", "cuda12.6": "12.6", "cuda13.0": "13.0"}
"""Names, and a driver that takes them."""
PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
BACKEND = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[dependency-groups]
dev = ["idna"]
"""
EXPORT = ("export", "--locked", "--format", "pylock.toml", "-o", "pylock.toml")


@pytest.fixture
def field() -> Iterator[Field]:
    found = pytorch(LINUX, mac=MAC)
    add_cupy(found.index, LINUX, mac=MAC)
    for wheel in (Wheel("trainer", "1.0", requires=("torch>=2.8",)), Wheel("idna", "3.0")):
        found.index.add_wheel(wheel, metadata_file=True)
    with standing_in(found):
        yield found


@pytest.fixture
def computer(machine: Machine, field: Field, tmp_path: Path) -> Machine:
    """A machine with a project that has a group for each accelerator."""
    family_entries(field.builds, tmp_path / "catalog")
    cupy = numbered_entry("cupy", "cupy-cuda{}x=={{version}}")
    (tmp_path / "catalog" / "cupy.toml").write_text(cupy)
    found = machine.with_environ(
        {
            "UV_DEFAULT_INDEX": field.index.url,
            "VARIANTS_CATALOG": str(tmp_path / "catalog"),
            "UV_PYTHON": sys.executable,
        }
    )
    project(
        found.work, ["trainer", "torchvision>=0.8", "cupy>=14; sys_platform != 'win32'"], BACKEND
    )
    done = found.run("accelerators", *GROUPS)
    assert done.code == 0, done
    return found


def without(group: str) -> dict[str, str]:
    return {"UV_NO_GROUP": " ".join(name for name in GROUPS if name != group)}


def on(machine: Machine, driver: str) -> Machine:
    return machine.with_environ({DRIVER: driver, GPU: "9.0"} if driver else {})


def tree_of(text: str) -> dict[tuple[str, str], dict[str, Any]]:
    found = tomllib.loads(text)["packages"]
    return {(each["name"], each.get("version", "")): each for each in found}


def versions(environment: Path) -> dict[str, str]:
    found = dict(installed_versions([environment]))
    return {name: each for name, each in found.items() if name not in ("pip", "project")}


def test_each_group_has_what_uv_syncs(
    computer: Machine, environments: Environments, tmp_path: Path
) -> None:
    """By plain uv and pip, which are told the group, and by our clients, which are not."""
    done = computer.run(*EXPORT, "--no-emit-project")
    assert done.code == 0, done
    assert "the dependency groups are cpu, cuda12-6, cuda13-0" in done.err
    assert done.err.count("Resolved") <= 1
    path = computer.work / "pylock.toml"
    assert done.out == path.read_text()
    assert "#    uv-variants export --locked --format pylock.toml" in done.out
    old = Machine(
        downloaded_uv("0.8.24", environments.wheelhouse), computer.program, computer.home,
        computer.work, computer.environ,
    )  # fmt: skip
    ours = computer.work / ".venv"
    into = {"UV_PYTHON": str(ours)}
    for group, driver in GROUPS.items():
        done = computer.with_environ(without(group)).plain(
            "sync", "--locked", "--no-install-project"
        )
        assert done.code == 0, done
        expected = versions(ours)
        assert expected["idna"] == "3.0"
        assert ("cupy-cuda12x" in expected) == (group == "cuda12.6"), expected
        for uv in (computer, old):
            sync = ("pip", "sync", "--preview", "--reinstall", str(path))
            done = uv.with_environ(into).plain(*sync, "--group", group)
            assert "Installed" in done.err
            assert (done.code, versions(ours)) == (0, expected), done
        told = ("--group", f"{path}:{group}")
        plain = environments.plain(PYTHON, PIPS[-1]).copied(tmp_path / f"plain-{group}")
        shim = environments.patched(PYTHON, PIPS[-1]).copied(tmp_path / f"shim-{group}")
        for pip, given in ((plain, told), (shim, ("-r", str(path)))):
            wanted = {**versions(pip.path), **expected}
            machine = {DRIVER: driver, GPU: "9.0"} if driver else {}
            done = pip.pip("install", "--no-index", *given, env=machine)
            assert (done.code, versions(pip.path)) == (0, wanted), done
        here = on(computer.with_environ(into), driver)
        done = here.run(*sync)
        assert (done.code, versions(ours)) == (0, expected), done
        assert "dependency group c" in done.err
        resolved = resolve(path, driver)
        assert f"torch {expected['torch']}" in " ".join(resolved.split())
    done = plain.pip("install", "--no-index", "-r", str(path))
    assert "for package 'name-a-dependency-group'" in done.err, done


def resolve(path: Path, driver: str) -> str:
    """Return what `variants resolve` takes of a lock file on a machine with a driver."""
    command = [sys.executable, "-c", "from variants_cli.main import main; main()"]
    environ = clean_environ({DRIVER: driver, GPU: "9.0", "VARIANTS_CACHE_DIR": str(path.parent)})
    done = subprocess.run(
        [*command, "resolve", "--from", str(path)],
        capture_output=True, text=True, timeout=120, check=False, env=environ,
    )  # fmt: skip
    assert done.returncode == 0, done
    return done.stdout


def test_all_is_as_uv_writes_it(computer: Machine) -> None:
    """Files, indexes, an editable project relative to the file, and markers within a group."""
    options = ("export", "--format", "pylock.toml", "-o", "there/pylock.all.toml")
    done = computer.run(*options, "--quiet")
    assert (done.code, done.out, done.err) == (0, "", ""), done
    path = computer.work / "there" / "pylock.all.toml"
    merged = tree_of(path.read_text())
    seen = {("name-a-dependency-group", "")}
    for group in GROUPS:
        plain = computer.with_environ(without(group)).plain(*options)
        assert plain.code == 0, plain
        for key, package in tree_of(plain.out).items():
            written = merged[key]
            assert {**written, "marker": ""} == {**package, "marker": ""}
            assert package.get("marker", "").replace("'", '"') in written.get("marker", "")
            seen.add(key)
    assert seen == merged.keys()
    assert merged["project", ""]["directory"] == {"path": "../", "editable": True}
    assert "marker" not in merged["project", ""]
    assert "marker" not in merged["idna", "3.0"]
    mac = merged["torch", "2.9.0"]["marker"]
    assert mac == '"cpu" in dependency_groups and sys_platform == "darwin"'
    both = merged["cupy-cuda13x", "14.2.0"]["marker"]
    assert both == '"cuda13-0" in dependency_groups and sys_platform != "win32"'


@pytest.mark.parametrize(
    ("variables", "options"),
    [
        ({}, ["--group", "cuda12.6"]),
        ({}, ["--only-group", "cuda12.6"]),
        ({}, ["--no-group", "cpu", "--no-group", "cuda13.0"]),
        (without("cuda12.6"), []),
    ],
)
def test_a_group_that_is_named_is_alone(
    computer: Machine, variables: dict[str, str], options: list[str]
) -> None:
    done = computer.with_environ(variables).run(*EXPORT, *options)
    assert done.code == 0, done
    assert "dependency-groups" not in done.out
    torches = [version for name, version in tree_of(done.out) if name == "torch"]
    assert torches == ["2.9.0+cu126"]


def test_other_groups_and_formats(computer: Machine) -> None:
    """uv ignores its variable where the option is given."""
    for options in ((), ("-o", "pylock.toml")):
        done = computer.run("export", "--no-group", "dev", "--no-hashes", *options)
        assert done.code == 0, done
        assert "torch" in done.out
        assert "idna" not in done.out
        assert ("dependency-groups" in done.out) == bool(options)
    done = computer.run("sync", "--no-group", "dev", "--no-install-project")
    assert done.code == 0, done
    assert versions(computer.work / ".venv")["torch"] == "2.9.0+cpu"


def test_nothing_is_written_where_uv_fails(computer: Machine) -> None:
    """What was there is there afterwards."""
    path = computer.work / "pylock.toml"
    for before in (None, "mine\n"):
        if before:
            path.write_text(before)
        done = computer.run(*EXPORT, "--extra", "unknown")
        assert done.code != 0, done
        assert (path.read_text() if path.exists() else None) == before
    done = computer.run("export", "--format", "pylock.toml", "-o", "lock.toml")
    assert done.code != 0, done
    assert not (computer.work / "lock.toml").exists()


def test_builds_that_are_others_on_aarch64(computer: Machine) -> None:
    """One label may stand for other GPU code there; the file is for both."""
    path = Path(computer.environ["VARIANTS_CATALOG"]) / "torch.toml"
    head, *tables = path.read_text().split("[[variant]]\n")
    first, *others = tables
    assert 'label = "cuda13.0"' in first
    arm = first.replace("cuda_version_lower_bound :: 13.0", "cuda_version_lower_bound :: 13.1")
    both = [
        f'platforms = ["manylinux_2_17_{machine}"]\n'.join(("", table))
        for machine, table in (("x86_64", first), ("aarch64", arm))
    ]
    path.write_text("[[variant]]\n".join((head, *both, *others)))
    done = computer.run(*EXPORT)
    assert done.code == 0, done
    own = tomllib.loads(done.out)["tool"]["pep-variants"]
    found = {
        table["environment"]: own["variants"]["torch"]["variants"][table["builds"]["torch"]]
        for table in own["groups"]["cuda13-0"]
        if "torch" in table["builds"]  # there is none for Windows
    }
    bounds = {
        marker: properties["nvidia"]["cuda_version_lower_bound"]
        for marker, properties in found.items()
    }
    assert bounds == {
        "sys_platform != 'win32' and platform_machine != 'aarch64'": ["13.0"],
        "platform_machine == 'aarch64'": ["13.1"],
    }


def test_a_stale_lock_is_locked_anew(computer: Machine) -> None:
    """Our table says what uv has locked by then."""
    path = computer.work / "pyproject.toml"
    path.write_text(path.read_text().replace("torchvision>=0.8", "torchvision==0.8.0"))
    done = computer.run("export", "--format", "pylock.toml")
    assert done.code == 0, done
    assert ("torch", "2.8.0+cu130") in tree_of(done.out)
    own = tomllib.loads(done.out)["tool"]["pep-variants"]
    groups = own["groups"]["cuda13-0"]
    assert [each["builds"]["torch"] for each in groups] == ["cuda13.0"] * 3
    assert ["cupy" in each["builds"] for each in groups] == [True, True, False]  # no Windows
    assert computer.run(*EXPORT).out.partition("lock-version")[2] in done.out
