"""`uv-variants` as a program: terminals, signals, faults, users, and proxies that keep running."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import stat
import sys
import threading
import zipfile
from collections.abc import Callable

import pytest

from support.index import Answer, Index
from support.projects import app_index, built_against
from support.uvs import Machine, project
from support.waiting import wait_until
from support.wheels import Wheel

PYTHON = sys.executable
Serve = Callable[[Index], Index]
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")


@pytest.fixture
def index(serve: Serve) -> Index:
    return serve(app_index(metadata_file=True))


def test_what_needs_no_index_is_uvs_own(machine: Machine) -> None:
    for arguments in (
        ("cache", "dir"),
        ("generate-shell-completion", "bash"),
        ("pip", "install", "--help"),
        ("pip", "list", "--python", PYTHON),
        ("no-such-command",),
        ("pip", "install", "--no-such-option"),
    ):
        ours, plain = machine.run(*arguments), machine.plain(*arguments)
        assert (ours.code, ours.out, ours.err) == (plain.code, plain.out, plain.err), arguments


def test_pip_check(machine: Machine) -> None:
    """It compares a variant with what it is built against, as pip with the shim does."""
    environment = machine.create_environment(PYTHON)
    index = Index()
    index.add_release(built_against("app", "2.8"))
    wheels = [index.files["app"]["app-1.0-py3-none-any-t28.whl"]]
    for torch, code in (("2.8.1", 0), ("2.9.0", 1)):
        for wheel in [*wheels, Wheel("torch", torch).build()]:
            with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
                archive.extractall(environment.site_packages)
        plain, done = machine.plain("pip", "check"), machine.run("pip", "check")
        assert plain.code == 0
        assert done.code == code, done
        line = f"app 1.0 (variant t28) is built against torch 2.8.*, and torch {torch} is installed"
        assert (f"uv-variants: {line}\n" in done.err) is bool(code), done
        quiet = machine.run("pip", "check", "--quiet")
        assert (quiet.code, quiet.err) == (code, ""), quiet
        shutil.rmtree(environment.site_packages / f"torch-{torch}.dist-info")
    assert machine.run("pip", "check", "--help").out == machine.plain("pip", "check", "--help").out


_BUILD = """
import json, os, re, urllib.error, urllib.request
URL, SEEN = {url!r}, {seen!r}
def build_wheel(folder, config_settings=None, metadata_directory=None):
    with open(os.environ["XDG_CONFIG_DIRS"].split(os.pathsep)[0] + "/uv/uv.toml") as file:
        (proxy,) = re.findall('http-proxy = "(.*)"', file.read())
    handler = urllib.request.ProxyHandler(dict(http=proxy))
    try:
        code = urllib.request.build_opener(handler).open(URL).status
    except urllib.error.HTTPError as error:
        code = error.code
    with open(SEEN, "w") as file:
        json.dump([code, [name for name, value in os.environ.items() if proxy in value]], file)
    raise SystemExit("no wheel")
"""


@pytest.mark.skipif(os.name == "nt", reason="has the proxy in variables there")
def test_what_a_build_gets_with_the_token(machine: Machine, serve: Serve) -> None:
    """It finds the proxy in a file, and gets none of the user's logins from it."""
    index = serve(Index(credentials="user:secret"))
    index.add_wheel(Wheel("app", "1.0"))
    sources, seen = machine.work / "sources", machine.home / "seen"
    sources.mkdir()
    page = f"{index.url}app/"
    (sources / "backend.py").write_text(_BUILD.format(url=page, seen=str(seen)))
    (sources / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    )
    login = index.url.replace("://", "://user:secret@")
    machine = machine.with_environ({"UV_DEFAULT_INDEX": login})
    machine.create_environment(PYTHON)
    done = machine.run("pip", "install", "app")
    assert done.code == 0, done
    done = machine.run("pip", "install", "--reinstall", "app", str(sources))
    assert "no wheel" in done.err, done
    assert json.loads(seen.read_text()) == [401, []]


@linux
def test_what_a_killed_command_left_is_removed_by_the_next(machine: Machine, index: Index) -> None:
    """T3, T6: its folder; a link of that name, and a folder of a command that runs, stay."""
    released = threading.Event()

    def held() -> Answer:
        released.wait(60)
        return Answer(503)

    index.faults["/simple/always/"] = held
    folder = machine.home / "tmp"
    folder.mkdir(mode=0o700)
    machine = machine.with_environ({"UV_DEFAULT_INDEX": index.url, "TMPDIR": str(folder)})
    machine.create_environment(PYTHON)
    kept = machine.home / "kept"
    kept.mkdir()
    (kept / "in-use").touch()
    (folder / "uv-variants-link").symlink_to(kept)
    project(machine.work, [])
    process = machine.start(machine.program, "pip", "install", "always")
    try:
        assert wait_until(lambda: index.requests)
        (left,) = (path for path in folder.iterdir() if not path.is_symlink())
        assert stat.S_IMODE(left.stat().st_mode) == 0o700
        os.utime(left, (0, 0))
        assert machine.run("lock").code == 0
        assert left.is_dir()  # its command runs
    finally:
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
    """Neither command lines, variables nor files that others can read hold a secret."""
    index.credentials = "user:secret"
    seen, uv = machine.home / "seen", machine.home / "uv-that-tells"
    seen.mkdir()
    uv.write_text(
        f'#!/bin/sh\ncd {seen}\n(env; echo "$@"; cat /proc/$PPID/cmdline) > public\n'
        'folder=${XDG_CONFIG_DIRS%%:*}\nstat -c %a "$folder" > mode\n'
        f'cp "$folder/uv/uv.toml" settings\ncd - > /dev/null\nexec {machine.uv} "$@"\n'
    )
    uv.chmod(0o755)
    url = index.url.replace("://", "://user:secret@")
    machine = machine.with_environ({"UV_DEFAULT_INDEX": url, "VARIANTS_UV": str(uv)})
    machine.create_environment(PYTHON)
    done = machine.run("pip", "install", "always")
    assert done.code == 0, done
    told = (seen / "public").read_text()
    assert "http://uv:" not in told
    assert "secret" not in told.replace(url, "")
    assert (seen / "mode").read_text() == "700\n"
    assert "http://uv:" in (seen / "settings").read_text()
    for path in machine.home.rglob("*"):
        if path.is_file() and "cache" in path.parts[len(machine.home.parts)]:
            assert b"secret" not in path.read_bytes(), path
    proxy_folder = machine.home / "variants-cache" / "proxy"
    assert stat.S_IMODE(proxy_folder.stat().st_mode) == 0o700


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
