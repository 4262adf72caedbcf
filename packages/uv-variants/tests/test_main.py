"""How the command ends when uv does not even start."""

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

RUN = [sys.executable, "-c", "from uv_variants.main import main; main()"]


def test_a_fault_of_our_own_is_reported_as_one(tmp_path):
    """Bytecode that is cut off, as a full disk leaves it: importing it ends in an EOFError."""
    bytecode = {"PYTHONPYCACHEPREFIX": str(tmp_path), "PYTHONDONTWRITEBYTECODE": ""}
    command = [*RUN, "--help"]
    subprocess.run(command, env={**os.environ, **bytecode}, check=True, capture_output=True)
    (module,) = tmp_path.rglob("uv_variants/own_options.*.pyc")
    module.write_bytes(module.read_bytes()[:100])
    done = subprocess.run(command, env={**os.environ, **bytecode}, capture_output=True, text=True)
    assert done.returncode == 70
    said = done.stderr.splitlines()[-1]
    assert said.startswith("uv-variants: internal error: EOFError: ")
    assert said.endswith(
        "; this is a bug: report it with the lines above, the command, and what "
        "'uv-variants --version' prints"
    )


@pytest.mark.skipif(os.name == "nt", reason="Windows starts programs by their suffix")
def test_what_the_system_refuses_is_one_line(tmp_path):
    program = tmp_path / "uv"
    program.write_text("no program\n")
    program.chmod(0o755)
    env = {**os.environ, "VARIANTS_UV": str(program)}
    done = subprocess.run([*RUN, "pip", "list"], env=env, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"uv-variants: {program}: Exec format error\n"


@pytest.mark.skipif(os.name == "nt", reason="Windows runs uv as a child process")
def test_commands_without_an_index_import_little():
    code = (
        "import os, sys; os.execve = lambda *_: print(*sys.modules) or sys.exit(); "
        "from uv_variants.main import main; sys.argv = ['uv-variants', 'pip', 'list']; main()"
    )
    env = {**os.environ, "VARIANTS_UV": sys.executable}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    ours = {name for name in done.stdout.split() if name.startswith(("uv_", "pep_", "variants_"))}
    assert ours == {
        "uv_variants",
        "uv_variants.main",
        "uv_variants.uv_program",
    }
    slow = {"typing", "re", "enum", "collections", "pathlib", "subprocess"}
    plain = subprocess.run(
        [sys.executable, "-c", "import sys; print(*sys.modules)"], capture_output=True, text=True
    )
    assert not slow & {*done.stdout.split()} - {*plain.stdout.split()}


def program(folder: Path, text: str) -> dict[str, str]:
    """Return variables with which a shell script with *text* is taken for uv."""
    path = folder / "uv"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return {**os.environ, "VARIANTS_UV": str(path)}


@pytest.mark.skipif(os.name == "nt", reason="a shell script is no program there")
@pytest.mark.parametrize("option", ["--version", "-V"])
@pytest.mark.parametrize(("entry", "name"), [("main", "uv-variants"), ("main_uvx", "uvx-variants")])
def test_the_versions(tmp_path, option, entry, name):
    env = program(tmp_path, 'echo "uv 0.13.9 (0123456 2026-11-01)"')
    done = subprocess.run([*RUN[:-1], call(entry), option], env=env, capture_output=True, text=True)
    assert done.stdout == f"{name} {version('uv-variants')} (uv 0.13.9)\n"
    assert (done.returncode, done.stderr) == (0, "")


def call(entry: str) -> str:
    return f"from uv_variants.main import {entry}; {entry}()"


@pytest.mark.skipif(os.name == "nt", reason="a shell script is no program there")
def test_our_version_without_a_uv_that_works(tmp_path):
    env = program(tmp_path, "echo something 1.0")
    done = subprocess.run([*RUN, "--version"], env=env, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stdout == f"uv-variants {version('uv-variants')}\n"
    assert done.stderr == f"uv-variants: {tmp_path / 'uv'}: is not uv: '--version' ended with 0\n"


@pytest.mark.skipif(os.name == "nt", reason="a shell script is no program there")
@pytest.mark.parametrize(
    ("given", "uv"), [(["--help"], "tool uvx --help"), ([], "tool uvx"), (["version"], None)]
)
def test_what_uvx_hands_to_uv(tmp_path, given, uv):
    env = program(tmp_path, 'echo "uv: $*"') | {"VARIANTS_NO_VARIANTS": "1"}
    done = subprocess.run(
        [*RUN[:-1], call("main_uvx"), *given], env=env, capture_output=True, text=True
    )
    assert done.stdout.splitlines()[-1] == f"uv: {uv or 'tool run version'}", done
    assert ("-V, --version" in done.stdout) == (given == ["--help"])


@pytest.mark.skipif(os.name == "nt", reason="a shell script is no program there")
def test_version_is_also_a_command_of_uv(tmp_path):
    env = program(tmp_path, 'echo "uv: $*"') | {"VARIANTS_NO_VARIANTS": "1"}
    done = subprocess.run([*RUN, "version"], env=env, capture_output=True, text=True)
    assert done.stdout == "uv: version\n", done


def test_folders_of_pythonpath_are_for_what_uv_runs(tmp_path):
    """V5: an old platformdirs there, as environment modules and ROS have it, is not imported."""
    (tmp_path / "platformdirs.py").write_text("raise ImportError('an old release')\n")
    code = (
        "from uv_variants import main\n"
        "main._run = lambda *_, **__: __import__('platformdirs') and 0\n"
        "main.main()"
    )
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(os.name == "nt", reason="there are no terminals of that kind")
def test_without_a_terminal_signals_are_passed_on():
    code = "from uv_variants.uv_process import in_foreground; raise SystemExit(in_foreground())"
    done = subprocess.run([sys.executable, "-c", code], start_new_session=True)
    assert done.returncode == 0
