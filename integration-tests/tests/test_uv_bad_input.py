"""Bad input, broken places and broken-off commands: what plain uv does, beside uv-variants.

For projects without variants exit codes and files are uv's own, and the cause is on stderr, in
one line.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pep_variants import limits
from support.index import JSON, Answer, Index, served
from support.uv_beside import files_of, installed_in
from support.uvs import Machine, project
from support.waiting import wait_until
from support.wheels import Wheel
from uv_variants._transport.authority import Authority

PYTHON = sys.executable
posix = pytest.mark.skipif(os.name == "nt", reason="signals and limits of POSIX")
QUICK = {"UV_HTTP_RETRIES": "0", "UV_INTERNAL__TEST_NO_HTTP_RETRY_DELAY": "1"}


def installed(machine: Machine) -> set[str]:
    """Return what is installed in the project's environment."""
    return {name.replace("==", "-") for name in installed_in(machine.work)}


def one_line(text: str, *causes: str) -> bool:
    """Return whether a cause is in one line of *text*, and no traceback."""
    lines = re.sub(r"\n\s+", " ", text).lower().splitlines()
    assert not any("traceback" in line for line in lines), text
    return any(cause in line for line in lines for cause in causes)


@pytest.fixture
def index() -> Iterator[Index]:
    found = Index()
    found.add_wheel(Wheel("plain", "1.0", requires=("always",)), metadata_file=True)
    found.add_wheel(Wheel("always", "1.0"), metadata_file=True)
    with served(found):
        yield found


@pytest.fixture
def at_work(machine: Machine, index: Index) -> Machine:
    """A machine with a project that requires `plain`."""
    project(machine.work, ["plain"])
    return machine.with_environ({"UV_DEFAULT_INDEX": index.url, "UV_PYTHON": PYTHON, **QUICK})


def start(
    machine: Machine, program: Path, *arguments: str, **options: Any
) -> tuple[subprocess.Popen[str], Callable[[], tuple[int, str]]]:
    """Start a command; return it, and a function that waits for its exit code and stderr."""
    said = tempfile.TemporaryFile("w+")
    process = machine.start(program, *arguments, stdout=subprocess.DEVNULL, stderr=said, **options)

    def ended() -> tuple[int, str]:
        code = process.wait(60)
        said.seek(0)
        return code, said.read()

    return process, ended


@pytest.mark.parametrize(
    ("fault", "causes"),
    [
        ("broken JSON", ("json",)),
        ("truncated wheel", ("closed", "incomplete", "body", "decod", "end of file")),
        ("nothing listens", ("refused",)),
    ],
)
def test_faults_of_an_index_end_as_with_uv(
    at_work: Machine, index: Index, fault: str, causes: tuple[str, ...]
) -> None:
    if fault == "broken JSON":
        index.faults["/simple/plain/"] = lambda: Answer(200, b'{"files": [', JSON)
    elif fault == "truncated wheel":
        index.faults["plain-1.0-py3-none-any.whl"] = lambda: Answer.cut_off(b"PK\x03\x04")
    else:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            url = f"http://127.0.0.1:{probe.getsockname()[1]}/simple/"
        at_work = at_work.with_environ({"UV_DEFAULT_INDEX": url})
    ends = []
    for run in (at_work.plain, at_work.run):
        shutil.rmtree(at_work.work)
        project(at_work.work, [])
        at_work.plain("venv", "-q", "--python", PYTHON)
        done = run("add", "plain")
        assert one_line(done.err, *causes), done
        ends.append((done.code, done.out, files_of(at_work.work), installed(at_work)))
    assert ends[0] == ends[1]
    assert ends[0][0] != 0


def test_a_page_beyond_the_limits_is_asked_for_once(at_work: Machine, index: Index) -> None:
    index.faults["/simple/plain/"] = lambda: Answer(200, b" " * (limits.PAGE_BYTES + 1), JSON)
    done = at_work.with_environ({"UV_HTTP_RETRIES": "3"}).run("add", "plain")
    assert done.code != 0, done
    assert "/simple/plain/: is larger than" in done.err, done
    assert "retries" not in done.err, done


