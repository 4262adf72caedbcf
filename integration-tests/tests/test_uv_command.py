"""`uv-variants` as a program: terminals, signals, faults, users, and proxies that keep running."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.index import Answer, Index
from support.projects import app_index
from support.uvs import Machine, project
from support.waiting import wait_until
from support.wheels import Wheel

PYTHON = sys.executable
Serve = Callable[[Index], Index]
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")


@pytest.fixture
def index(serve: Serve) -> Index:
    return serve(app_index(metadata_file=True))


@contextmanager
def started(machine: Machine, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run `uv-variants`, in a process group of its own as a shell would."""
    process = subprocess.Popen(
        [str(machine.program), *arguments],
        env=machine.variables,
        cwd=machine.work,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        process.communicate()


def test_what_needs_no_index_is_uvs_own(machine: Machine) -> None:
    for arguments in (
        ("cache", "dir"),
        ("pip", "install", "--help"),
        ("pip", "list", "--python", PYTHON),
        ("no-such-command",),
        ("pip", "install", "--no-such-option"),
    ):
        ours, plain = machine.run(*arguments), machine.plain(*arguments)
        assert (ours.code, ours.out, ours.err) == (plain.code, plain.out, plain.err), arguments


@linux
def test_what_a_killed_command_left_is_removed_by_the_next(machine: Machine, index: Index) -> None:
    """T3, T6: its folder; a link of that name, and a folder of a command that runs, stay."""
    released = threading.Event()

    def held() -> Answer:
        released.wait(60)
        return Answer(503)

    index.page_faults["always"] = held
    folder = machine.home / "tmp"
    folder.mkdir(mode=0o700)
    machine = machine.with_environ({"UV_DEFAULT_INDEX": index.url, "TMPDIR": str(folder)})
    machine.create_environment(PYTHON)
    kept = machine.home / "kept"
    kept.mkdir()
    (kept / "in-use").touch()
    (folder / "uv-variants-link").symlink_to(kept)
    project(machine.work, [])
    with started(machine, "pip", "install", "always") as process:
        assert wait_until(lambda: index.requests)
        (left,) = (path for path in folder.iterdir() if not path.is_symlink())
        assert stat.S_IMODE(left.stat().st_mode) == 0o700
        os.utime(left, (0, 0))
        assert machine.run("lock").code == 0
        assert left.is_dir()  # its command runs
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(10)
        released.set()
    # The server ended with the command: nothing listens any more.
    os.utime(left, (0, 0))
    assert machine.run("lock").code == 0
    assert machine.run("pip", "install", "does-not-exist").code != 0
    assert [path.name for path in folder.iterdir()] == ["uv-variants-link"]
    assert (kept / "in-use").exists()


@linux
def test_other_users_cannot_use_the_proxy(machine: Machine, index: Index) -> None:
    index.credentials = "user:secret"
    url = index.url.replace("://", "://user:secret@")
    released = threading.Event()

    def held() -> Answer:
        released.wait(60)
        return Answer(503)

    index.faults["always-1.0-py3-none-any.whl"] = held
    # A uv whose command is killed asks no more.
    machine = machine.with_environ({"UV_DEFAULT_INDEX": url, "UV_HTTP_RETRIES": "0"})
    machine.create_environment(PYTHON)
    with started(machine, "pip", "install", "always") as process:
        assert wait_until(lambda: any(path.endswith(".whl") for path in index.requests))
        addresses = listening(process.pid)
        assert [host for host, _ in addresses] == ["127.0.0.1"]
        port = addresses[0][1]
        path = next(item for item in index.requests if item.startswith("/simple"))
        for headers in ({}, {"Authorization": "Basic dXY6"}, {"Host": "localhost"}):
            with pytest.raises(urllib.error.HTTPError) as caught:
                urllib.request.urlopen(
                    urllib.request.Request(f"http://127.0.0.1:{port}/p/x{path}", headers=headers)
                )
            assert caught.value.code == 407
        # Neither command lines nor files that others can read hold a secret.
        assert b"secret" not in Path(f"/proc/{process.pid}/cmdline").read_bytes()
        environ = child_environ(process.pid)
        assert b"http://uv:" not in environ  # what uv starts does not see the token either
        place = re.search(rb"XDG_CONFIG_DIRS=([^:\0]+)", environ)
        assert place is not None
        folder = Path(os.fsdecode(place[1]))
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert b"http://uv:" in (folder / "uv" / "uv.toml").read_bytes()
        released.set()
    for path in machine.home.rglob("*"):
        if path.is_file() and "cache" in path.parts[len(machine.home.parts)]:
            assert b"secret" not in path.read_bytes(), path
    proxy_folder = machine.home / "variants-cache" / "proxy"
    assert stat.S_IMODE(proxy_folder.stat().st_mode) == 0o700


def listening(process: int) -> list[tuple[str, int]]:
    """Return the addresses at which *process* listens."""
    inodes = set()
    for link in Path(f"/proc/{process}/fd").iterdir():
        with contextlib.suppress(OSError):
            match = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(link))
            if match:
                inodes.add(match[1])
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{process}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                host, port = fields[1].split(":")
                address = socket.inet_ntoa(bytes.fromhex(host)[::-1]) if table == "tcp" else host
                found.append((address, int(port, 16)))
    return found


def child_environ(process: int) -> bytes:
    """Return the environment of the uv that *process* started."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            status = (folder / "status").read_text()
            is_child = re.search(rf"^PPid:\s+{process}$", status, re.M)
            if is_child and b"uv_variants" not in (folder / "cmdline").read_bytes():
                return (folder / "environ").read_bytes()
    raise AssertionError("there is no uv")


def test_what_was_published_a_moment_ago_is_seen(machine: Machine, serve: Serve) -> None:
    """V2: a new release, a new project, and one that was asked for before it was there."""
    index = Index()
    index.add_wheel(Wheel("plain", "1.0"))
    machine = machine.with_environ({"UV_DEFAULT_INDEX": serve(index).url})
    machine.create_environment(PYTHON)
    assert machine.run("pip", "install", "plain").code == 0
    assert machine.run("pip", "install", "new").code != 0
    index.add_wheel(Wheel("plain", "2.0"))
    index.add_wheel(Wheel("new", "1.0"))
    done = machine.run("pip", "install", "--upgrade", "plain", "new")
    assert done.code == 0, done
    assert "+ plain==2.0" in done.err
    assert "+ new==1.0" in done.err
