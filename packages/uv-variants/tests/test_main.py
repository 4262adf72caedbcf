"""How the command ends when uv does not even start."""

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from uv_variants import main

RUN = [sys.executable, "-c", "from uv_variants.main import main; main()"]


def test_a_fault_of_our_own_is_reported_as_one(monkeypatch, capsys):
    """As from bytecode that is cut off, which a full disk leaves."""

    def fails(*_, **__):
        raise EOFError("marshal data too short")

    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setattr(main, "_run", fails)
    with pytest.raises(SystemExit, match="70"):
        main.main(["--help"])
    assert capsys.readouterr().err.splitlines()[-1] == (
        "uv-variants: internal error: EOFError: marshal data too short; this is a bug: report it "
        "with the lines above, the command, and what 'uv-variants --version' prints"
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
    assert ours == {"uv_variants", "uv_variants.main", "uv_variants._uv_program"}


def outcome(folder: Path, text: str, entry: str, *arguments: str) -> tuple[int, str, str]:
    """Return code and output of an entry point, for which a shell script with *text* is uv."""
    path = folder / "uv"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    code = f"from uv_variants.main import {entry}; {entry}()"
    env = {**os.environ, "VARIANTS_UV": str(path), "VARIANTS_NO_VARIANTS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], env=env, capture_output=True, text=True
    )
    return done.returncode, done.stdout, done.stderr


posix = pytest.mark.skipif(os.name == "nt", reason="a shell script is no program there")


@posix
@pytest.mark.parametrize(
    ("entry", "name", "option"),
    [("main", "uv-variants", "--version"), ("main_uvx", "uvx-variants", "-V")],
)
def test_the_versions(tmp_path, entry, name, option):
    found = outcome(tmp_path, 'echo "uv 0.13.9 (0123456 2026-11-01)"', entry, option)
    assert found == (0, f"{name} {version('uv-variants')} (uv 0.13.9)\n", "")
    problem = f"uv-variants: {tmp_path / 'uv'}: is not uv: '--version' ended with 0\n"
    found = outcome(tmp_path, "echo something 1.0", entry, option)
    assert found == (2, f"{name} {version('uv-variants')}\n", problem)


@posix
@pytest.mark.parametrize(
    ("entry", "given", "uv"),
    [
        ("main_uvx", ["--help"], "tool uvx --help"),
        ("main_uvx", [], "tool uvx"),
        ("main_uvx", ["version"], "tool run version"),
        ("main_uvx", ["--generate-shell-completion", "zsh"],
         "tool uvx --generate-shell-completion zsh"),
        ("main", ["version"], "version"),
        ("main", ["generate-shell-completion", "zsh"], "generate-shell-completion zsh"),
    ],
)  # fmt: skip
def test_what_is_handed_to_uv(tmp_path, entry, given, uv):
    _, out, _ = outcome(tmp_path, 'echo "uv: $*"', entry, *given)
    assert out.splitlines()[-1] == f"uv: {uv}", out
    assert ("-V, --version" in out) == (given == ["--help"])


@posix
@pytest.mark.parametrize(
    ("typed", "meant"), [("docter", "doctor"), ("catalogue", "catalog"), ("nonsense", "")]
)
def test_a_mistyped_command(tmp_path, typed, meant):
    said = f"uv-variants: did you mean '{meant}'?\n" if meant else ""
    assert outcome(tmp_path, "exit 2", "main", typed) == (2, "", said)


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
    code = "from uv_variants._uv_process import in_foreground; raise SystemExit(in_foreground())"
    done = subprocess.run([sys.executable, "-c", code], start_new_session=True)
    assert done.returncode == 0
