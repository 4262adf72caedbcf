"""Builds get the variants that the command itself would take, or that are installed."""

from __future__ import annotations

import io
import shutil
import zipfile

import pytest

from support.pip_commands import dry_run, installs
from support.projects import CUDA_12_8, DRIVER, gpu_index
from support.wheels import SourceDistribution, Wheel

CU128 = "nvidia :: cuda_version_lower_bound :: 12.8"
IN_PROCESS = ("--use-feature", "inprocess-build-deps")


def build_index():
    """A source distribution that is built with a project of which there are variants."""
    index = gpu_index()
    index.add_wheel(Wheel("gpu", "2.0"))
    source = SourceDistribution("built", "1.0", ("gpu",))
    index.add("built", source.filename, source.build())
    return index


def built_with(index):
    """Return the labels of the wheels that were fetched since `requests` was cleared."""
    wheels = (name for name in index.fetched if name.startswith("gpu-2.0-py3-none-any"))
    return {name.removesuffix(".whl").rpartition("-")[2] for name in wheels}


def ways(environment):
    """Return the options for every way in which the pip of *environment* installs for builds."""
    known = "inprocess-build-deps" in environment.pip("install", "--help").out
    return [(), IN_PROCESS] if known else [()]


@pytest.mark.everywhere
def test_options_reach_builds(patched, serve):
    index = serve(build_index())
    for way in ways(patched):
        for options, label in (
            ((), "cu128"),
            (("--no-variants",), "any"),
            (("--variant", "gpu=cu126"), "cu126"),
            (("--variant-platform", "cuda=12.6"), "cu126"),
        ):
            index.requests.clear()
            done = dry_run(patched, index, *way, *options, "built")
            assert done.code == 0, (way, options, done)
            assert built_with(index) == {label}, (way, options)
            assert "this command has no project" not in done.err


@pytest.mark.everywhere
def test_what_is_installed_is_what_is_built_with(fresh, serve):
    """The same label of the same version, as long as it fits."""
    index = serve(build_index())
    url = ("-i", index.url)

    def builds(driver):
        index.requests.clear()
        done = dry_run(fresh, index, *way, "built", **{DRIVER: driver})
        installs(done, "built-1.0")
        (label,) = built_with(index)
        return label

    force = ("install", *url, "--force-reinstall", "--variant", "gpu=cu126")
    for way in ways(fresh):
        fresh.pip(*force, "gpu", env=CUDA_12_8)
        assert builds("12.8") == "cu126"
        assert builds("12.0") == "null"
        # Of another version any variant will do.
        fresh.pip(*force, "gpu==1.0", env=CUDA_12_8)
        assert builds("12.8") == "cu128"


@pytest.mark.everywhere
def test_cached_builds(fresh, serve, tmp_path):
    """pip keeps one wheel of a source; one that was built with a variant is kept for that one."""
    index = serve(build_index())
    env = {"PIP_NO_CACHE_DIR": "", "PIP_CACHE_DIR": str(tmp_path / "cache"), **CUDA_12_8}
    steps = [
        # What is installed, options, and what it is built with, if it is built.
        ("cu126", (), "cu126"),
        ("cu128", (), "cu128"),
        ("cu126", (), None),
        ("cu128", ("--variant", "gpu=cu126"), None),
        ("", (), "cu128"),  # the best one: with another driver it is another one
        ("", (), None),
        ("", ("--variant-exclude", CU128), "cu126"),
        ("cu126", ("--no-variants",), "any"),  # as pip keeps it
        ("cu126", (), None),
    ]
    for installed, options, label in steps:
        shutil.rmtree(fresh.site_packages / "gpu-2.0.dist-info", ignore_errors=True)
        if installed:
            data = index.files["gpu"][f"gpu-2.0-py3-none-any-{installed}.whl"]
            with zipfile.ZipFile(io.BytesIO(data)) as wheel:
                wheel.extractall(fresh.site_packages)
        index.requests.clear()
        again = ("install", "--force-reinstall", "--no-deps", "-i", index.url, *options, "built")
        done = fresh.pip(*again, env=env)
        assert done.code == 0, done
        assert built_with(index) == ({label} if label else set()), (installed, options, done)


def cached_build(environment, index, folder, *options, **env):
    """Install what is built; return what was fetched for it, and whether it was built."""
    index.requests.clear()
    again = ("install", "--force-reinstall", "--no-deps", "-i", index.url, *options, "built")
    cache = {"PIP_NO_CACHE_DIR": "", "PIP_CACHE_DIR": str(folder)}
    done = environment.pip(*again, env={**cache, **CUDA_12_8, **env})
    assert done.code == 0, done
    return built_with(index), "Building wheel for built" in done.out


@pytest.mark.everywhere
@pytest.mark.parametrize("way", ["without the shim", "without variants"])
def test_cached_by_plain_pip(fresh, serve, tmp_path, way):
    """A wheel that was built without variants stands for no variant, and the other way round."""
    index = serve(build_index())
    plain = {"PEP_VARIANTS_SHIM": "0"} if way == "without the shim" else {}
    options = () if plain else ("--no-variants",)
    for step in ({"any"}, set()):
        assert cached_build(fresh, index, tmp_path, *options, **plain)[0] == step
    assert cached_build(fresh, index, tmp_path) == ({"cu128"}, True)
    assert cached_build(fresh, index, tmp_path) == (set(), False)
    assert cached_build(fresh, index, tmp_path, **{DRIVER: "12.6"})[0] <= {"cu126"}
    assert cached_build(fresh, index, tmp_path, *options, **plain) == (set(), False)
    url = f"built @ {index.root}/files/built/built-1.0.tar.gz"
    again = ("install", "--force-reinstall", "--no-deps", "-i", index.url)
    cache = {"PIP_NO_CACHE_DIR": "", "PIP_CACHE_DIR": str(tmp_path), **CUDA_12_8}
    assert fresh.pip(*again, *options, url, env={**cache, **plain}).code == 0
    index.requests.clear()
    assert fresh.pip(*again, url, env=cache).code == 0
    assert built_with(index) == {"cu128"}


@pytest.mark.everywhere
def test_cached_without_variants_of_build_requirements(fresh, serve, tmp_path):
    """A wheel of plain pip is not built anew; variants that there are later count all the same."""
    index = build_index()
    variants = [name for name in index.files["gpu"] if name.count("-") > 4]
    kept = {name: index.files["gpu"].pop(name) for name in variants}
    serve(index)
    assert cached_build(fresh, index, tmp_path, PEP_VARIANTS_SHIM="0") == ({"any"}, True)
    assert cached_build(fresh, index, tmp_path) == ({"any"}, False)
    assert cached_build(fresh, index, tmp_path) == (set(), False)
    assert cached_build(fresh, index, tmp_path, PEP_VARIANTS_SHIM="0") == (set(), False)
    index.files["gpu"].update(kept)
    assert cached_build(fresh, index, tmp_path) == ({"cu128"}, True)
