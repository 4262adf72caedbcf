"""The torch family after its publisher ended builds for CUDA 12: the same release in every client.

2.15 has no build for CUDA 12.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator

import pytest
from packaging.utils import canonicalize_name

from pep_variants.formats import toml
from support.environments import PIPS, Environment, Environments
from support.published_builds import Field, published, standing_in
from support.uvs import Machine
from support.wheels import Wheel

RELEASES = {
    "torch": ("2.13.0", "2.14.0", "2.15.0"),
    "torchvision": ("0.28.0", "0.29.0", "0.30.0"),
}
GPU = "--variant-platform=cuda=12.8,sm=9.0,cpu=zen4"
"""The machine; `test_torch_table` has every one."""

Client = Callable[[Field, list[str], Environments, Machine], "tuple[dict[str, str], str]"]


@pytest.fixture(scope="module")
def field() -> Iterator[Field]:
    with standing_in(published(**RELEASES)) as found:
        yield found


def pip(
    field: Field, options: list[str], environments: Environments, machine: Machine
) -> tuple[dict[str, str], str]:
    """Return versions and output of pip with the shim."""
    environment = environments.patched("{}.{}".format(*sys.version_info), PIPS[-1])
    report = machine.work / "report.json"
    options = [f"--report={report}", "-i", field.index.url, *options]
    done = environment.pip("install", "--dry-run", *options, *RELEASES)
    assert done.code == 0, done
    items = json.loads(report.read_text("utf-8"))["install"]
    noted = {item["metadata"]["name"] for item in items if "variant_version" in item}
    is_said = " rather than " in done.text or "to take it" in done.text
    assert noted == (set(RELEASES) if is_said else set())
    versions = (item["metadata"] for item in items)
    return {canonicalize_name(each["name"]): each["version"] for each in versions}, done.text


def uv(
    field: Field, options: list[str], _: Environments, machine: Machine
) -> tuple[dict[str, str], str]:
    """Return versions and output of ``uv-variants lock``."""
    (machine.work / "pyproject.toml").write_text(
        '[project]\nname = "app"\nversion = "1"\nrequires-python = ">=3.10"\n'
        f"dependencies = {json.dumps([*RELEASES])}\n[tool.uv]\n"
        "environments = [\"sys_platform == 'linux' and platform_machine == 'x86_64'\"]\n"
        f'[[tool.uv.index]]\nurl = "{field.index.url}"\ndefault = true\n'
    )
    done = machine.with_environ({"UV_PYTHON": sys.executable}).run(*options, "lock")
    assert done.code == 0, done
    packages = toml.loads((machine.work / "uv.lock").read_text("utf-8"))["package"]
    return {item["name"]: item["version"] for item in packages if "wheels" in item}, done.err


def uv_compile(
    field: Field, options: list[str], _: Environments, machine: Machine
) -> tuple[dict[str, str], str]:
    """Return versions and output of ``uv-variants pip compile`` with a requirements file."""
    (machine.work / "all.in").write_text("-r torch.in\ntorchvision  # beside it\n")
    (machine.work / "torch.in").write_text("torch; python_version >= '3'\n")
    asked = ["pip", "compile", "all.in", "--no-annotate", "--no-header", "--python", sys.executable]
    done = machine.run(*options, *asked, "--index-url", field.index.url)
    assert done.code == 0, done
    pins = (line.split(" ")[0].split("==") for line in done.out.splitlines() if "==" in line)
    return {name: version for name, version in pins if name in RELEASES}, done.err


@pytest.mark.parametrize("client", [pip, uv, uv_compile])
def test_the_newest_release_that_uses_the_accelerator(
    client: Client, field: Field, environments: Environments, machine: Machine
) -> None:
    options = ["--variant-catalog=default", *field.options, GPU]
    versions, output = client(field, options, environments, machine)
    assert versions == {"torch": "2.14.0+cu126", "torchvision": "0.29.0+cu126"}
    for taken in ("torch 2.14.0 (", "torchvision 0.29.0 ("):
        assert taken in output
    assert " rather than " in output


@pytest.mark.parametrize("client", [pip, uv])
def test_the_newest_release_all_the_same(
    client: Client, field: Field, environments: Environments, machine: Machine
) -> None:
    options = ["--variant-catalog=default", *field.options, GPU, "--variant-before-version=:none:"]
    versions, output = client(field, options, environments, machine)
    assert versions["torch"] == "2.15.0+cpu"
    assert "to take it, require torch==2.14.0" in output


@pytest.mark.parametrize("client", [pip, uv])
def test_a_release_that_is_yanked(
    client: Client, environments: Environments, machine: Machine
) -> None:
    """What PyPI says of a release is true of its builds on other indexes, too."""
    with standing_in(published(**RELEASES)) as found:
        for name, files in found.index.files.items():
            for filename in files:
                if filename.split("-")[1] == RELEASES[name][1]:
                    found.index.attributes[filename] = {"yanked": "unsafe"}
        options = ["--variant-catalog=default", *found.options, GPU]
        versions, _ = client(found, options, environments, machine)
    assert versions == {"torch": "2.13.0+cu126", "torchvision": "0.28.0+cu126"}


def test_tool_run(field: Field, machine: Machine) -> None:
    """The bound is for what the command names; of what only the tool requires a line says it."""
    main = "import importlib.metadata as m\ndef main(): print(m.version('torch'))\n"
    for name, requires in (("alone", ()), ("requiring", ("torch",))):
        entry_points = f"[console_scripts]\n{name} = {name}.cli:main\n"
        files = {f"{name}/cli.py": main, f"{name}-1.dist-info/entry_points.txt": entry_points}
        field.index.add_wheel(Wheel(name, "1", files=files, requires=requires))
    options = ["--variant-catalog=default", *field.options, GPU, "tool", "run"]
    user = machine.with_environ({"UV_DEFAULT_INDEX": field.index.url, "UV_PYTHON": sys.executable})
    done = user.run(*options, "--with", "torch", "alone")
    assert (done.code, done.out.strip()) == (0, "2.14.0+cu126"), done
    assert " rather than 2.15.0: " in done.err
    done = user.run(*options, "requiring")
    assert (done.code, done.out.strip()) == (0, "2.15.0+cpu"), done
    assert "to take it, require torch==2.14.0" in done.err


def test_an_upgrade_of_what_is_named(field: Field, fresh: Environment) -> None:
    """A newer build for CPUs is installed; what is not named stays, and what goes with that."""
    options = ["-i", field.index.url, "--variant-catalog=default", *field.options]
    for named, installed in (
        ("torchvision", "2.15.0+cpu 0.30.0+cpu"),
        ("torch torchvision", "2.14.0+cu126 0.29.0+cu126"),
    ):
        newest = ["torch==2.15.0", "torchvision==0.30.0", "--variant-platform=cpu-zen4"]
        assert fresh.pip("install", *options, *newest).code == 0
        done = fresh.pip("install", "-U", *options, GPU, *named.split())
        assert done.code == 0, done
        frozen = dict(line.split("==") for line in fresh.pip("freeze").out.splitlines())
        assert " ".join(frozen[name] for name in RELEASES) == installed, done
