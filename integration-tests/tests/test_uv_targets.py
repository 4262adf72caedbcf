"""What is installed is what fits, or what was asked for: wherever a command installs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

import pytest

from support.index import Index, served
from support.projects import CUDA_12_8, app_index
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


@pytest.mark.parametrize("target", ["--target", "settings"])
def test_pip_install_elsewhere(machine: Machine, index: Index, target: str) -> None:
    machine = machine.with_environ({"UV_DEFAULT_INDEX": index.url})
    there = machine.work / "there"
    options: tuple[str, ...] = (target, str(there), "--python", PYTHON)
    if target == "settings":
        machine.create_environment(PYTHON, there)
        (machine.work / "uv.toml").write_text(f'[pip]\npython = "{there.as_posix()}"\n')
        options = ()
    steps: tuple[tuple[dict[str, str], tuple[str, ...], str | None], ...] = (
        (NO_GPU, (), "null"),
        (CUDA_12_8, ("--variant", "app=cu126"), "cu126"),
        (CUDA_12_8, ("--no-variants",), None),
    )
    for environ, ours, label in steps:
        done = machine.with_environ(environ).run(*ours, "pip", "install", *options, "app")
        assert done.code == 0, (ours, done)
        found = [json.loads(path.read_text()) for path in there.rglob("*.dist-info/variant.json")]
        assert [next(iter(tree["variants"])) for tree in found] == ([label] if label else [])


@pytest.mark.everywhere
def test_tools(every_machine: Machine, index: Index) -> None:
    folder = every_machine.home / "tools"
    machine = every_machine.with_environ(
        {
            "UV_DEFAULT_INDEX": index.url,
            "UV_PYTHON": PYTHON,
            "UV_TOOL_DIR": str(folder),
            "UV_TOOL_BIN_DIR": str(every_machine.home / "bin"),
        }
    )
    gpu = machine.with_environ(CUDA_12_8)
    done = gpu.run("tool", "install", "tooled")
    assert done.code == 0, done
    assert "Variant cu128 for app 1.0" in done.err
    assert installed_labels(folder / "tooled") == {"app": "cu128"}
    # The machine has changed.
    done = machine.run("tool", "upgrade", "tooled")
    assert done.code == 0, done
    assert installed_labels(folder / "tooled") == {"app": "null"}
    done = gpu.run("tool", "run", "tooled")
    assert (done.code, done.out) == (0, "cu128\n"), done
    done = gpu.run("--no-variants", "tool", "upgrade", "--all")
    assert done.code == 0, done
    assert installed_labels(folder / "tooled") == {}
    assert "variant" not in (folder / "tooled" / "uv-receipt.toml").read_text()


@pytest.mark.everywhere
def test_scripts_and_what_is_added(every_machine: Machine, index: Index) -> None:
    machine = every_machine.with_environ({"UV_DEFAULT_INDEX": index.url, "UV_PYTHON": PYTHON})
    gpu = machine.with_environ(CUDA_12_8)
    script = machine.work / "script.py"
    script.write_text(
        '# /// script\n# requires-python = ">=3.10"\n# dependencies = ["app"]\n# ///\n'
        "import app\nprint(app.LABEL)\n"
    )
    added = ("--with", "app", "python", "-c", "import app; print(app.LABEL)")
    for there, ours, arguments, label in (
        (gpu, (), ("script.py",), "cu128"),
        (machine, (), ("script.py",), "null"),
        (gpu, ("--variant", "app=cu126"), ("script.py",), "cu126"),
        (gpu, (), added, "cu128"),
        (machine, (), added, "null"),
    ):
        done = there.run(*ours, "run", *arguments)
        assert (done.code, done.out) == (0, f"{label}\n"), (ours, done)


def test_a_project_is_switched_and_comes_back(machine: Machine, index: Index) -> None:
    machine = machine.with_environ({"UV_DEFAULT_INDEX": index.url, "UV_PYTHON": PYTHON})
    gpu = machine.with_environ(CUDA_12_8)
    project(machine.work, ["app"])
    lock = machine.work / "uv.lock"
    for ours, label in (
        ((), "cu128"),
        (("--variant", "app=cu126"), "cu126"),
        ((), "cu126"),  # the lock has it
        (("--no-variants",), None),
        (("--variant-platform", "native"), "cu128"),
    ):
        done = gpu.run(*ours, "sync")
        assert done.code == 0, (ours, done)
        assert machine.labels().get("app") == label, (ours, done)
        assert f"/.variant/{label}/" in lock.read_text() or label is None
    # What another variant depended on is gone.
    python = ("--python", str(machine.work / ".venv"))
    freeze = machine.plain("pip", "freeze", *python).out
    assert "for-cpu" not in freeze
    assert "for-gpu" in freeze
    # Plain uv has no such files; its environment is replaced by what the lock has.
    for name in ("app", "for-cu128"):
        assert machine.plain("pip", "uninstall", *python, name).code == 0
    assert machine.plain("pip", "install", *python, "app").code == 0
    done = gpu.run("sync", "--locked")
    assert done.code == 0, done
    assert machine.labels() == {"app": "cu128"}


def test_what_cannot_be_had_is_an_error(machine: Machine, index: Index) -> None:
    gpu = machine.with_environ({"UV_DEFAULT_INDEX": index.url, "UV_PYTHON": PYTHON, **CUDA_12_8})
    project(gpu.work, ["app"])
    assert gpu.run("lock").code == 0
    gpu.create_environment(PYTHON)
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


@pytest.mark.everywhere
def test_a_dry_run_says_why(every_machine: Machine, index: Index) -> None:
    machine = every_machine.with_environ({"UV_DEFAULT_INDEX": index.url, **CUDA_12_8})
    machine.create_environment(PYTHON)

    def said(*arguments: str) -> list[str]:
        done = machine.run(*arguments)
        assert done.code == 0, done
        return [line for line in done.err.splitlines() if "ariant" in line]

    command = ("pip", "install", "app")
    plan = said(*command, "--dry-run")
    assert plan == said(*command)
    assert plan[0].startswith("Variant cu128 for app 1.0: ")
    assert said(*command, "--dry-run") == []  # it is there
    assert said("--variant", "app=cu126", *command, "--dry-run") == [
        "Variant cu126 for app 1.0: asked for"
    ]
    done = machine.run("-v", *command, "--dry-run", "--reinstall")
    assert "Variants of app 1.0:\n  cu128  chosen" in done.err


@pytest.mark.everywhere
def test_one_cache_has_several_variants(every_machine: Machine, index: Index) -> None:
    """uv 0.5 and early 0.6 find wheels in their cache without looking at the build tag."""
    machine = every_machine.with_environ({"UV_DEFAULT_INDEX": index.url, **CUDA_12_8})
    for step, (environ, ours, label) in enumerate(
        (
            ({}, ("--variant", "app=cu126"), "cu126"),
            (NO_GPU, (), "null"),
            ({}, ("--variant", "app=cu126"), "cu126"),
        )
    ):
        there = machine.create_environment(PYTHON, machine.work / f"env{step}").path
        python = ("--python", str(there))
        done = machine.with_environ(environ).run(*ours, "pip", "install", *python, "app")
        assert done.code == 0, done
        assert installed_labels(there) == {"app": label}, (step, done)
    (kept,) = machine.home.rglob("uv-versions/*")  # of the program, asked once
    assert kept.read_text() in machine.uv.parent.name
    # What a lock has is not what this machine installed before.
    machine = machine.with_environ({"UV_PYTHON": PYTHON})
    project(machine.work, ["app"])
    assert machine.run("--variant", "app=cu126", "lock").code == 0
    done = machine.run("sync", "--frozen")
    assert done.code == 0, done
    assert machine.labels() == {"app": "cu126"}


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
