"""The first minute: what is said where the catalogue is off, and what turns it on.

What is missed on which machine is tested beside `variants_catalog.missed_builds`.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from support.environments import Result, clean_environ
from support.index import index_of
from support.pip_commands import dry_run, installs
from support.projects import DRIVER, GPU, cuda
from support.published_builds import published, standing_in
from support.uvs import Machine, project
from support.wheels import Release, Wheel

OLDER = {DRIVER: "12.8", GPU: "9.0"}
NEWER = {DRIVER: "13.0", GPU: "9.0"}
NONE = {DRIVER: "11.0"}
VERSIONS = {"torch": ("2.14.0", "2.15.0"), "jax": ("0.10.2",), "onnxruntime": ("1.26.0", "1.32.0")}


@pytest.fixture
def field():
    """PyPI, and the places of the publishers."""
    with standing_in(published(**VERSIONS)) as found:
        found.index.add_wheel(Wheel("app", "1.0", requires=("torch",)))
        yield found


@pytest.fixture
def environ(field, tmp_path):
    """The variables of a person who has just installed the shim."""
    return {
        "PIP_INDEX_URL": field.index.url,
        "PIP_CONFIG_FILE": str(tmp_path / "pip.conf"),
        "VARIANTS_CACHE_DIR": str(tmp_path / "cache"),
        "VARIANTS_CATALOG_MIRROR": " ".join(field.mirrors),
    }


def lines(done: Result) -> list[str]:
    """Return the lines about the catalogue."""
    assert done.code == 0, done
    return [line for line in done.text.splitlines() if "takes a build that does" in line]


@pytest.mark.everywhere
def test_pip_says_what_is_missed(fresh, field, environ):
    """Once a day, without a request of its own; what it says to type works."""

    def pip(*words: str, **machine: str) -> Result:
        return fresh.pip(*words, env={**environ, **machine})

    for machine in (NEWER, NONE):
        assert lines(pip("install", "--dry-run", "torch", **machine)) == []
    install = ("install", "--dry-run")
    chosen = (
        ("--quiet", "torch"), ("--no-variants", "torch"), ("torch>=2.15",), ("torch===2.15.0",),
        ("--no-index", "--find-links", field.index.url + "torch/", "torch"),
    )  # fmt: skip
    for words in chosen:
        assert lines(pip(*install, *words, **OLDER)) == [], words
    field.index.requests.clear()
    (line,) = lines(pip(*install, "app", **OLDER))
    assert {each.split("/")[2] for each in field.index.requests} == {"app", "torch"}
    expected = (
        "torch 2.15.0 does not run on the NVIDIA GPU that is here (needs CUDA driver 13.0 or "
        "newer, this one supports up to 12.8): "
    )
    assert line.startswith(expected)
    assert line.endswith(", takes a build that does (cuda12.6 of another release)")
    assert lines(pip(*install, "torch", **OLDER)) == []  # it was said
    (idle,) = lines(pip(*install, "torch", "jax", **OLDER))
    assert idle.startswith("jax 0.10.2 does not use the NVIDIA GPU that is here: ")
    assert " install --variant-switch jax torch, " in idle
    # Other commands have no option to switch.
    files = str(fresh.path / "files")
    (line,) = lines(pip("download", "--dest", files, "torch==2.14.0", **OLDER))
    assert line.endswith("default, then the same command, takes a build that does (cuda12.6)")
    # What is installed already counts as well.
    assert lines(pip("install", "onnxruntime==1.26.0", **NONE)) == []
    (line,) = lines(pip("install", "onnxruntime", **OLDER))
    assert line.endswith("(cuda12)")
    typed = re.search(": .* -m [a-z_]+ (config .*), then .* -m [a-z_]+ (.*), takes", line)
    assert typed is not None, line
    for command in typed.groups():
        assert pip(*shlex.split(command), **OLDER).code == 0
    done = pip("list", **OLDER)
    assert re.search("^onnxruntime +1.26.0 +cuda12$", done.out, re.MULTILINE), done
    assert lines(pip("install", "torch", **OLDER)) == []


def test_uv_says_what_is_missed(machine: Machine, field, environ, tmp_path):
    """The same in an environment, in a lock, and before anything is installed."""
    environ["UV_DEFAULT_INDEX"] = field.index.url

    def uv(*words: str, cwd: Path | None = None, **facts: str) -> Result:
        return machine.with_environ({**environ, **facts}).run(*words, cwd=cwd)

    machine.create_environment(sys.executable)
    for words, facts in (
        (("pip", "install", "torch"), NONE),
        (("pip", "install", "torch"), NEWER),
        (("pip", "install", "-q", "torch"), OLDER),
        (("pip", "install", "torch>=2.15"), OLDER),
        (("--no-variants", "pip", "install", "torch"), OLDER),
        (("pip", "install", "--torch-backend", "cpu", "torch"), OLDER),
    ):
        assert lines(uv(*words, **facts)) == [], words
    (line,) = lines(uv("pip", "install", "torch", **OLDER))
    assert line == (
        "uv-variants: torch 2.15.0 does not run on the NVIDIA GPU that is here (needs CUDA driver "
        "13.0 or newer, this one supports up to 12.8): uv-variants catalog enable, then "
        "uv-variants --variant-switch pip install torch, takes a build that does (cuda12.6 of "
        "another release)"
    )
    assert lines(uv("pip", "install", "torch", **OLDER)) == []
    (line,) = lines(uv("pip", "install", "--dry-run", "jax", **OLDER))
    assert (
        ": uv-variants catalog enable, then uv-variants --variant-switch pip install jax," in line
    )
    # A lock, what it takes from then on, and a project to which torch was added.
    (machine.work / "locked").mkdir()
    folder = project(machine.work / "locked", ["onnxruntime"])
    (line,) = lines(uv("lock", cwd=folder, **OLDER))
    added = project(machine.work / "added", [])
    (other,) = lines(uv("add", "torch>=2", cwd=added, **{**OLDER, DRIVER: "12.4"}))
    for command in typed(line):
        assert uv(*command, cwd=folder, **OLDER).code == 0
    assert 'version = "1.26.0"' in (folder / "uv.lock").read_text()
    for command in typed(other)[1:]:
        assert uv(*command, cwd=added, **OLDER).code == 0
    assert 'version = "2.14.0+cu126"' in (added / "uv.lock").read_text()


def test_resolve_says_what_is_missed(environments, field, environ, tmp_path):
    """For every target; nothing where the user has chosen."""
    programs = Path(environments.programs().python).parent

    def resolve(*words: str) -> Result:
        command = [str(programs / "variants"), *words]
        done = subprocess.run(
            command, env=clean_environ({**environ, "HOME": str(tmp_path)}), cwd=tmp_path,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        return Result(done.returncode, done.stdout, done.stderr)

    machine = ("--platform", "cuda=12.8,sm=9.0,cpu=zen4")
    for words in (
        ("torch", "--platform", "cpu-zen4"),
        ("torch>=2.15", *machine),
        ("torch", "--no-variants", *machine),
    ):
        assert lines(resolve("resolve", *words)) == [], words
    (line,) = lines(resolve("resolve", "app", "--platform", "cpu-zen4", *machine))
    assert line.startswith("warning: torch 2.15.0 does not run on the NVIDIA GPU that is here")
    assert ": variants catalog enable, then the same command, takes" in line
    assert lines(resolve("resolve", "app", *machine)) == []
    (line,) = lines(resolve("resolve", "jax", *machine))
    assert resolve("catalog", "enable").code == 0
    done = resolve("resolve", "app", "jax", *machine)
    assert lines(done) == []
    for row in ("torch +2.14.0[+]cu126 +cuda12.6", "jax +0.10.2 +cuda12"):
        assert re.search(f"^{row} ", done.out, re.MULTILINE), done


def typed(line: str) -> list[list[str]]:
    """Return the words of the commands that *line* says to type, without the program."""
    found = re.search(": [^:]*$", line)
    assert found is not None
    commands = re.split(", then |, ", found[0][2:].rpartition(", takes ")[0])
    return [shlex.split(command)[1:] for command in commands]


@pytest.mark.matrix
def test_other_pips_ignore_the_setting(plain, field, environ):
    """Those of an environment without the shim, with the same pip.conf."""
    assert plain.pip("config", "set", "global.variant-catalog", "default", env=environ).code == 0
    done = plain.pip("install", "--dry-run", "jax", env={**environ, **OLDER})
    assert (done.code, done.err) == (0, ""), done
    assert done.out.endswith("Would install jax-0.10.2\n")
    assert plain.pip("list", env=environ).code == 0


def test_a_variant_of_an_own_index_uses_the_gpu(patched, serve, tmp_path):
    index = serve(index_of([Release("torch", "2.9.0", cuda("12.8"))]))
    done = dry_run(patched, index, "torch", VARIANTS_CACHE_DIR=str(tmp_path))
    installs(done, "torch-2.9.0-cu128")
    assert lines(done) == []
