"""`uv-variants pip …`: every supported uv, unmodified, takes the variant that fits."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable

import pytest

from support.index import Index
from support.projects import CUDA_12_8, app_index, cuda, gpu_index
from support.uvs import Machine, installed_labels, project
from support.wheels import Release, Wheel

PYTHON = sys.executable
Serve = Callable[[Index], Index]

GPU = {"always", "app", "for-128", "for-cu128", "for-gpu"}
CPU = {"always", "app", "for-cpu"}


@pytest.fixture
def index(serve: Serve) -> Index:
    return serve(app_index(metadata_file=True))


def names(machine: Machine) -> set[str]:
    done = machine.plain("pip", "freeze")
    return {line.split("==")[0] for line in done.out.splitlines()}


@pytest.mark.everywhere
def test_it_takes_the_variant_that_fits(every_machine: Machine, index: Index) -> None:
    gpu = every_machine.with_environ({**CUDA_12_8, "UV_DEFAULT_INDEX": index.url})
    environment = gpu.create_environment(PYTHON)
    done = gpu.run("pip", "install", "app")
    assert done.code == 0, done
    assert "Variant cu128 for app 1.0: CUDA driver 12.8 or newer" in done.err
    assert gpu.labels() == {"app": "cu128"}
    assert names(gpu) == GPU
    check = gpu.run("pip", "check")
    assert check.code == 0, check
    # What is there and fits is left alone, and not spoken of again.
    again = gpu.run("pip", "install", "app")
    assert again.code == 0, again
    assert "Variant" not in again.text
    assert "+ app" not in again.text
    assert installed_labels(environment.path) == {"app": "cu128"}


def test_labels_that_need_other_pythons(machine: Machine, serve: Serve) -> None:
    """K2: the best label that the environment's Python supports, which a lock cannot know."""
    release = Release("app", "1.0", cuda("12.6", "12.8"))
    index = Index()
    index.add_release(release)
    newest = f">=3.{sys.version_info.minor}"
    for wheel in release.wheels():
        index.attributes[wheel.filename] = {
            "requires-python": newest if wheel.label == "cu128" else ">=3.10"
        }
    gpu = machine.with_environ({**CUDA_12_8, "UV_DEFAULT_INDEX": serve(index).url})
    for option, label in (([], "cu128"), (["--python-version", "3.10"], "cu126")):
        there = gpu.create_environment(PYTHON, gpu.work / label).path
        options = ("--python", str(there), "--only-binary", ":all:", *option)
        done = gpu.run("pip", "install", *options, "app")
        assert done.code == 0, done
        assert installed_labels(there) == {"app": label}


def test_a_forced_label_without_a_home_that_can_be_written(machine: Machine, index: Index) -> None:
    """V3: uv is asked for the environment with the cache that the command has, or with none."""
    environment = machine.create_environment(PYTHON)
    nowhere = dict.fromkeys(("HOME", "USERPROFILE"), "/dev/null/home")
    nowhere |= dict.fromkeys(("UV_CACHE_DIR", "VARIANTS_CACHE_DIR", "XDG_CACHE_HOME"), "")
    gpu = machine.with_environ({**CUDA_12_8, **nowhere, "UV_DEFAULT_INDEX": index.url})
    target = ("--no-cache", "--python", str(environment.path))
    assert gpu.run("pip", "install", *target, "app").code == 0
    assert gpu.labels() == {"app": "cu128"}
    done = gpu.run("--variant", "app=cu126", "pip", "install", *target, "app")
    assert done.code == 0, done
    assert gpu.labels() == {"app": "cu126"}
    # Where uv does not say which environment it is, that is an error, not another variant.
    silent = machine.work / "uv"
    silent.write_text(f'#!/bin/sh\n[ "$1" = python ] && exit 1\nexec {machine.uv} "$@"\n')
    silent.chmod(0o755)
    silenced = gpu.with_environ({"VARIANTS_UV": str(silent)})
    done = silenced.run("--variant", "app=cu128", "pip", "install", *target, "app")
    assert done.code == 2, done
    assert "app may be other than --variant app=cu128 asks for: name the environment" in done.err


