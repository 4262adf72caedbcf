"""One lock file for machines that no marker tells apart, installed by plain and by our clients."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from pep_variants._formats import toml
from support.catalog_places import family_entries, pytorch
from support.environments import PIPS, Result, clean_environ
from support.projects import DRIVER
from support.published_builds import standing_in
from support.uvs import UVS, Machine, downloaded_uv, uv_variants

TARGETS = {
    "cuda=12.8,sm=9.0,cpu=zen4": ("cuda12-8-sm9-0-cpuzen4", "2.9.0+cu128"),
    "cuda=13.0,sm=9.0,cpu=zen4": ("cuda13-0-sm9-0-cpuzen4", "2.9.0+cu130"),
    "cpu-zen4": ("cpu-zen4", "2.9.0+cpu"),
}
VERSIONS = dict(TARGETS.values())
PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
COMMAND = [sys.executable, "-c", "from variants_cli.main import main; main()"]
pytestmark = pytest.mark.one


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """A lock file for three machines and a Mac, and the options that lead to its builds."""
    folder = tmp_path_factory.mktemp("lock")
    with standing_in(pytorch()) as field:
        family_entries(field.builds, folder / "catalog")
        options = ("-i", field.index.url, "--variant-catalog", str(folder / "catalog"))
        targets = [word for each in (*TARGETS, "apple-m1") for word in ("--platform", each)]
        done = variants(folder, "resolve", "torchvision", *options, *targets, "-o", "pylock.toml")
        assert done.code == 0, done
        yield folder / "pylock.toml", done, field


def variants(folder, *arguments):
    done = subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, cwd=folder, timeout=120,
        check=False, env=clean_environ({"VARIANTS_CACHE_DIR": str(folder / "cache")}),
    )  # fmt: skip
    return Result(done.returncode, done.stdout, done.stderr)


def test_what_is_written(places):
    path, done, _ = places
    tree = toml.read_toml(path.read_text())
    names = [group for group, _ in TARGETS.values()]
    assert tree["dependency-groups"] == names
    assert f"it has the dependency groups {', '.join(names)}" in done.err
    markers = {(each["name"], each.get("version")): each.get("marker") for each in tree["packages"]}
    for group, version in TARGETS.values():
        assert f'and "{group}" in dependency_groups' in markers["torch", version]
    guard = markers["name-a-dependency-group", None]
    assert guard.count("sys_platform") == 1  # a Mac needs no group


@pytest.mark.parametrize("target", TARGETS)
def test_resolve_takes_the_one_that_fits(places, target):
    path, *_ = places
    done = variants(path.parent, "resolve", "--from", path.name, "--platform", target)
    group, version = TARGETS[target]
    assert version in done.out, done
    assert f"note: pylock.toml: dependency group {group}: torchvision " in done.err
    other = variants(
        path.parent, "resolve", "--from", path.name, "--platform", target, "--group", "cpu-zen4"
    )
    assert "2.9.0+cpu" in other.out
    done = variants(path.parent, "resolve", "--from", path.name, "--platform", target, "--json")
    taken = json.loads(done.out)["resolutions"][0]["group"]
    assert (taken["name"], taken["unfit"]) == (group, [])
    assert taken["why"].startswith("torchvision ")


def torch_of(environment):
    """Return the version of torch in an environment, empty without it."""
    found = [*environment.site_packages.glob("torch-*.dist-info")]
    assert len(found) <= 1
    return found[0].name.split("-")[1].removesuffix(".dist") if found else ""


@pytest.mark.parametrize("group", [group for group, _ in TARGETS.values()])
def test_plain_pip(places, environments, tmp_path, group):
    """Without a group, or with an unknown one, pip installs nothing."""
    path, *_ = places
    environment = environments.plain(PYTHON, PIPS[-1]).copied(tmp_path / "environment")
    for given in (("-r", str(path)), ("--group", f"{path}:typo")):
        done = environment.pip("install", "--no-index", *given)
        assert done.code == 1
        assert "for package 'name-a-dependency-group'" in done.err
    done = environment.pip("install", "--no-index", "--group", f"{path}:{group}")
    assert (done.code, torch_of(environment)) == (0, VERSIONS[group]), done


def test_pip_with_the_shim(places, environments, tmp_path):
    path, *_ = places
    environment = environments.patched(PYTHON, PIPS[-1]).copied(tmp_path / "environment")
    for driver, version in (("12.8", "2.9.0+cu128"), ("13.1", "2.9.0+cu130"), ("", "2.9.0+cpu")):
        done = environment.pip("install", "--no-index", "-r", str(path), env={DRIVER: driver})
        assert (done.code, torch_of(environment)) == (0, version), done
        assert "From the lock file: dependency group c" in done.out
    named = ("--group", f"{path}:cuda13.0-sm9.0-cpuzen4")
    done = environment.pip("install", "--no-index", *named, env={DRIVER: "12.8"})
    assert (done.code, torch_of(environment)) == (0, "2.9.0+cu130")
    assert "is not for this machine: torchvision cuda13.0 needs CUDA driver 13.0" in done.err
    done = environment.pip("install", "--no-index", "--group", f"{path}:typo")
    assert (done.code, "there is no dependency group 'typo'" in done.err) == (1, True), done


@pytest.mark.parametrize("version", ["0.8.24", "0.11.19", UVS[-1]])
def test_uv(places, environments, tmp_path, version):
    """Plain uv fails without a group; uv-variants takes the one that fits."""
    path, *_ = places
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    uv = downloaded_uv(version, environments.wheelhouse)
    machine = Machine(uv, uv_variants(environments.folder), home, work)
    environment = machine.create_environment(sys.executable)
    sync = ("pip", "sync", "--preview", str(path))
    done = machine.plain(*sync)
    assert (done.code != 0, "`name-a-dependency-group` can't be" in done.err) == (True, True), done
    for group, build in VERSIONS.items():
        done = machine.plain(*sync, "--group", group)
        assert (done.code, torch_of(environment)) == (0, build), done
    for driver, build in (("12.8", "2.9.0+cu128"), ("13.1", "2.9.0+cu130"), ("", "2.9.0+cpu")):
        done = machine.with_environ({DRIVER: driver}).run(*sync)
        assert (done.code, torch_of(environment)) == (0, build), done
        assert f"{path}: dependency group c" in done.err
    install = ("pip", "install", "--preview", "--dry-run", "-r", str(path))
    done = machine.with_environ({DRIVER: "12.8"}).run(*install)
    assert (done.code, "torch==2.9.0+cu128" in done.err) == (0, True), done
    done = machine.with_environ({DRIVER: "12.8"}).run(*sync, "--group", "cuda13.0-sm9.0-cpuzen4")
    assert (done.code, torch_of(environment)) == (0, "2.9.0+cu130")
    assert "is not for this machine: torchvision cuda13.0 needs" in done.err
