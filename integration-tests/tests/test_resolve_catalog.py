"""`variants resolve` with the catalogue, and what plain pip makes of its files and lock files."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.environments import PIPS, Environment, Environments, clean_environ
from support.index import Index
from support.wheels import Wheel

ENTRY = """\
catalog-version = "1"
[project]
name = "xgboost"
documentation = "https://docs.example/xgboost"
default-priorities.namespace = ["nvidia"]
[[variant]]
label = "cuda12"
local = ""
properties = ["nvidia :: cuda_version_lower_bound :: 12.0"]
[[variant]]
label = "null"
requires = ["xgboost-cpu=={version}"]
"""
GPU = """\
[[provider]]
namespace = "nvidia"
[provider.properties]
cuda_version_lower_bound = ["12.8", "12.0"]
"""


@pytest.fixture
def index(serve: Callable[[Index], Index]) -> Index:
    found = Index()
    for name, build in (("xgboost", "gpu"), ("xgboost-cpu", "cpu")):
        for version in ("3.1.0", "3.2.0"):
            files = {"xgboost/__init__.py": f"BUILD = '{build} {version}'\n"}
            found.add_wheel(Wheel(name, version, files=files))
    return serve(found)


@pytest.fixture
def pip(environments: Environments, tmp_path: Path) -> Environment:
    python = "{}.{}".format(*sys.version_info)
    return environments.plain(python, PIPS[-1]).copied(tmp_path / "environment")


@pytest.fixture
def resolve(index: Index, tmp_path: Path) -> Callable[..., str]:
    (tmp_path / "xgboost.toml").write_text(ENTRY)
    (tmp_path / "gpu.toml").write_text(GPU)
    (tmp_path / "cpu.toml").write_text("[[provider]]\nnamespace = 'nvidia'\n")

    def run(*arguments: str, code: int = 0) -> str:
        command = [Path(sys.executable).with_name("variants"), "resolve", *arguments]
        done = subprocess.run(
            [*command, "--variant-catalog", "./xgboost.toml", "-i", index.url],
            capture_output=True, text=True, cwd=tmp_path, timeout=120, check=False,
            env=clean_environ({"VARIANTS_CACHE_DIR": str(tmp_path / "cache")}),
        )  # fmt: skip
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr

    return run


def installed(pip: Environment) -> tuple[str, str]:
    """Return what pip lists of xgboost, and which build is imported."""
    listed = [line for line in pip.pip("freeze", "--all").out.split() if "xgboost" in line]
    done = pip.run("-c", "import xgboost; print(xgboost.BUILD)")
    return ", ".join(line.partition("@")[0] for line in listed), done.out.strip()


def test_downloads_are_one_distribution(
    resolve: Callable[..., str], pip: Environment, tmp_path: Path
) -> None:
    """C1: upgrades and the change of the build leave the module in place."""
    resolve("xgboost<3.2", "--platform", "cpu.toml", "--download", "old")
    resolve("xgboost", "--platform", "cpu.toml", "--download", "new")
    resolve("xgboost", "--platform", "gpu.toml", "--download", "gpu")
    (old,) = (path.name for path in (tmp_path / "old").iterdir())
    assert old == "xgboost-3.1.0-py3-none-any.whl"
    install = ("install", "--no-index", "--find-links")
    assert pip.pip(*install, str(tmp_path / "old"), "xgboost").code == 0
    assert pip.pip(*install, str(tmp_path / "new"), "-U", "xgboost").code == 0
    listed, build = installed(pip)
    assert (listed.strip(), build) == ("xgboost==3.2.0", "cpu 3.2.0")
    switch = (str(tmp_path / "gpu"), "--force-reinstall", "xgboost")
    assert pip.pip(*install, *switch).code == 0
    assert installed(pip)[1] == "gpu 3.2.0"
    assert pip.pip("uninstall", "-y", "xgboost").code == 0
    assert not [path for path in pip.site_packages.iterdir() if "xgboost" in path.name]


def test_a_lock_file_in_plain_pip(
    resolve: Callable[..., str], pip: Environment, index: Index, tmp_path: Path
) -> None:
    text = resolve("xgboost", "--platform", "cpu.toml", "-o", "pylock.toml")
    assert "published as xgboost-cpu" in text
    done = pip.pip("install", "-r", str(tmp_path / "pylock.toml"))
    assert done.code == 0, done
    listed, build = installed(pip)
    assert (listed.split("==")[0].strip(), build) == ("xgboost-cpu", "cpu 3.2.0")


def test_two_machines(resolve: Callable[..., str], tmp_path: Path) -> None:
    both = ("--platform", "cpu.toml", "--platform", "gpu.toml")
    assert "write one lock file for each target" in resolve(
        "xgboost", *both, "-o", "pylock.toml", code=1
    )
    said = resolve("xgboost", *both, "--download", "both", code=1)
    assert "use --download for one target at a time" in said