def test_a_home_that_cannot_be_written(at_work: Machine) -> None:
    """U11: never worse than without us; below a file there can be no folder, for root either."""
    file = at_work.home / "file"
    file.touch()
    names = (
        *("HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "XDG_CACHE_HOME", "XDG_DATA_HOME"),
        *("XDG_CONFIG_HOME", "XDG_STATE_HOME", "VARIANTS_CACHE_DIR", "VARIANTS_STATE_DIR"),
    )
    machine = at_work.with_environ(dict.fromkeys(names, str(file / "home")))
    done = machine.run("sync")
    assert done.code == 0, done
    assert installed(machine) == {"plain-1.0", "always-1.0"}
    nowhere = machine.with_environ({"UV_CACHE_DIR": str(file / "home")})
    theirs, ours = nowhere.plain("sync", "--reinstall"), nowhere.run("sync", "--reinstall")
    assert ours.code == theirs.code != 0, (ours, theirs)
    assert one_line(ours.err, "not a directory")


@posix
def test_a_full_disk(at_work: Machine, index: Index) -> None:
    """Files cannot grow: the command ends with an error as uv does, and the next one works."""
    import resource

    index.add_wheel(Wheel("large", "1.0", files={"large/data.txt": os.urandom(90_000).hex()}))
    project(at_work.work, ["large"])

    def limited() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # an error, as on a disk that is full
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))

    codes = []
    for program in (at_work.uv, at_work.program):
        _, ended = start(at_work, program, "sync", preexec_fn=limited)
        code, text = ended()
        assert one_line(text, "file too large", "os error 27"), text
        codes.append(code)
    assert installed(at_work) == set()
    assert codes[0] != 0
    assert codes[1] == 1  # the next one may have what this one lacks
    done = at_work.run("sync")
    assert done.code == 0, done
    assert installed(at_work) == {"large-1.0"}


def test_commands_at_once_on_one_project(at_work: Machine) -> None:
    for _, ended in [start(at_work, at_work.program, "add", "always") for _ in range(3)]:
        code, text = ended()
        assert code == 0, text
        assert "Traceback" not in text
    done = at_work.run("sync", "--locked")
    assert done.code == 0, done
    assert installed(at_work) == {"plain-1.0", "always-1.0"}


def is_running(group: int) -> bool:
    """Return whether there is a process in a group."""
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


@posix
@pytest.mark.parametrize(
    ("number", "command"),
    [
        (signal.SIGINT, ("add", "slow")),
        (signal.SIGTERM, ("sync",)),
        (signal.SIGKILL, ("lock",)),
    ],
)
def test_a_command_that_is_broken_off(
    at_work: Machine, index: Index, number: signal.Signals, command: tuple[str, ...]
) -> None:
    """Files are as uv leaves them, the exit code is uv's, and the next command works."""
    slow = Wheel("slow", "1.0", files={"slow/data.txt": "x" * 10_000})
    index.add_wheel(slow, metadata_file=True)
    asked, go_on = threading.Event(), threading.Event()

    def waiting() -> Answer:
        def parts() -> Iterator[bytes]:
            asked.set()
            yield b"PK"
            go_on.wait(60)

        return Answer(body=parts())

    name = slow.filename + (".metadata" if command == ("lock",) else "")
    index.faults[name] = waiting
    ends = []
    try:
        for program in (at_work.uv, at_work.program):
            project(at_work.work, [] if command[0] == "add" else ["slow"])
            (at_work.work / "uv.lock").unlink(missing_ok=True)
            asked.clear()
            process, ended = start(at_work, program, *command)
            assert asked.wait(30)
            # As a terminal does it; a supervisor ends what it started.
            if number == signal.SIGINT:
                os.killpg(process.pid, number)
            else:
                process.send_signal(number)
            code, text = ended()
            assert "Traceback" not in text
            ends.append((code, files_of(at_work.work)))
        # uv ends with its command, however that ended, and asks nothing any more.
        assert sys.platform != "linux" or wait_until(lambda: not is_running(process.pid), 2)
        go_on.set()
        assert wait_until(lambda: not is_running(process.pid))
        assert ends[1] == ends[0]
        assert ends[0][0] != 0
        del index.faults[name]
        for again in (command, ("sync",)):
            done = at_work.run(*again)
            assert done.code == 0, done
        assert installed(at_work) == {"slow-1.0"}
    finally:
        go_on.set()


def test_a_certificate_that_is_not_trusted_is_an_error_at_once(machine: Machine) -> None:
    """T6, V7: it is no outage, and uv does not ask again."""
    index = Index()
    with served(index, Authority(["127.0.0.1"]).leaf("127.0.0.1")):
        # With the retries of uv's default, and its pauses.
        done = machine.run("pip", "install", "--target", "there", "--index-url", index.url, "plain")
    assert done.code == 2, done
    assert "424" in done.err
    assert "retries" not in done.err
    assert "certificate is not accepted" in done.err.splitlines()[-1]
