"""PDM with its own provider wrapped, for real: variants are locked and installed.

PDM comes from the package index, once per run.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pep_variants._formats import toml
from support.environments import (
    Environment,
    Environments,
    built_wheel,
    once,
    uv_command,
)
from support.index import Index
from support.isolation import outside
from support.projects import CUDA_12_8, app_index
from support.wheels import Wheel

PDM = "2.29.2"


@pytest.fixture(scope="module")
def pdms(environments: Environments) -> tuple[Environment, Environment]:
    """Two environments with PDM: with the plugin, and without it."""

    def create(path: Path, *wheels: str) -> None:
        uv = uv_command()
        install = ["install", "--quiet", "--compile-bytecode", "--python", str(path)]
        for command in (
            ["venv", "--quiet", "--python", sys.executable, str(path)],
            ["pip", *install, f"pdm[locked]=={PDM}", *wheels],
        ):
            done = subprocess.run(
                [*uv, *command], capture_output=True, text=True, env=outside(), check=False
            )
            if done.returncode:
                pytest.skip(f"PDM cannot be had, no network? {done.stderr.strip()[-300:]}")

    def create_with_plugin(path: Path) -> None:
        sources = ("packages/pep-variants", "resolver-ext", "integration-tests/tests/pdm_variants")
        create(path, *(str(wheel_of(environments, source)) for source in sources))

    return (
        Environment(once(environments.folder / "pdm-variants", create_with_plugin)),
        Environment(once(environments.folder / "pdm-plain", create)),
    )


def wheel_of(environments: Environments, source: str) -> Path:
    folder = environments.folder / f"wheel-of-{Path(source).name}"
    (wheel,) = once(folder, lambda path: built_wheel(source, path)).glob("*.whl")
    return wheel


class Project:
    """A folder with a pyproject.toml and an environment of its own."""

    def __init__(self, path: Path, index: Index, *requirements: str) -> None:
        self.path = path
        path.mkdir()
        listed = ", ".join(f'"{requirement}"' for requirement in requirements)
        (path / "pyproject.toml").write_text(
            f'[project]\nname = "wanting"\nversion = "1"\nrequires-python = ">=3.10"\n'
            f"dependencies = [{listed}]\n[tool.pdm]\ndistribution = false\n"
            f'[[tool.pdm.source]]\nname = "pypi"\nurl = "{index.url}"\nverify_ssl = false\n'
        )
        venv = [sys.executable, "-m", "venv", "--without-pip", str(path / ".venv")]
        subprocess.run(venv, check=True)

    def pdm(self, environment: Environment, *args: str, **env: str):
        own = {
            "PDM_CACHE_DIR": str(self.path / "cache"),
            "PDM_CHECK_UPDATE": "0",
            "PDM_LOG_DIR": str(self.path / "logs"),
            "PDM_IGNORE_ACTIVE_VENV": "1",
            **env,
        }
        done = environment.run("-m", "pdm", *args, env=own, cwd=self.path)
        assert done.code == 0, str(done)
        return done

    @property
    def locked(self) -> dict[str, list[str]]:
        """Files by project, as the lock file has them."""
        packages = toml.read_toml((self.path / "pdm.lock").read_text())["package"]
        return {item["name"]: [file["file"] for file in item["files"]] for item in packages}

    @property
    def installed(self) -> dict[str, str]:
        """What the installed modules say which variant they are of."""
        folder = Environment(self.path / ".venv").site_packages
        files = folder.glob("*/__init__.py")
        return {file.parent.name: file.read_text().partition("=")[2].strip() for file in files}


def test_variants_are_locked_and_installed(pdms, serve, tmp_path):
    index = serve(app_index())
    project = Project(tmp_path / "project", index, "app")
    project.pdm(pdms[0], "lock", **CUDA_12_8)
    assert project.locked == {
        "app": ["app-1.0-py3-none-any-cu128.whl"],
        **{
            name: [f"{name.replace('-', '_')}-1.0-py3-none-any.whl"]
            for name in ("always", "for-gpu", "for-cu128", "for-128")
        },
    }
    project.pdm(pdms[0], "install", "--frozen-lockfile", **CUDA_12_8)
    assert project.installed["app"] == "'cu128'"
    assert {"always", "for_gpu", "for_cu128", "for_128"} < set(project.installed)


def test_without_variants_the_lock_file_has_the_same_bytes(pdms, serve, tmp_path):
    index = Index()
    for version in ("1.0", "1.1", "2.0"):
        index.add_wheel(Wheel("one", version, requires=("two[x]<2; python_version >= '3'",)))
        extra = ("three; extra == 'x'",)
        index.add_wheel(Wheel("two", version, requires=extra, extras=("x",)))
        index.add_wheel(Wheel("three", version, tag="py2.py3-none-any"))
        index.add_wheel(Wheel("three", version))
    serve(index)
    locks = []
    for number, environment in enumerate(pdms):
        project = Project(tmp_path / f"project{number}", index, "one", "three!=2.0")
        project.pdm(environment, "lock")
        locks.append((project.path / "pdm.lock").read_bytes())
    assert locks[0] == locks[1]
    assert b"one-2.0-py3-none-any.whl" in locks[0]
