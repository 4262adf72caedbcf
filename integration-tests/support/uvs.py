"""Unmodified uvs of several versions, and `uv-variants` from built wheels beside them."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .environments import Environment, Result, built_wheel, clean_environ, once, uv_command
from .isolation import outside
from .tools import add

UVS = ("0.5.31", "0.8.24", "0.11.19", "0.13.8", "0.13.9")
"""The releases that are tried: the oldest that is supported, the newest, and what lies between."""

_OURS = (
    "packages/pep-variants",
    "packages/variants-plugins",
    "packages/variants-index",
    "packages/variants-catalog",
    "packages/variants-proxy",
    "packages/uv-variants",
)


def downloaded_uv(version: str, wheelhouse: Path) -> Path:
    """Return the program of that uv, downloaded once into *wheelhouse*."""
    name = "uv.exe" if os.name == "nt" else "uv"

    def download(folder: Path) -> None:
        folder.mkdir()
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest"]
        subprocess.run([*command, str(folder), f"uv=={version}"], check=True, env=outside())
        (wheel,) = folder.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            (member,) = (item for item in archive.namelist() if item.endswith(f"/scripts/{name}"))
            (folder / name).write_bytes(archive.read(member))
        (folder / name).chmod(0o755 | stat.S_IXUSR)
        wheel.unlink()

    return once(wheelhouse / f"uv-{version}", download) / name


def uv_variants(folder: Path) -> Path:
    """Return the program `uv-variants`, installed once into an environment below *folder*."""

    def build(path: Path) -> None:
        for distribution in _OURS:
            built_wheel(distribution, path / distribution)

    def install(mark: Path) -> None:
        create = [*uv_command(), "venv", "--quiet", "--clear", "--python", sys.executable]
        subprocess.run([*create, str(environment)], check=True)
        wheels = [str(wheel) for wheel in once(folder / "uv-variants-dist", build).rglob("*.whl")]
        add(Environment(environment), *wheels)
        mark.touch()

    # Made in its place: scripts have the path of their interpreter in them.
    environment = folder / "uv-variants"
    once(folder / "uv-variants.made", install)
    scripts = environment / ("Scripts" if os.name == "nt" else "bin")
    return scripts / ("uv-variants.exe" if os.name == "nt" else "uv-variants")


@dataclass(frozen=True)
class Machine:
    """A user's machine: uv, `uv-variants`, caches of its own, and a place to work.

    Attributes:
        uv: path of uv.
        program: path of `uv-variants`.
        home: the user's; caches are in it.
        work: working directory.
        environ: what is set besides.
    """

    uv: Path
    program: Path
    home: Path
    work: Path
    environ: Mapping[str, str] = field(default_factory=dict)

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables of everything that runs here."""
        variables = clean_environ(
            {
                "HOME": str(self.home),
                "USERPROFILE": str(self.home),
                "UV_CACHE_DIR": str(self.home / "uv-cache"),
                "UV_PYTHON_DOWNLOADS": "never",
                "VARIANTS_CACHE_DIR": str(self.home / "variants-cache"),
                "VARIANTS_UV": str(self.uv),
                "XDG_CACHE_HOME": str(self.home / ".cache"),
                "XDG_CONFIG_DIRS": str(self.home / "etc"),
                "XDG_CONFIG_HOME": str(self.home / ".config"),
                **self.environ,
            }
        )
        del variables["UV_NO_CONFIG"]  # the files in `home` and `work` are all there are
        return {name: value for name, value in variables.items() if value}

    def run(self, *arguments: str, cwd: Path | None = None, timeout: int = 120) -> Result:
        """Run ``uv-variants`` with *arguments*."""
        return self.execute(self.program, *arguments, cwd=cwd, timeout=timeout)

    def plain(self, *arguments: str, cwd: Path | None = None) -> Result:
        """Run uv itself."""
        return self.execute(self.uv, *arguments, cwd=cwd)

    def execute(
        self, program: Path, *arguments: str, cwd: Path | None = None, timeout: int = 120
    ) -> Result:
        """Run *program*."""
        done = subprocess.run(
            [str(program), *arguments],
            capture_output=True,
            text=True,
            env=self.variables,
            cwd=cwd or self.work,
            timeout=timeout,
            check=False,
        )
        return Result(done.returncode, done.stdout, done.stderr)

    def start(self, program: Path, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        """Start *program* in a process group of its own, with *options* of `Popen`."""
        options = {"env": self.variables, "cwd": self.work, "text": True, **options}
        return subprocess.Popen([str(program), *arguments], start_new_session=True, **options)

    def with_environ(self, environ: Mapping[str, str]) -> Machine:
        """Return it with more variables."""
        return Machine(self.uv, self.program, self.home, self.work, {**self.environ, **environ})

    def create_environment(self, python: str, path: Path | None = None) -> Environment:
        """Create an environment, ``.venv`` in the working directory by default."""
        path = path or self.work / ".venv"
        done = self.plain("venv", "--quiet", "--python", python, str(path))
        assert done.code == 0, done
        return Environment(path)

    def labels(self, environment: Path | None = None) -> dict[str, str]:
        """Return the label of every variant that is installed, by name."""
        return installed_labels(environment or self.work / ".venv")


def installed_labels(environment: Path) -> dict[str, str]:
    """Return the label of every variant in *environment*, by project."""
    import json

    found = {}
    for path in Environment(environment).site_packages.glob("*.dist-info/variant.json"):
        (label,) = json.loads(path.read_text())["variants"]
        found[path.parent.name.split("-")[0]] = label
    return found


def project(folder: Path, dependencies: Sequence[str], more: str = "") -> Path:
    """Write a project with *dependencies* into *folder*; return that."""
    folder.mkdir(parents=True, exist_ok=True)
    listed = "".join(f"    {dependency!r},\n" for dependency in dependencies)
    (folder / "pyproject.toml").write_text(
        f'[project]\nname = "project"\nversion = "1.0"\nrequires-python = ">=3.10"\n'
        f"dependencies = [\n{listed}]\n{more}",
        encoding="utf-8",
    )
    return folder
