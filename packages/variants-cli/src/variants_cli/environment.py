"""A Python environment that commands look at: the active one, or what ``--python`` names."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import click

_PROBE = (
    "import json, sys, sysconfig; "
    "print(json.dumps([sys.version.split()[0], sysconfig.get_path('purelib'), "
    "sysconfig.get_path('platlib')]))"
)


class Environment(NamedTuple):
    """An environment.

    Attributes:
        python: its interpreter.
        version: of Python.
        paths: its package folders.
    """

    python: Path
    version: str
    paths: tuple[str, ...]


def find_environment(python: Path | None) -> Environment:
    """Return the environment of *python*, an interpreter or a virtual environment.

    Raises:
        ClickException: it is not a working Python.
    """
    if python is None:
        active = os.environ.get("VIRTUAL_ENV")
        python = Path(active or sys.executable)
    if python.is_dir():
        folders = (python / "bin" / "python", python / "Scripts" / "python.exe")
        python = next((path for path in folders if path.exists()), python)
    try:
        done = subprocess.run(
            [str(python), "-I", "-c", _PROBE],
            capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
        version, *paths = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        reason = getattr(error, "stderr", None) or str(error)
        raise click.ClickException(f"{python} is not a working Python: {reason}") from None
    return Environment(python, version, tuple(dict.fromkeys(paths)))
