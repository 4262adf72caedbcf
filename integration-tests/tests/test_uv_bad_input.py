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
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from support.environments import Result
from support.index import JSON, Answer, Index, served
from support.uv_beside import files_of, installed_in
from support.uvs import Machine, project
from support.waiting import wait_until
from support.wheels import Wheel
from uv_variants.transport.authority import Authority

PYTHON = sys.executable
posix = pytest.mark.skipif(os.name == "nt", reason="signals and limits of POSIX")
WHEEL = "plain-1.0-py3-none-any.whl"
QUICK = {"UV_HTTP_RETRIES": "0", "UV_INTERNAL__TEST_NO_HTTP_RETRY_DELAY": "1"}


def installed(folder: Path) -> set[str]:
    """Return what is installed in the project's environment."""
    return {name.replace("==", "-") for name in installed_in(folder)}


def plain_index() -> Index:
    index = Index()
    index.add_wheel(Wheel("plain", "1.0", requires=("always",)), metadata_file=True)
    index.add_wheel(Wheel("always", "1.0"), metadata_file=True)
    return index


def page(body: bytes = b"", status: int = 200) -> dict[str, Callable[[], Answer]]:
    return {"plain": lambda: Answer(status, body, JSON)}


@dataclass(frozen=True)
class Fault:
    """Something that is wrong with the index.

    Attributes:
        pages: answers for pages, by project.
        files: answers for files, by name.
        causes: one of these is on stderr, in one line, if the command fails.
        code: exit code of uv-variants if it differs: the proxy follows redirects, and uv
            gets its error.
    """

    name: str
    causes: tuple[str, ...]
    pages: Mapping[str, Callable[[], Answer]] = field(default_factory=dict)
    files: Mapping[str, Callable[[], Answer]] = field(default_factory=dict)
    code: int | None = None


TRUNCATED = ("closed", "incomplete", "body", "decod", "end of file")
FAULTS = (
    Fault("403", ("403", "forbidden"), page(status=403)),
    Fault("broken JSON", ("json",), page(b'{"meta": {"api-version": "1.1"}, "files": [')),
    Fault("redirect loop", ("redirect", "content-type"),
          {"plain": lambda: Answer.redirect("/simple/plain/")}, code=2),
    Fault("truncated page", TRUNCATED,
          {"plain": lambda: Answer(body=b"{", kind=JSON, headers={"Content-Length": "999"})}),
    Fault("broken metadata", ("metadata",),
          files={f"{WHEEL}.metadata": lambda: Answer(body=b"\x00nothing")}),
    Fault("truncated wheel", TRUNCATED, files={WHEEL: lambda: Answer.cut_off(b"PK\x03\x04")}),
)  # fmt: skip


def added(machine: Machine, run: Callable[..., Result]) -> tuple[Result, Mapping, set[str]]:
    """Add `plain` in a fresh project; return how that ended."""
    shutil.rmtree(machine.work)
    project(machine.work, [])
    machine.plain("venv", "-q", "--python", PYTHON)
    return run("add", "plain"), files_of(machine.work), installed(machine.work)


def one_line(text: str, causes: tuple[str, ...]) -> bool:
    """Return whether a cause is in one line of *text*."""
    lines = re.sub(r"\n\s+", " ", text).lower().splitlines()
    return any(cause in line for line in lines for cause in causes)


def compared(machine: Machine, url: str, causes: tuple[str, ...], code: int | None = None) -> None:
    """Check that `uv-variants add` ends as `uv add` does, and names a cause if that fails."""
    machine = machine.with_environ({"UV_DEFAULT_INDEX": url, "UV_PYTHON": PYTHON, **QUICK})
    theirs, *their_state = added(machine, machine.plain)
    ours, *our_state = added(machine, machine.run)
    assert ours.code == (code or theirs.code), (ours, theirs)
    assert our_state == their_state
    assert ours.out == theirs.out
    if theirs.code:
        assert one_line(theirs.err, causes), theirs
        assert one_line(ours.err, causes), ours
    assert "Traceback" not in ours.err


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_faults_of_an_index_end_as_with_uv(machine: Machine, fault: Fault) -> None:
    index = plain_index()
    index.page_faults.update(fault.pages)
    index.faults.update(fault.files)
    with served(index):
        compared(machine, index.url, fault.causes, fault.code)