def test_options_of_variables_and_files(machine: Machine, index: Index) -> None:
    machine = machine.with_environ({**CUDA_12_8, "UV_DEFAULT_INDEX": index.url})
    machine.create_environment(PYTHON)
    variable = machine.with_environ({"VARIANTS_EXCLUDE": "nvidia"})
    assert variable.run("pip", "install", "app").code == 0
    assert machine.labels() == {"app": "null"}
    (machine.work / "variants.toml").write_text('variant = ["app=cu126"]\n')
    done = machine.run("--variant-coherent", "nvidia", "pip", "install", "app")
    assert done.code == 0, done
    assert "--variant-coherent has no effect with uv" in done.err
    assert machine.labels() == {"app": "cu126"}
    done = machine.run("--variants", "pip", "install", "app")
    assert done.code == 2
    assert "--variants is not an option" in done.err


@pytest.mark.everywhere
def test_variant_markers_without_variants(every_machine: Machine, serve: Serve) -> None:
    index = app_index(metadata_file=True)
    requires = ("always", "for-gpu; 'nvidia' in variant_namespaces", "for-cpu; variant_label == ''")
    index.add_wheel(Wheel("plain", "1.0", requires=requires), metadata_file=True)
    environ = {**CUDA_12_8, "UV_DEFAULT_INDEX": serve(index).url}
    machine = every_machine.with_environ(environ)
    machine.create_environment(PYTHON)
    done = machine.run("pip", "install", "plain")
    assert done.code == 0, done
    assert names(machine) == {"always", "for-cpu", "plain"}
    assert machine.run("pip", "check").code == 0
    project(machine.work, ["plain"])
    done = machine.run("sync", "--reinstall")
    assert done.code == 0, done
    lock = (machine.work / "uv.lock").read_text()
    assert re.search(r'plain-1.0-py3-none-any.whl", hash = "sha256:', lock), lock
    assert names(machine) == {"always", "for-cpu", "plain"}


def test_the_table_of_a_version(machine: Machine, index: Index) -> None:
    machine = machine.with_environ({**CUDA_12_8, "UV_DEFAULT_INDEX": index.url})
    machine.create_environment(PYTHON)
    done = machine.run("pip", "install", "-v", "app")
    assert done.code == 0, done
    table = done.err[done.err.index("Variants of app 1.0:") :].splitlines()[1:5]
    assert [line.split()[:2] for line in table] == [
        ["cu128", "chosen"],
        ["cu126", "compatible"],
        ["null", "compatible"],
        ["cu130", "rejected"],
    ]
    assert "needs CUDA driver 13.0 or newer, this one supports up to 12.8" in table[3]


def test_switching(machine: Machine, serve: Serve) -> None:
    """With its dependencies, also what is installed without variant; only what is named."""
    index = gpu_index()
    for name in ("gpu", "other"):
        index.add_release(Release(name, "2.0", cuda("12.8"), ("cudalib==12.8", "always")))
        index.add_wheel(Wheel(name, "2.0"), metadata_file=True)
    machine = machine.with_environ({**CUDA_12_8, "UV_DEFAULT_INDEX": serve(index).url})
    machine.create_environment(PYTHON)
    assert machine.run("--no-variants", "pip", "install", "gpu", "other").code == 0
    assert machine.labels() == {}
    assert machine.run("pip", "install", "gpu").code == 0
    assert machine.labels() == {}
    done = machine.run("--variant-switch", "pip", "install", "gpu")
    assert done.code == 0, done
    assert machine.labels() == {"gpu": "cu128"}
    assert names(machine) == {"always", "cudalib", "gpu", "other"}
