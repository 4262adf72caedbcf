"""What uv-variants installs is what fits, or what was asked for: wherever a command installs."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from support.environments import Environment
from support.index import Index, served
from support.projects import CUDA_12_8, DRIVER, app_index, by_value_index, cuda, gpu_index
from support.uvs import Machine, installed_labels, project
from support.wheels import NVIDIA, Release, Wheel, metadata

PYTHON = sys.executable
Serve = Callable[[Index], Index]
NO_GPU = dict.fromkeys(CUDA_12_8, "")


@pytest.fixture
def index(serve: Serve) -> Index:
    """An index with variants, a non-variant wheel, and a tool that depends on them."""
    index = app_index(metadata_file=True)
    index.add_wheel(Wheel("app", "1.0", requires=("always",)), metadata_file=True)
    files = {
        "tool.py": "def main():\n    import app\n    print(app.LABEL)\n",
        "tooled-1.0.dist-info/entry_points.txt": "[console_scripts]\ntooled = tool:main\n",
    }
    index.add_wheel(Wheel("tooled", "1.0", requires=("app",), files=files), metadata_file=True)
    return serve(index)


def with_gpu(machine: Machine, index: Index) -> Machine:
    return machine.with_environ({**CUDA_12_8, "UV_DEFAULT_INDEX": index.url, "UV_PYTHON": PYTHON})


@pytest.fixture
def gpu(machine: Machine, index: Index) -> Machine:
    """A machine with a GPU and an environment."""
    machine.create_environment(PYTHON)
    return with_gpu(machine, index)


@pytest.fixture
def every_gpu(every_machine: Machine, index: Index) -> Machine:
    """The same with every uv."""
    every_machine.create_environment(PYTHON)
    return with_gpu(every_machine, index)


def names(machine: Machine) -> set[str]:
    done = machine.plain("pip", "freeze", "--python", str(machine.work / ".venv"))
    return {line.split("==")[0] for line in done.out.splitlines()}


@pytest.mark.everywhere
def test_it_takes_the_variant_that_fits(every_gpu: Machine) -> None:
    def said(*arguments: str) -> list[str]:
        done = every_gpu.run(*arguments)
        assert done.code == 0, done
        return [line for line in done.err.splitlines() if "ariant" in line or "+ app" in line]

    command = ("pip", "install", "--python", ".venv", "app")
    plan = said(*command, "--dry-run")
    assert every_gpu.labels() == {}
    assert said(*command) == plan
    assert plan[0] == " + app==1.0"
    assert plan[1].startswith("Variant cu128 for app 1.0: CUDA driver 12.8 or newer")
    assert every_gpu.labels() == {"app": "cu128"}
    assert names(every_gpu) == {"always", "app", "for-128", "for-cu128", "for-gpu"}
    check = every_gpu.run("pip", "check", "--python", ".venv")
    assert check.code == 0, check
    # What is there and fits is left alone, and not spoken of again.
    assert said(*command) == said(*command, "--dry-run") == []
    (asked,) = (
        line
        for line in said("--variant", "app=cu126", *command, "--dry-run")
        if line.startswith("Variant")
    )
    assert asked == "Variant cu126 for app 1.0: asked for"
    done = every_gpu.run("-v", *command, "--dry-run", "--reinstall")
    table = done.err[done.err.index("Variants of app 1.0:") :].splitlines()[1:6]
    assert table.pop(1).split() == "nvidia :: cuda_version_lower_bound :: 12.8".split()
    assert [line.split()[:2] for line in table] == [
        ["cu128", "chosen"],
        ["cu126", "compatible"],
        ["null", "compatible"],
        ["cu130", "rejected"],
    ]
    assert "needs CUDA driver 13.0 or newer, this one supports up to 12.8" in table[3]


@pytest.mark.everywhere
def test_one_cache_has_several_variants(every_machine: Machine, index: Index) -> None:
    """uv 0.5 and early 0.6 find wheels in their cache without looking at the build tag.

    The environment is that of a file of settings; the corpus installs with ``--target``.
    """
    machine = every_machine.with_environ({"UV_DEFAULT_INDEX": index.url, **CUDA_12_8})
    forced = ("--variant", "app=cu126")
    steps: tuple[tuple[dict[str, str], tuple[str, ...], dict[str, str]], ...] = (
        ({}, forced, {"app": "cu126"}),
        (NO_GPU, (), {"app": "null"}),
        ({}, forced, {"app": "cu126"}),
        ({}, ("--no-variants",), {}),
    )
    for step, (environ, ours, labels) in enumerate(steps):
        there = machine.create_environment(PYTHON, machine.work / f"env{step}").path
        (machine.work / "uv.toml").write_text(f'[pip]\npython = "{there.as_posix()}"\n')
        done = machine.with_environ(environ).run(*ours, "pip", "install", "app")
        assert done.code == 0, done
        assert installed_labels(there) == labels, (step, done)
    (kept,) = machine.home.rglob("uv-versions/*")  # of the program, asked once
    assert kept.read_text() in machine.uv.parent.name
    # What a lock has is not what this machine installed before.
    machine = machine.with_environ({"UV_PYTHON": PYTHON})
    project(machine.work, ["app"])
    assert machine.run(*forced, "lock").code == 0
    done = machine.run("sync", "--frozen")
    assert done.code == 0, done
    assert machine.labels() == {"app": "cu126"}


@pytest.mark.everywhere
def test_tools(every_machine: Machine, index: Index) -> None:
    folder = every_machine.home / "tools"
    more = {"UV_TOOL_DIR": str(folder), "UV_TOOL_BIN_DIR": str(every_machine.home / "bin")}
    gpu = with_gpu(every_machine, index).with_environ(more)
    done = gpu.run("tool", "install", "tooled")
    assert done.code == 0, done
    assert "Variant cu128 for app 1.0" in done.err
    assert installed_labels(folder / "tooled") == {"app": "cu128"}
    # A driver that is merely invisible takes nothing away; one that is too old does.
    hidden = gpu.with_environ({**NO_GPU, "container": "docker"})
    done = hidden.run("tool", "upgrade", "tooled")
    assert done.code == 0, done
    assert installed_labels(folder / "tooled") == {"app": "cu128"}
    assert "app 1.0 (cu128) stays as it is, though nothing that it runs on is seen" in done.err
    done = gpu.with_environ({DRIVER: "12.0"}).run("tool", "upgrade", "tooled")
    assert done.code == 0, done
    assert installed_labels(folder / "tooled") == {"app": "null"}
    done = gpu.run("tool", "run", "tooled")
    assert (done.code, done.out) == (0, "cu128\n"), done
    done = gpu.run("--no-variants", "tool", "upgrade", "--all")
    assert done.code == 0, done
    assert installed_labels(folder / "tooled") == {}
    assert "variant" not in (folder / "tooled" / "uv-receipt.toml").read_text()


@pytest.mark.everywhere
def test_scripts_and_what_is_added(every_gpu: Machine) -> None:
    """V4: they take what fits, as uv resolves them anew; the lock of the project is another."""
    gpu, machine = every_gpu, every_gpu.with_environ(NO_GPU)
    project(machine.work, ["app"])
    assert gpu.run("--variant", "app=cu126", "sync").code == 0
    assert gpu.labels() == {"app": "cu126"}
    script = machine.work / "script.py"
    script.write_text(
        '# /// script\n# requires-python = ">=3.10"\n# dependencies = ["app"]\n# ///\n'
        "import app\nprint(app.LABEL)\n"
    )
    added = ("--no-project", "--with", "app", "python", "-c", "import app; print(app.LABEL)")
    for there, ours, arguments, label in (
        (gpu, (), ("script.py",), "cu128"),
        (machine, (), ("script.py",), "null"),
        (gpu, ("--variant", "app=cu126"), ("script.py",), "cu126"),
        (gpu, (), added, "cu128"),
        (machine, (), added, "null"),
        (gpu, ("--variant", "app=cu128"), added, "cu128"),
    ):
        done = there.run(*ours, "run", *arguments)
        assert (done.code, done.out) == (0, f"{label}\n"), (ours, done)


def test_a_project_is_switched_and_comes_back(gpu: Machine) -> None:
    project(gpu.work, ["app"])
    lock = gpu.work / "uv.lock"
    for ours, label in (
        ((), "cu128"),
        (("--variant", "app=cu126"), "cu126"),
        ((), "cu126"),  # the lock has it
        (("--no-variants",), None),
        (("--variant-platform", "native"), "cu128"),
    ):
        done = gpu.run(*ours, "sync")
        assert done.code == 0, (ours, done)
        assert gpu.labels().get("app") == label, (ours, done)
        assert f"/.variant/{label}/" in lock.read_text() or label is None
    # What another variant depended on is gone.
    python = ("--python", str(gpu.work / ".venv"))
    freeze = gpu.plain("pip", "freeze", *python).out
    assert "for-cpu" not in freeze
    assert "for-gpu" in freeze
    # Plain uv has no such files; its environment is replaced by what the lock has.
    for name in ("app", "for-cu128"):
        assert gpu.plain("pip", "uninstall", *python, name).code == 0
    assert gpu.plain("pip", "install", *python, "app").code == 0
    done = gpu.run("sync", "--locked")
    assert done.code == 0, done
    assert gpu.labels() == {"app": "cu128"}


def test_what_cannot_be_had_is_an_error(gpu: Machine) -> None:
    project(gpu.work, ["app"])
    assert gpu.run("lock").code == 0
    for ours, arguments, said in (
        (("--variant", "app=cu130"), ("pip", "install", "app"), "does not fit"),
        (("--variant", "always=cu128"), ("pip", "install", "always"), "has no variants"),
        (("--variant", "app=cu126"), ("sync", "--frozen"), "--frozen or --locked keeps it"),
        (("--no-variants",), ("sync", "--locked"), "--frozen or --locked keeps it"),
    ):
        done = gpu.run(*ours, *arguments)
        assert done.code == 2, done
        assert said in done.err
        assert len(done.err.splitlines()) == 1
        assert gpu.labels() == {}


def test_a_dry_run_is_about_the_versions_that_uv_takes(machine: Machine) -> None:
    index = app_index(metadata_file=True)
    index.add_wheel(Wheel("app", "2.0"), metadata_file=True)
    newer = metadata({"null": {}}, namespaces=["nvidia"], providers={"nvidia": NVIDIA})
    index.add_release(Release("app", "3.0", newer), metadata_file=True)
    index.add_wheel(Wheel("other", "1.0", requires=("app<2",)), metadata_file=True)
    with served(index):
        gpu = machine.with_environ({"UV_DEFAULT_INDEX": index.url, **CUDA_12_8})
        gpu.create_environment(PYTHON)
        done = gpu.run("pip", "install", "--dry-run", "app", "other")
    assert done.code == 0, done
    assert " + app==1.0" in done.err
    said = [line for line in done.err.splitlines() if "ariant" in line]
    assert [line.partition(":")[0] for line in said] == ["Variant cu128 for app 1.0"]


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


def test_options_of_variables_and_files(gpu: Machine) -> None:
    install = ("pip", "install", "--python", ".venv", "app")
    assert gpu.with_environ({"VARIANTS_EXCLUDE": "nvidia"}).run(*install).code == 0
    assert gpu.labels() == {"app": "null"}
    (gpu.work / "variants.toml").write_text('variant = ["app=cu126"]\n')
    done = gpu.run("--variant-coherent", "nvidia", *install)
    assert done.code == 0, done
    assert "--variant-coherent has no effect with uv" in done.err
    assert gpu.labels() == {"app": "cu126"}
    done = gpu.run("--variants", *install)
    assert done.code == 2
    assert "--variants is not an option" in done.err


def test_labels_in_requirements_files(gpu: Machine) -> None:
    """Comments that other tools pass over, in files of requirements and constraints."""
    (gpu.work / "r.txt").write_text("# --variant app=cu126\napp==1.0\n")
    (gpu.work / "c.txt").write_text("-r r.txt\n")
    command = ("pip", "install", "--python", ".venv", "--reinstall")
    for words in (("-r", "r.txt"), ("app", "-c", "c.txt")):
        assert gpu.run(*command, *words).code == 0
        assert gpu.labels() == {"app": "cu126"}
    assert gpu.run("--variant", "app=cu128", *command, "-r", "r.txt").code == 0
    assert gpu.labels() == {"app": "cu128"}
    (gpu.work / "r.txt").write_text("app==1.0  # --variant app=cu99\n")
    done = gpu.run(*command, "-r", "r.txt")
    assert done.code, done
    assert "cu99" in done.err
    compiled = ("pip", "compile", "-q", "r.in", "-o", "out.txt")
    (gpu.work / "r.in").write_text("# --variant app=cu126\napp==1.0\n")
    assert gpu.run(*compiled).code == 0
    assert "for-gpu==1.0" in (gpu.work / "out.txt").read_text()


@pytest.mark.everywhere
def test_variant_markers_without_variants(every_machine: Machine, serve: Serve) -> None:
    """A lock has the hash of the wheel that is served; the corpus has the rest."""
    index = app_index(metadata_file=True)
    requires = ("always", "for-gpu; 'nvidia' in variant_namespaces", "for-cpu; variant_label == ''")
    index.add_wheel(Wheel("plain", "1.0", requires=requires), metadata_file=True)
    machine = with_gpu(every_machine, serve(index))
    project(machine.work, ["plain"])
    done = machine.run("sync")
    assert done.code == 0, done
    lock = (machine.work / "uv.lock").read_text()
    assert re.search(r'plain-1.0-py3-none-any.whl", hash = "sha256:', lock), lock
    assert names(machine) == {"always", "for-cpu", "plain"}
    assert machine.run("pip", "check", "--python", ".venv").code == 0


@pytest.mark.everywhere
def test_given_hashes(every_machine: Machine, serve: Serve) -> None:
    """Unchanged bytes where METADATA has no variant markers, which no uv reads; else a line."""
    index = Index()
    index.add_wheel(Wheel("always", "1.0"))
    release = Release("gpu", "1.0", cuda("12.6", "12.8"))
    index.add("gpu", release.metadata_filename, json.dumps(release.metadata).encode())
    marked = ("always; variant_label == 'cu128'",)
    for wheel in release.wheels():
        index.add_wheel(replace(wheel, requires=marked) if wheel.label == "cu128" else wheel)
    machine = with_gpu(every_machine, serve(index)).with_environ({"UV_PYTHON": ""})
    machine.create_environment(PYTHON)

    def lines(*labels: str) -> str:
        named = [f"gpu-1.0-py3-none-any-{label}.whl" for label in labels]
        hashes = [f"--hash=sha256:{sha256(index.files['gpu'][name])}" for name in named]
        own = f"--hash=sha256:{sha256(index.files['always']['always-1.0-py3-none-any.whl'])}"
        return f"gpu==1.0 {' '.join(hashes)}\nalways==1.0 {own}\n"

    requirements = machine.work / "r.txt"
    for labels in (["null"], ["cu126"], ["cu126", "null"]):
        requirements.write_text(lines(*labels))
        for words in (["sync", "r.txt"], ["install", "--require-hashes", "-r", "r.txt"]):
            done = machine.run("pip", *words)
            assert (done.code, machine.labels()) == (0, {"gpu": labels[0]}), done
    before = machine.labels()
    # Not the next best: its hash is given for machines that cannot use the best one.
    requirements.write_text(lines("cu128", "cu126", "null"))
    for _ in range(2):  # the second time uv would have what it needs in its cache
        for words in (["sync", "r.txt"], ["install", "-r", "r.txt"], ["install", "-cr.txt", "gpu"]):
            done = machine.run("pip", *words, "--reinstall")
            assert (done.code != 0, machine.labels()) == (True, before), done
            line = "gpu-1.0-py3-none-any-cu128.whl cannot be installed with its own hash, which is"
            assert line in done.err, done
        # What the line names.
        (machine.work / "r.in").write_text("gpu\n")
        done = machine.run("pip", "compile", "--generate-hashes", "r.in", "-o", "new.txt")
        assert done.code == 0, done
        done = machine.run("pip", "install", "--require-hashes", "--reinstall", "-r", "new.txt")
        assert (done.code, machine.labels()) == (0, {"gpu": "cu128"}), done
        assert machine.plain("pip", "check").code == 0
        before = machine.labels()
    # Hashes that uv does not compare.
    done = machine.run("pip", "install", "--reinstall", "--no-verify-hashes", "-r", "r.txt")
    assert (done.code, machine.labels()) == (0, {"gpu": "cu128"}), done
    assert machine.run("pip", "compile", "r.txt").code == 0


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_what_was_decided_stays(every_machine: Machine, patched: Environment, serve: Serve) -> None:
    """Where the GPU is not in sight, and for uv and pip without us; installed by uv or by pip."""
    index = serve(by_value_index())
    machine = with_gpu(every_machine, index)
    of_uv = machine.create_environment(PYTHON)
    done = machine.run("pip", "install", "--python", ".venv", "app")
    assert done.code == 0, done
    of_pip = patched.copied(machine.work / "environment")
    done = of_pip.pip("install", "-i", index.url, "app", env=CUDA_12_8)
    assert done.code == 0, done
    machine = machine.with_environ(NO_GPU)
    for environment in (of_uv, of_pip):
        for program in (machine.program, machine.uv):
            where = ("--python", environment.python)
            check = machine.execute(program, "pip", "check", *where)
            assert check.code == 0, check
            done = machine.execute(program, "pip", "install", "--dry-run", *where, "other")
            assert " + other==1.0\n" in done.err, done
            assert "for-" not in done.text.replace("for-9", ""), done
        found = installed_labels(environment.path)
        assert found == {"app": "many"}, found


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


@pytest.mark.everywhere
@pytest.mark.parametrize("how", ["variable", "file"])
def test_a_directory_of_find_links(every_machine: Machine, how: str) -> None:
    write_wheels(every_machine.work / "wheels")
    machine = every_machine.with_environ(CUDA_12_8)
    machine.create_environment(PYTHON)
    if how == "variable":
        machine = machine.with_environ({"UV_FIND_LINKS": "wheels"})
    else:
        (machine.work / "uv.toml").write_text('find-links = ["wheels"]\n')
    done = machine.run("pip", "install", "--no-index", "app")
    assert done.code == 0, done
    assert machine.labels() == {"app": "cu128"}


@pytest.mark.parametrize("places", [(".",), (".", "wheels"), ("wheels", ".")])
def test_the_working_directory_as_find_links(machine: Machine, places: tuple[str, ...]) -> None:
    write_wheels(machine.work)
    if len(places) > 1:
        write_wheels(machine.work / "wheels")
        (machine.work / "app-1.0-py3-none-any-cu128.whl").unlink()
    machine = machine.with_environ(CUDA_12_8)
    machine.create_environment(PYTHON)
    options = [part for place in places for part in ("--find-links", place)]
    done = machine.run("pip", "install", "--no-index", *options, "app")
    assert done.code == 0, done
    assert machine.labels() == {"app": "cu128"}


def write_wheels(folder: Path) -> None:
    """Write the files of the usual index into *folder*."""
    folder.mkdir(exist_ok=True)
    for files in app_index().files.values():
        for name, data in files.items():
            (folder / name).write_bytes(data)


def test_a_lock_of_a_directory(machine: Machine) -> None:
    machine = machine.with_environ({**CUDA_12_8, "UV_PYTHON": PYTHON})
    project(machine.work, ["app"], '[tool.uv]\nno-index = true\nfind-links = ["wheels"]\n')
    write_wheels(machine.work / "wheels")
    for command in (("sync",), ("sync", "--locked")):
        done = machine.run(*command)
        assert done.code == 0, done
    assert machine.labels() == {"app": "cu128"}
    lock = (machine.work / "uv.lock").read_text()
    assert '"http://find-links.localhost/wheels/.variant/cu128/app-1.0-0_cu128-' in lock
    assert str(machine.work) not in lock


def test_older_names_of_the_null_variant(machine: Machine, serve: Serve) -> None:
    """What is installed is the same for the installer, the lock and the doctor."""
    schema = "https://variants-schema.wheelnext.dev/v0.0.2.json"
    found = metadata({"00000000": {}}, namespaces=["nvidia"], providers={"nvidia": NVIDIA})
    own = {**found, "$schema": schema}
    index = Index()
    wheel = Wheel("app", "1.0", "00000000", variant_json=own)
    index.add_wheel(wheel)
    index.add("app", "app-1.0-variants.json", json.dumps(own).encode())
    machine = machine.with_environ({"UV_DEFAULT_INDEX": serve(index).url, "UV_PYTHON": PYTHON})
    project(machine.work, ["app"])
    for command in (
        ("sync",),
        ("sync", "--frozen"),
        ("pip", "install", "--python", ".venv", "app"),
    ):
        done = machine.run(*command)
        assert done.code == 0, done
        assert machine.labels() == {"app": "00000000"}
        assert ("app" in done.err) is (command == ("sync",)), done
    done = machine.run("doctor")
    assert done.out.count("app 1.0  null: up to date") == 2, done
