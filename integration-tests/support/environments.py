"""Fresh environments of every Python and pip around, with distributions from built wheels.

Environments are made once per Python and pip and copied from there: nothing in a test depends on
what the machine's own pip is configured to do.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")


@functools.cache
def find_python(version: str) -> str | None:
    """Return an interpreter of ``major.minor`` *version* that works here, None without one."""
    names = [f"python{version}"]
    if sys.version_info[:2] == tuple(map(int, version.split("."))):
        names.insert(0, sys.executable)
    candidates = [path for name in names if (path := shutil.which(name))]
    # pyenv's command on PATH only works for the versions that are switched on.
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    candidates += [str(path) for path in sorted(pyenv.glob(f"{version}.*/bin/python"))]
    for candidate in candidates:
        probe = subprocess.run(
            [candidate, "-c", "import sys, venv; print('%d.%d' % sys.version_info[:2])"],
            capture_output=True,
            text=True,
            check=False,
        )
        if probe.returncode == 0 and probe.stdout.strip() == version:
            return candidate
    return None


@functools.cache
def built_wheels(folder: Path) -> Path:
    """Build the wheels of all distributions into *folder*, once; return it."""
    uv = uv_command()
    for distribution in (
        "packages/pep-variants",
        "packages/variants-cli",
        "resolver-ext",
        "pip-patch",
    ):
        subprocess.run(
            [*uv, "build", "--quiet", "--wheel", "--out-dir", str(folder), str(ROOT / distribution)],
            check=True,
        )
    return folder


def uv_command() -> list[str]:
    """Return the command line that starts the uv of this environment."""
    beside = Path(sys.executable).with_name("uv")
    return [str(beside)] if beside.exists() else [sys.executable, "-m", "uv"]


def clean_environ(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return this process's environment without pip's, uv's and our own settings."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PIP_", "UV_", "VARIANTS_", "NV_VARIANT_", "VIRTUAL_ENV", "PYTHON"))
    }
    return {
        **kept,
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_INPUT": "1",
        "UV_NO_CONFIG": "1",
        **(extra or {}),
    }


@dataclass(frozen=True)
class Result:
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        return self.out + self.err


@dataclass(frozen=True)
class Environment:
    """A virtual environment with a pip of its own."""

    path: Path

    @property
    def python(self) -> str:
        folder = "Scripts" if os.name == "nt" else "bin"
        return str(self.path / folder / "python")

    def run(self, *args: str, env: Mapping[str, str] | None = None, timeout: int = 300) -> Result:
        """Run this environment's python with *args*."""
        done = subprocess.run(
            [self.python, *args],
            capture_output=True,
            text=True,
            env=clean_environ({"PIP_NO_CACHE_DIR": "1", **(env or {})}),
            timeout=timeout,
            cwd=self.path,
            check=False,
        )
        return Result(done.returncode, done.stdout, done.stderr)

    def pip(self, *args: str, env: Mapping[str, str] | None = None) -> Result:
        """Run this environment's pip with *args*."""
        return self.run("-m", "pip", *args, env=env)

    def install_shim(self, wheels: Path) -> None:
        """Install the shim from its built wheel, with this environment's own pip."""
        (wheel,) = wheels.glob("pep_variants_shim-*.whl")
        done = self.pip("install", "--no-index", "--no-deps", str(wheel))
        if done.code:
            raise RuntimeError(done.text)


def create(path: Path, python: str, pip: str, wheelhouse: Path) -> Environment:
    """Create an environment with that *pip*, downloaded once into *wheelhouse*."""
    wheel = wheelhouse / f"pip-{pip}-py3-none-any.whl"
    if not wheel.exists():
        subprocess.run(
            [
                sys.executable, "-m", "pip", "download", "--quiet", "--no-deps",
                "--dest", str(wheelhouse), f"pip=={pip}",
            ],  # fmt: skip
            check=True,
        )
    subprocess.run([python, "-m", "venv", "--without-pip", str(path)], check=True)
    environment = Environment(path)
    done = environment.run(str(wheel / "pip"), "install", "--no-index", "--no-deps", str(wheel))
    if done.code:
        raise RuntimeError(done.text)
    return environment
