import os
import signal
import subprocess
import sys
import time

import pytest

from variants_cli.atomic import replacing, write_if_changed
from variants_cli.console import one_line

COMMANDS = ["detect", "rank", "inspect", "make", "unmake", "index", "matrix", "validate"]
RUN = [sys.executable, "-c", "from variants_cli.main import main; main()"]


def test_help_names_every_command(variants):
    for arguments in ([], ["--help"], ["-h"]):
        result = variants(*arguments)
        assert result.code == 0
        assert all(f"\n  {command} " in result.out for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_every_command(variants, command):
    result = variants(command, "--help")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith(f"Usage: variants {command}")


def test_version(variants):
    result = variants("--version")
    assert result.code == 0
    assert result.out.startswith("variants ")


@pytest.mark.parametrize("arguments", [["nonsense"], ["rank"], ["detect", "--nonsense"]])
def test_wrong_usage_is_one_line(variants, arguments):
    result = variants(*arguments)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("error: ")
    assert result.err.endswith(" --help)\n")
    assert len(result.err.splitlines()) == 1


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


def test_replacing_keeps_the_old_file_until_the_end(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with replacing(path) as stream:
        stream.write(b"new")
        stream.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    with pytest.raises(RuntimeError), replacing(path) as stream:  # noqa: PT012
        stream.write(b"half")
        raise RuntimeError
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_replacing_long_names(tmp_path):
    path = tmp_path / ("x" * 250)
    with replacing(path) as stream:
        stream.write(b"new")
    assert path.read_bytes() == b"new"


def test_write_if_changed(tmp_path):
    path = tmp_path / "folder" / "file"
    assert write_if_changed(path, b"one")
    assert not write_if_changed(path, b"one")
    assert write_if_changed(path, b"on")
    assert path.read_bytes() == b"on"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_leave_nothing_half_written(tmp_path, build_wheel, number):
    wheel = build_wheel(files={"example_pkg/data.bin": os.urandom(300_000)})
    script = (
        "import signal, sys\n"
        "from variants_cli import archive, main\n"
        # Who runs the tests in the background has it ignored.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "archive.CHUNK = 1\n"  # three hundred thousand writes take a while
        "main.main(sys.argv[1:])"
    )
    command = subprocess.Popen(
        [
            *(sys.executable, "-c", script, "make", wheel, "--label", "null"),
            *("--namespace", "x86_64", "-o", tmp_path / "out"),
        ],
        stderr=subprocess.PIPE,
    )
    deadline = time.monotonic() + 20
    while not list(tmp_path.glob("out/.*.tmp")):
        assert command.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.001)
    command.send_signal(number)
    error = command.stderr.read()
    command.stderr.close()
    assert command.wait(20) == 128 + number
    assert b"Traceback" not in error
    assert list((tmp_path / "out").iterdir()) == []
