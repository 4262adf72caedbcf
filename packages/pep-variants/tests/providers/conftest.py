"""Fakes at the lowest seam: libraries of drivers compiled here, commands, folders of the kernel."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cpu_machines import machines

from pep_variants.errors import ProviderError

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def build(tmp_path_factory):
    """Return a function that builds `source` as the library `name`, some functions missing."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("needs Linux and a C compiler to build a fake driver library")
    built: dict[tuple[str, ...], Path] = {}

    def make(source: str, name: str, *missing: str) -> Path:
        """Return the folder of the library."""
        key = (source, name, *missing)
        if key not in built:
            folder = tmp_path_factory.mktemp("driver")
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run(
                [compiler, "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror"]
                + [f"-Wl,-soname,{path.name}"]
                + [f"-DWITHOUT_{function}" for function in missing]
                + ["-o", str(path), str(HERE / source)],
                check=True,
            )
            built[key] = folder
        return built[key]

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


@pytest.fixture(params=["supported", "facts"])
def refused(request):
    """Return a function that checks how a provider refuses `text` as the value of `variable`."""

    def check(provider, variable: str, text: str, way_out: str) -> None:
        with pytest.raises(ProviderError) as error:
            getattr(provider, request.param)()
        message = str(error.value)
        assert variable in message
        assert text[:60] in message
        assert message.endswith(f"set it to one like {way_out}, or unset it")
        assert len(message) < 300

    return check


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """Return a function that turns this machine into the one of a file of archspec's."""
    with machines(monkeypatch, tmp_path) as become:
        yield become
