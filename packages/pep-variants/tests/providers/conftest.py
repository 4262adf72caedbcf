"""Fakes at the lowest seam: libraries of drivers compiled here, commands, folders of the kernel."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from support.nvidia_drivers import compiled

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def build(tmp_path_factory):
    """Return a function that builds `source` as the library `name`, some functions missing."""

    @cache
    def make(source: str, name: str, *missing: str) -> Path:
        """Return the folder of the library."""
        folder = tmp_path_factory.mktemp("driver")
        options = ("-Wall", "-Wextra", "-Werror", *(f"-DWITHOUT_{each}" for each in missing))
        compiled(HERE / source, folder / name, *options)
        return folder

    return make


@pytest.fixture(scope="session")
def ask():
    """Return a function that asks a provider about cases, in a process with these libraries."""

    def run(
        provider: str,
        cases: list[dict[str, object]],
        *libraries: Path,
        python_path: Path | None = None,
    ) -> list[dict[str, object]]:
        prefixes = ("NV_", "INTEL_", "FAKE_", "ZE_")
        environment = {
            name: text for name, text in os.environ.items() if not name.startswith(prefixes)
        }
        environment["LD_LIBRARY_PATH"] = os.pathsep.join(map(str, libraries))
        environment["PYTHONWARNINGS"] = "default"
        if python_path:
            rest = environment.get("PYTHONPATH")
            folders = [str(python_path), *([rest] if rest else [])]
            environment["PYTHONPATH"] = os.pathsep.join(folders)
        done = subprocess.run(
            [sys.executable, str(HERE / "ask_provider.py"), provider],
            input=json.dumps(cases),
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""  # nothing of the driver reaches the user's terminal
        return json.loads(done.stdout)

    return run


@pytest.fixture
def command():
    """Return a function that writes a command as a script of the shell."""

    def write(path: Path, script: str) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    return write
