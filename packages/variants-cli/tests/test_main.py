import os
import signal
import subprocess
import sys

import pytest

from support.waiting import wait_until
from variants_cli._console import one_line
from variants_cli.main import COMMANDS

RUN = [sys.executable, "-c", "from variants_cli.main import main; main()"]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_every_command(variants, command):
    result = variants(command, "--help")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith(f"Usage: variants {command}")


SECTIONS = ("Options", "Index options", "Variant options")


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_help_fits_on_a_screen(variants, arguments):
    result = variants(*arguments)
    assert result.code == 0
    assert all(f"\n  {command} " in result.out for command in COMMANDS)
    assert "\nOptions:\n  -V, --version " in result.out
    assert len(result.out.splitlines()) <= 24
    assert max(map(len, result.out.splitlines())) <= 80


@pytest.mark.parametrize("option", ["--platform", "--variant-platform", "--target"])
def test_a_machine_is_the_same_option_everywhere(variants, option):
    for command in ("rank", "explain", "resolve", "check", "doctor"):
        assert f"{option} MACHINE" in variants(command, "--help").out.replace(",", " MACHINE")


def test_no_color(variants, monkeypatch):
    monkeypatch.setattr("click.utils.should_strip_ansi", lambda *_: False)  # as on a terminal
    assert variants("doctr").err.startswith("\x1b[31merror:\x1b[0m ")
    monkeypatch.setenv("NO_COLOR", "1")
    assert variants("doctr").err.startswith("error: ")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(variants, monkeypatch, shell):
    monkeypatch.setenv("_VARIANTS_COMPLETE", f"{shell}_source")
    assert f"_VARIANTS_COMPLETE={shell}_complete" in variants().out
    monkeypatch.setenv("_VARIANTS_COMPLETE", f"{shell}_complete")
    monkeypatch.setenv("COMP_WORDS", "variants doct")
    monkeypatch.setenv("COMP_CWORD", "doct" if shell == "fish" else "1")
    assert "doctor" in variants().out


def test_version(variants):
    assert variants("--version").out.startswith("variants ")
    assert variants("-V").out == variants("--version").out


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("doctr", "'doctor'"), ("catalogue", "'catalog'"), ("nonsense", "")],
)
def test_a_mistyped_command(variants, typed, meant):
    result = variants(typed)
    assert (result.code, result.out) == (2, "")
    assert f"No such command '{typed}'" in result.err
    assert (f"Did you mean {meant}?" if meant else "No such") in result.err


@pytest.mark.parametrize("command", ["doctor", "check", "explain", "resolve"])
def test_a_command_has_its_own_options_first(variants, command):
    out = variants(command, "--help").out
    own, index, variant = (out.index(f"\n{name}:") for name in SECTIONS)
    assert own < out.index("\n  --json") < out.index("\n  -h, --help") < index
    assert index < out.index("--index-url URL") < variant < out.index("--variant-prefer")


@pytest.mark.parametrize("arguments", [["nonsense"], ["rank"], ["detect", "--nonsense"]])
def test_wrong_usage_is_one_line(variants, arguments):
    result = variants(*arguments)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("error: ")
    assert result.err.endswith(" --help)\n")
    assert len(result.err.splitlines()) == 1


@pytest.mark.parametrize("command", ["resolve", "explain"])
def test_no_variants_takes_no_value(variants, command):
    result = variants(command, "--no-variants")
    assert result.code == 2
    assert "requires an argument" not in result.err


def test_a_fault_of_our_own_is_reported_as_one(tmp_path):
    """Bytecode that is cut off, as a full disk leaves it: importing it ends in an EOFError."""
    bytecode = {"PYTHONPYCACHEPREFIX": str(tmp_path), "PYTHONDONTWRITEBYTECODE": ""}
    command = [*RUN, "detect", "--help"]
    subprocess.run(command, env={**os.environ, **bytecode}, check=True, capture_output=True)
    (module,) = tmp_path.rglob("variants_cli/_commands/detect.*.pyc")
    module.write_bytes(module.read_bytes()[:100])
    done = subprocess.run(command, env={**os.environ, **bytecode}, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (70, "")
    assert "Traceback" in done.stderr
    said = done.stderr.splitlines()[-1]
    assert said.startswith("variants: internal error: EOFError: ")
    assert said.endswith(
        "; this is a bug: report it with the lines above, the command, and what "
        "'variants --version' prints"
    )
    assert "interrupted" not in done.stderr


def test_an_interrupt_is_one_line(variants, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("variants_cli.main.cli.main", interrupted)
    result = variants("resolve", "app")
    assert (result.code, result.out, result.err) == (130, "", "error: interrupted\n")


def test_messages_are_printable():
    assert one_line("a\nb\x1b[31m\ud800\t c") == "a b?[31m? c"


def test_output_into_a_closed_pipe_is_no_traceback():
    command = subprocess.Popen(
        [*RUN, "detect", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    command.stdout.close()
    assert b"Traceback" not in command.stderr.read()
    command.stderr.close()
    command.wait()


def test_ascii_terminals_get_everything(tmp_path):
    result = subprocess.run(
        [*RUN, "validate", tmp_path / "ü.json"],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
    )
    assert result.returncode == 2
    assert result.stderr.startswith(b"error: ")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_leave_nothing_half_written(tmp_path, build_wheel, number):
    wheel = build_wheel(files={"example_pkg/data.bin": os.urandom(300_000)})
    script = (
        "import signal, sys\n"
        "from pep_variants._wheelfile import zip_rewriting\n"
        "from variants_cli import main\n"
        # Who runs the tests in the background has it ignored.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "zip_rewriting.CHUNK = 1\n"  # three hundred thousand writes take a while
        "main.main(sys.argv[1:])"
    )
    command = subprocess.Popen(
        [
            *(sys.executable, "-c", script, "make", wheel, "--label", "null"),
            *("--namespace", "x86_64", "-o", tmp_path / "out"),
        ],
        stderr=subprocess.PIPE,
    )
    assert wait_until(lambda: list(tmp_path.glob("out/.*.tmp")))
    command.send_signal(number)
    error = command.stderr.read()
    command.stderr.close()
    assert command.wait(20) == 128 + number
    assert b"Traceback" not in error
    assert list((tmp_path / "out").iterdir()) == []
