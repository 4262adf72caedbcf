"""The patched pip, built as a release is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from .environments import ROOT, Environment, Environments, create, find_python, once

REVISION = 1


def local_version(version: str) -> str:
    """Return the version of the patched pip made from pip *version*."""
    return f"{version}+variants.{REVISION}"


def build(environments: Environments, version: str, folder: Path, **env: str) -> Path:
    """Build the patched pip of that *version* into *folder*; return its wheel.

    Raises:
        RuntimeError: it cannot be built; the message says why.
    """
    done = subprocess.run(
        [
            sys.executable, "-m", "patched", version, "--out-dir", str(folder),
            "--shim", str(environments.shim_wheel),
            "--upstream", str(environments.pip_wheel(version)),
        ],
        cwd=ROOT / "pip-patch", env=env or None, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(done.stderr)
    return Path(done.stdout.strip())


def patched_pip(environments: Environments, version: str) -> Path:
    """Return the wheel of the patched pip of that *version*, built once per run."""
    folder = environments.folder / f"patched-{version}"
    once(folder, lambda new: build(environments, version, new))
    return folder / f"pip-{local_version(version)}-py3-none-any.whl"


def with_patched_pip(environments: Environments, python: str, version: str) -> Environment:
    """Return an environment of that Python with the patched pip of that *version*.

    Raises:
        LookupError: there is no such Python here.
    """
    interpreter = find_python(python)
    if interpreter is None:
        raise LookupError(f"there is no Python {python} here")
    wheel = patched_pip(environments, version)
    path = environments.folder / f"python{python}-pip{version}-built-in"
    return Environment(once(path, lambda new: create(new, interpreter, wheel)))
