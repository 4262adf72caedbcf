"""The session of a command: what it answers, what it imports, and what it leaves."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import tempfile
import urllib.request

import pytest

from pep_variants._model.platform import Platform, Support
from support.index import Index, served
from support.projects import app_index
from support.wheels import Wheel
from uv_variants import _private_folder as private_folder
from uv_variants._choices import Choices
from uv_variants._errors import ProxyFailed
from uv_variants._indexes import UserIndex
from uv_variants._private_folder import PrivateFolder
from uv_variants._session import CommandSession
from uv_variants._session_settings import SessionSettings, upstream_of
from variants_proxy.errors import InvalidSetting
from variants_proxy.settings import ClientSettings, Settings
from variants_proxy.urls import Machine, encode

GPU = encode(
    Machine(Platform({"nvidia": Support({"cuda_version_lower_bound": ("12.8", "12.7", "12.6")})}))
)
posix = pytest.mark.skipif(os.name == "nt", reason="modes and links")


@pytest.fixture
def settings(tmp_path, monkeypatch):
    """Return a function from indexes to settings; temporary files are in a folder of the test."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))

    def made(*indexes, **more):
        users = tuple(UserIndex(index.url, f"own{n}") for n, index in enumerate(indexes))
        proxy = Settings(tuple(map(upstream_of, users)), tmp_path / "cache")
        return SessionSettings(proxy, users, ClientSettings(GPU), **more)

    return made


def test_what_the_command_asks(settings, tmp_path):
    other = Index()
    other.add_wheel(Wheel("other", "1.0"))
    with served(app_index(metadata_file=True)) as index, served(other):
        made = settings(index, other, projects={"own1": frozenset(("other",))})
        session = CommandSession(lambda: made)
        try:
            found = Choices(session)
            names = ["app", "always", "other", "missing"]
            assert [each.project for each in found.reports(names)] == names[:3]
            assert found.of("app")["1.0"].chosen.label == "cu128"
            assert (found.of("always"), found.of("other")) == ({}, {})
            files = session.release_files("app", "1.0", index="", tags=(), served=False)
            assert files is not None
            assert session.release_files("no", "1", index="own0", tags=(), served=False) is None
            # And what uv asks.
            proxies = urllib.request.ProxyHandler({"http": session.proxy_url})
            page = urllib.request.build_opener(proxies).open(f"{index.url}app/").read()
            assert b"cu128" in page
            # It listens at one address.
            port = int(session.proxy_url.rpartition(":")[2])
            with pytest.raises(OSError, match=r"refused|not available"):
                socket.create_connection(("127.0.0.2", port)).close()
            assert (session.refusals(), session.failure()) == ([], None)
            assert session.noted_projects() == ["app"]
        finally:
            session.close()
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_command_that_asks_nothing_imports_no_server(tmp_path):
    code = (
        "import sys; from pathlib import Path\n"
        "import uv_variants._run\n"
        "from uv_variants._session import CommandSession\n"
        "from uv_variants._session_settings import SessionSettings\n"
        "from variants_proxy.settings import ClientSettings, Settings\n"
        "proxy = Settings((), Path(sys.argv[1]))\n"
        "session = CommandSession(lambda: SessionSettings(proxy, (), ClientSettings('1~')))\n"
        "session.open()\n"
        "session.close()\n"
        "print(*({'uvicorn', 'starlette', 'httpcore', 'httpx', 'h11'} & set(sys.modules)))\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


def test_a_fault_is_reported(settings, monkeypatch):
    def fails(_):
        raise InvalidSetting("two indexes have the name x")

    monkeypatch.setattr("variants_proxy.service.Service", fails)
    with served(app_index()) as index:
        made = settings(index)
        session = CommandSession(lambda: made)
        session.open()
        try:
            with pytest.raises(ProxyFailed, match="two indexes have the name x"):
                session.reports(["app"])
            assert session.failure() is not None
        finally:
            session.close()


@posix
def test_the_folder_is_private_and_alone(settings, tmp_path):
    """T3: what is left is removed; what runs, is a link, or others could write, is not."""
    folder = tmp_path / "tmp"
    running, left = PrivateFolder(), PrivateFolder()
    assert stat.S_IMODE(running.path.stat().st_mode) == 0o700
    os.close(left._lock)  # as if it had been killed
    kept = tmp_path / "kept"
    kept.mkdir(mode=0o700)
    (kept / "in-use").touch()
    (folder / "uv-variants-link").symlink_to(kept)
    shared = folder / "uv-variants-shared"
    shared.mkdir()
    (shared / "in-use").touch()
    shared.chmod(0o755)
    for path in (running.path, left.path, shared, kept):
        os.utime(path, (0, 0))
    with pytest.raises(FileExistsError):
        running.write("in-use", b"")
    new = PrivateFolder()
    assert {path.name for path in folder.iterdir()} == {
        running.path.name,
        new.path.name,
        shared.name,
        "uv-variants-link",
    }
    assert (kept / "in-use").exists()
    assert private_folder._is_left(new.path) is False
    for each in (running, new):
        each.remove()
        each.remove()
