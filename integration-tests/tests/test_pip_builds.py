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