def test_an_index_that_is_not_there(machine: Machine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    compared(machine, f"http://127.0.0.1:{port}/simple/", ("refused",))


@pytest.fixture
def index() -> Iterator[Index]:
    with served(plain_index()) as found:
        yield found


def places_machine(machine: Machine, index: Index, **environ: str) -> Machine:
    project(machine.work, ["plain"])
    return machine.with_environ({"UV_DEFAULT_INDEX": index.url, "UV_PYTHON": PYTHON, **environ})


def test_a_home_that_cannot_be_written(machine: Machine, index: Index) -> None:
    """U11: never worse than without us; below a file there can be no folder, for root either."""
    file = machine.home / "file"
    file.touch()
    names = (
        *("HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "XDG_CACHE_HOME", "XDG_DATA_HOME"),
        *("XDG_CONFIG_HOME", "XDG_STATE_HOME", "VARIANTS_CACHE_DIR", "VARIANTS_STATE_DIR"),
    )
    below = dict.fromkeys(names, str(file / "home"))
    machine = places_machine(machine, index, **below, UV_CACHE_DIR=str(machine.home / "cache"))
    done = machine.run("sync")
    assert done.code == 0, done
    assert installed(machine.work) == {"plain-1.0", "always-1.0"}
    nowhere = machine.with_environ({"UV_CACHE_DIR": str(file / "home")})
    theirs, ours = nowhere.plain("sync", "--reinstall"), nowhere.run("sync", "--reinstall")
    assert ours.code == theirs.code != 0, (ours, theirs)
    assert "Traceback" not in ours.err
    assert one_line(ours.err, ("not a directory",))


@posix
def test_a_full_disk(machine: Machine, index: Index) -> None:
    """Files cannot grow: the command ends as uv does, and the next one works."""
    import resource

    index.add_wheel(Wheel("large", "1.0", files={"large/data.txt": os.urandom(90_000).hex()}))
    machine = places_machine(machine, index)
    project(machine.work, ["large"])

    def limited() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # an error, as on a disk that is full
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))

    ends = [
        subprocess.run(
            [str(program), "sync"],
            env=machine.variables,
            cwd=machine.work,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            preexec_fn=limited,
        )
        for program in (machine.uv, machine.program)
    ]
    assert installed(machine.work) == set()
    assert "Traceback" not in ends[1].stderr
    assert ends[1].returncode == ends[0].returncode != 0, ends
    assert one_line(ends[1].stderr, ("file too large", "os error 27")), ends[1]
    done = machine.run("sync")
    assert done.code == 0, done
    assert installed(machine.work) == {"large-1.0"}


def test_commands_at_once_on_one_project(machine: Machine, index: Index) -> None:
    machine = places_machine(machine, index)
    running = [
        subprocess.Popen(
            [str(machine.program), "add", "always"],
            env=machine.variables,
            cwd=machine.work,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    for process in running:
        _, text = process.communicate(timeout=120)
        assert process.returncode == 0, text
        assert "Traceback" not in text
    done = machine.run("sync", "--locked")
    assert done.code == 0, done
    assert installed(machine.work) == {"plain-1.0", "always-1.0"}


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
    machine: Machine, index: Index, number: signal.Signals, command: tuple[str, ...]
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

    machine = places_machine(machine, index, **QUICK)
    name = slow.filename + (".metadata" if command == ("lock",) else "")
    ends = []
    try:
        for program in (machine.uv, machine.program):
            project(machine.work, [] if command[0] == "add" else ["slow"])
            (machine.work / "uv.lock").unlink(missing_ok=True)
            index.faults[name] = waiting
            asked.clear()
            said = machine.home / "stderr"
            with said.open("w") as stderr:
                process = subprocess.Popen(
                    [str(program), *command],
                    env=machine.variables,
                    cwd=machine.work,
                    stdout=subprocess.DEVNULL,
                    stderr=stderr,
                    start_new_session=True,
                )
            assert asked.wait(30)
            # As a terminal does it; a supervisor ends what it started.
            if number == signal.SIGINT:
                os.killpg(process.pid, number)
            else:
                process.send_signal(number)
            code = process.wait(timeout=30)
            ends.append((code, files_of(machine.work), said.read_text()))
            assert "Traceback" not in ends[-1][2]
        go_on.set()
        # The uv of a command that was killed ends by itself: its connections have ended.
        assert wait_until(lambda: not is_running(process.pid))
        assert ends[1][0] == ends[0][0] != 0, ends
        assert ends[1][1] == ends[0][1]
        del index.faults[name]
        done = machine.run(*command)
        assert done.code == 0, done
        done = machine.run("sync")
        assert done.code == 0, done
        assert installed(machine.work) == {"slow-1.0"}
    finally:
        go_on.set()


def test_a_certificate_that_is_not_trusted_is_an_error_at_once(machine: Machine) -> None:
    """T6, V7: it is no outage, and uv does not ask again."""
    index = plain_index()
    with served(index, Authority(["127.0.0.1"]).leaf("127.0.0.1")):
        # With the retries of uv's default, and its pauses.
        done = machine.run("pip", "install", "--target", "there", "--index-url", index.url, "plain")
    assert done.code == 2, done
    assert "424" in done.err
    assert "retries" not in done.err
    assert "certificate is not accepted" in done.err.splitlines()[-1]
