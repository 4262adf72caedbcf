"""What `uv-variants` says beside uv: why nothing fits, and what was passed over or left out."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from support.environments import Result
from support.index import Index
from support.plugins import PLUGIN, acme_index
from support.projects import cuda
from support.uvs import Machine, project
from support.wheels import NVIDIA, Release, Wheel, metadata

PYTHON = sys.executable
Serve = Callable[[Index], Index]
DRIVER = "NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION"


def on(machine: Machine, index: Index) -> Machine:
    return machine.with_environ(
        {
            DRIVER: "12.8",
            "UV_DEFAULT_INDEX": index.url,
            "UV_PYTHON": PYTHON,
            "UV_TOOL_DIR": str(machine.home / "tools"),
            "UV_TOOL_BIN_DIR": str(machine.home / "bin"),
        }
    )


def install(machine: Machine, command: str, requirement: str = "app") -> Result:
    """Install with one of uv's commands."""
    if command.startswith("pip"):
        machine.create_environment(PYTHON)
        return machine.run(*command.split(), "--python", ".venv", requirement)
    if command == "tool":
        return machine.run("tool", "install", requirement)
    if command == "run":
        return machine.run("run", "--no-project", "--with", requirement, "python", "-c", "")
    project(machine.work, [] if command == "add" else [requirement])
    return machine.run(command, *([requirement] if command == "add" else []))


def app(*versions: tuple[str, str], plain: tuple[str, ...] = ()) -> Index:
    """Return an index with `app`: a variant for the CUDA version of each version, or none."""
    index = Index()
    scripts = "[console_scripts]\napp = app:main\n"
    for version, driver in versions:
        label = f"cu{driver.replace('.', '')}"
        tree = metadata(
            {label: {"nvidia": {"cuda_version_lower_bound": [driver]}}},
            namespaces=["nvidia"],
            providers={"nvidia": NVIDIA},
        )
        index.add_release(Release("app", version, tree), metadata_file=True)
    for version in plain:
        files = {f"app-{version}.dist-info/entry_points.txt": scripts}
        index.add_wheel(Wheel("app", version, files=files))
    return index


def test_metadata_that_cannot_be_read(machine: Machine, serve: Serve) -> None:
    index = app(("1.0", "12.8"), plain=("1.0",))
    index.add("app", "app-1.0-variants.json", b"{")
    done = install(on(machine, serve(index)), "lock")
    assert done.code == 0, done
    assert done.err.count("uv-variants: the variant wheels of app 1.0 are ignored: ") == 1, done


def test_a_plugin_that_is_not_allowed(machine: Machine, serve: Serve) -> None:
    done = install(on(machine, serve(acme_index(PLUGIN))), "tool")
    assert done.err.count("Namespace 'acme' is skipped") == 1, done
    assert "--variant-allow-provider 'acme-provider<2,>=1'" in done.err


@pytest.mark.parametrize("command", ["lock", "run"])
def test_nothing_fits(machine: Machine, serve: Serve, command: str) -> None:
    done = install(on(machine, serve(app(("1.0", "13.0"), ("0.9", "13.0")))), command)
    assert done.code != 0, done
    said = done.err[done.err.index("uv-variants: None of the variants of app 1.0 fits") :]
    assert "cu130  needs CUDA driver 13.0 or newer" in said, done
    assert done.err.count("None of the variants") == 1, done


@pytest.mark.parametrize("command", ["add", "run"])
def test_a_release_that_is_passed_over(machine: Machine, serve: Serve, command: str) -> None:
    index = app(("2.0", "13.0"), plain=("1.0",))
    machine = on(machine, serve(index))
    done = install(machine, command)
    assert done.code == 0, done
    assert (done.err.count("app 2.0 was passed over: none of its variants fits") == 1) == (
        command != "run"  # the output is the program's
    ), done


def test_only_what_was_asked_for_is_passed_over(machine: Machine, serve: Serve) -> None:
    machine = on(machine, serve(app(("2.0", "13.0"), plain=("1.0",))))
    done = install(machine, "pip install", "app<2")
    assert done.code == 0, done
    assert "uv-variants" not in done.err, done


def newer_without_a_build() -> Index:
    index = app(("1.0", "12.8"))
    index.add_release(Release("app", "2.0", cuda("13.0")), metadata_file=True)
    return index


@pytest.mark.parametrize("command", ["pip install", "pip install --dry-run", "add"])
def test_an_older_release_that_would_use_the_gpu(
    machine: Machine, serve: Serve, command: str
) -> None:
    machine = on(machine, serve(newer_without_a_build()))
    line = (
        "uv-variants: app 2.0: only the null variant fits this machine; 1.0 has variant cu128 "
        "(CUDA driver 12.8 or newer): to take it, require app==1.0\n"
    )
    done = install(machine, command)
    assert done.err.count(line) == 1
    if command == "pip install":
        more = " (-v shows every variant, --variant app=LABEL takes another one)\n"
        assert f"this one supports up to 12.8){more}" in done.err


def test_no_older_release_where_it_is_no_help(machine: Machine, serve: Serve) -> None:
    done = install(on(machine, serve(newer_without_a_build())), "pip install", "app>1")
    assert done.code == 0, done
    assert "to take it" not in done.err


def test_no_older_release_that_another_project_excludes(machine: Machine, serve: Serve) -> None:
    """K4."""
    index = newer_without_a_build()
    index.add_wheel(Wheel("user", "1.0", requires=("app>=2.0", "app>=3; extra == 'x'")))
    done = install(on(machine, serve(index)), "pip install", "user")
    assert done.code == 0, done
    assert "app 2.0" in done.err
    assert "to take it" not in done.err


def test_variants_that_are_built_against_others(machine: Machine, serve: Serve) -> None:
    index = Index()
    tree = metadata(
        {"torch29": {"abi_dependency": {"torch": ["2.9"]}}, "null": {}}, namespaces=[], providers={}
    )
    index.add_release(Release("app", "1.0", tree), metadata_file=True)
    done = install(on(machine, serve(index)), "pip install")
    assert done.code == 0, done
    assert done.err.count("uv-variants: left out torch29 of app 1.0: built against") == 1, done


def test_a_forced_variant_is_missed_in_the_version_that_was_asked_for(
    machine: Machine, serve: Serve
) -> None:
    machine = on(machine, serve(app(("2.0", "12.8"), ("1.0", "12.6"))))
    machine.create_environment(PYTHON)
    command = ("--variant", "app=other", "pip", "install", "--python", ".venv", "app==1.0")
    done = machine.run(*command)
    assert done.code != 0, done
    assert "uv-variants: app 1.0 has no variant 'other'" in done.err, done
    assert "there are: cu126" in done.err
