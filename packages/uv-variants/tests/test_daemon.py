"""The daemon's life: started by commands, shared by them, restored and ended."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import replace

import pytest

from pep_variants.model.platform import Platform
from uv_variants import daemon
from uv_variants.daemon.control_client import ControlClient, NoDaemon
from uv_variants.daemon.overview import daemon_rows, stop_daemons
from uv_variants.daemon.place import retire
from uv_variants.daemon.record import Record, read_record, record_path, write_record
from uv_variants.daemon.server import Daemon
from uv_variants.daemon.session import SessionSettings
from uv_variants.daemon.tokens import new_id, new_secret
from uv_variants.indexes import UserIndex
from variants_proxy import Machine, encode

KEY = encode(Machine(Platform({}), target="linux-x86_64"))
SECONDS = 60.0


def wait_for(condition, seconds=SECONDS):
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)
    return found


@pytest.fixture
def environ(tmp_path):
    found = {**os.environ, "VARIANTS_STATE_DIR": str(tmp_path / "state"), "HOME": str(tmp_path)}
    found.pop("VARIANTS_DAEMON_IDLE", None)
    yield found
    end(found)


def end(environ):
    """End the daemon, also while sessions are open."""
    record = read_record(record_path(environ))
    if record is not None and retire(record):
        os.kill(record.pid, signal.SIGTERM)
        wait_for(lambda: is_gone(record))


@pytest.fixture
def settings(tmp_path):
    index = UserIndex("http://127.0.0.1:9/simple/", "nothing")
    return SessionSettings((index,), KEY, tmp_path / "cache")


@contextmanager
def opened(environ, settings, **options):
    session = daemon.connect(environ, settings, **options)
    try:
        yield session
    finally:
        session.close()


def status(environ):
    record = read_record(record_path(environ))
    assert record is not None
    control = ControlClient(record.port, record.secret, seconds=SECONDS)
    try:
        return control.request("GET", "/status")
    finally:
        control.close()


def is_gone(record):
    try:
        ControlClient(record.port, record.secret, seconds=5).close()
    except NoDaemon:
        return True
    return False


class TestSharing:
    def test_two_commands_one_daemon(self, environ, settings):
        with opened(environ, settings) as first, opened(environ, settings) as second:
            assert first.port == second.port
            assert first.id != second.id
            assert first.token != second.token
            assert first.ca_file.read_bytes() == second.ca_file.read_bytes()
            assert b"BEGIN CERTIFICATE" in first.ca_file.read_bytes()
            found = status(environ)
            assert (found["sessions"], found["services"]) == (2, 1)
            assert found["pid"] != os.getpid()
        wait_for(lambda: status(environ)["sessions"] == 0)

    def test_other_indexes_another_service(self, environ, settings):
        other = replace(settings, indexes=(UserIndex("http://127.0.0.1:9/other/"),))
        with opened(environ, settings), opened(environ, other) as session:
            assert session.ca_file
            assert status(environ)["services"] == 2

    def test_the_files_are_private(self, environ, settings):
        with opened(environ, settings) as session:
            assert session.ca_file
            folder = record_path(environ).parent
            if os.name != "nt":
                assert folder.stat().st_mode & 0o077 == 0
                assert record_path(environ).stat().st_mode & 0o077 == 0
            secret = read_record(record_path(environ)).secret
            assert secret not in session.proxy_url

    def test_many_at_once_start_one(self, environ, settings):
        code = (
            "import json, sys\n"
            "from uv_variants import daemon\n"
            "from uv_variants.daemon.session import SessionSettings\n"
            "tree = json.load(sys.stdin)\n"
            "session = daemon.connect(dict(__import__('os').environ),"
            " SessionSettings.from_tree(tree))\n"
            "session.ca_file\n"
            "print(session.port, flush=True)\n"
            "sys.stdin.close(); session.close()\n"
        )
        commands = [
            subprocess.Popen(
                [sys.executable, "-c", code],
                env=environ,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for _ in range(50)
        ]
        for command in commands:
            command.stdin.write(json.dumps(settings.tree()))
            command.stdin.close()
            command.stdin = None
        ports = {command.communicate(timeout=180)[0] for command in commands}
        assert len(ports) == 1
        assert [command.returncode for command in commands] == [0] * 50


class TestEnd:
    def test_idle(self, environ, settings):
        environ["VARIANTS_DAEMON_IDLE"] = "0.2"
        with opened(environ, settings) as session:
            assert session.ca_file
            record = read_record(record_path(environ))
        wait_for(lambda: is_gone(record))
        assert read_record(record_path(environ)) is None

    def test_a_session_that_is_opened_is_one(self, settings, tmp_path):
        message = {"folder": str(tmp_path), "record": None, "identity": "", "secret": "s"}
        message.update(idle=0, first=None, started=time.time())

        async def run():
            found = Daemon(message)
            assert found._may_end()
            opening = asyncio.create_task(found._opened(new_id(), settings.tree()))
            await asyncio.sleep(0)
            assert not found._may_end()
            session = await opening
            assert not found._may_end()
            found._sessions.end(session.id)
            assert found._may_end()

        asyncio.run(run())

    def test_zero_ends_with_the_command(self, environ, settings):
        environ["VARIANTS_DAEMON_IDLE"] = "0"
        with opened(environ, settings) as session:
            folder = session.ca_file.parent
            assert read_record(record_path(environ)) is None
        wait_for(lambda: not folder.exists())

    def test_a_killed_command(self, environ, settings):
        code = (
            "import json, os, signal, sys\n"
            "from uv_variants import daemon\n"
            "from uv_variants.daemon.session import SessionSettings\n"
            "session = daemon.connect(dict(os.environ),"
            " SessionSettings.from_tree(json.load(sys.stdin)))\n"
            "session.ca_file\n"
            "os.kill(os.getpid(), signal.SIGTERM)\n"
        )
        text = json.dumps(settings.tree())
        subprocess.run(
            [sys.executable, "-c", code], env=environ, input=text, text=True, check=False
        )
        wait_for(lambda: status(environ)["sessions"] == 0)

    def test_stopped_while_in_use(self, environ, settings):
        with opened(environ, settings) as first:
            assert first.ca_file
            record = read_record(record_path(environ))
            assert retire(record)
            with opened(environ, settings) as second:
                assert second.ca_file
                assert second.port != first.port
            assert not is_gone(record)
        wait_for(lambda: is_gone(record))

    def test_other_code(self, environ, settings):
        with opened(environ, settings) as first:
            assert first.ca_file
            record = read_record(record_path(environ))
            write_record(record_path(environ), replace(record, identity="other"))
            with opened(environ, settings) as second:
                assert second.ca_file
                assert second.port != first.port
        wait_for(lambda: is_gone(record))


@pytest.mark.skipif(os.name == "nt", reason="signals")
class TestKilled:
    def test_the_command_restores_it(self, environ, settings):
        with opened(environ, settings) as session, opened(environ, settings) as other:
            assert other.ca_file
            before = read_record(record_path(environ))
            os.kill(before.pid, signal.SIGKILL)
            wait_for(lambda: (r := read_record(record_path(environ))) and r.pid != before.pid)
            wait_for(lambda: status(environ)["sessions"] == 2)
            after = read_record(record_path(environ))
            assert (after.port, after.secret) == (before.port, before.secret)
            assert session.failure() is None
            assert other.failure() is None

    def test_the_next_command_starts_another(self, environ, settings):
        with opened(environ, settings) as session:
            assert session.ca_file
        before = read_record(record_path(environ))
        os.kill(before.pid, signal.SIGKILL)
        wait_for(lambda: is_gone(before))
        with opened(environ, settings) as session:
            assert session.ca_file
            assert session.port == before.port

    def test_the_port_is_taken(self, environ, settings):
        with opened(environ, settings) as session:
            assert session.ca_file
        before = read_record(record_path(environ))
        os.kill(before.pid, signal.SIGKILL)
        wait_for(lambda: is_gone(before))
        with foreign_server(before.port) as heard, opened(environ, settings) as session:
            assert session.ca_file
            assert session.port != before.port
            after = read_record(record_path(environ))
            assert after.secret != before.secret
        assert before.secret not in "".join(heard)

    def test_a_stopped_process_at_the_port(self, environ, settings):
        """A state file whose process id is alive again, and a port that is silent."""
        with socket.create_server(("127.0.0.1", 0)) as silent:
            port = silent.getsockname()[1]
            identity = daemon.place.identity()
            record = Record(os.getpid(), port, new_secret(), identity, 1.0)
            write_record(record_path(environ), record)
            with opened(environ, settings) as session:
                assert session.ca_file
                assert session.port != port


@contextmanager
def foreign_server(port):
    """A web server of another program; yields what it hears."""
    heard = []
    with socket.create_server(("127.0.0.1", port)) as listening:

        def answer():
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    heard.append(connection.recv(65536).decode("latin-1"))
                    body = b'{"status": "ok", "proof": "00"}'
                    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)
                    connection.sendall(head + body)

        threading.Thread(target=answer, daemon=True).start()
        yield heard
        listening.shutdown(socket.SHUT_RDWR)


class TestUnwritable:
    def test_state(self, tmp_path, environ, settings):
        (tmp_path / "file").write_text("")
        environ["VARIANTS_STATE_DIR"] = str(tmp_path / "file" / "state")
        lines = []
        with opened(environ, settings, warn=lines.append) as session:
            folder = session.ca_file.parent
        assert len(lines) == 1
        assert str(tmp_path / "file") in lines[0]
        wait_for(lambda: not folder.exists())

    def test_no_room_for_certificates(self, environ, settings):
        """The files of the state fit, those of certificates do not."""
        code = (
            "import json, os, resource, sys\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))\n"
            "from uv_variants import daemon, errors\n"
            "from uv_variants.daemon.session import SessionSettings\n"
            "try:\n"
            "    session = daemon.connect(dict(os.environ),"
            " SessionSettings.from_tree(json.load(sys.stdin)))\n"
            "    session.ca_file\n"
            "except errors.ProxyFailed as error:\n"
            "    print(error)\n"
        )
        text = json.dumps(settings.tree())
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environ,
            input=text,
            text=True,
            check=False,
            capture_output=True,
            timeout=180,
        )
        assert "too large" in done.stdout, done
        assert len(done.stdout.splitlines()) == 1


class TestNotAtOnce:
    def test_no_daemon_without_a_request(self, environ, settings):
        with opened(environ, settings) as session:
            assert session.ca_file
        assert retire(read_record(record_path(environ)))
        wait_for(lambda: read_record(record_path(environ)) is None)
        with opened(environ, settings, at_once=False) as session:
            assert session.ca_file.is_file()
            assert session.refusals() == session.noted_projects() == []
            assert session.failure() is None
        assert read_record(record_path(environ)) is None

    def test_a_request_starts_it(self, environ, settings):
        with opened(environ, settings) as session:
            assert session.ca_file
        assert retire(read_record(record_path(environ)))
        wait_for(lambda: read_record(record_path(environ)) is None)
        with opened(environ, settings, at_once=False) as session:
            with socket.create_connection(("127.0.0.1", session.port), timeout=SECONDS) as client:
                client.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert client.recv(15) == b"HTTP/1.1 200 OK"
            assert status(environ)["sessions"] == 1
            assert read_record(record_path(environ)).port == session.port

    def test_the_first_time_it_starts(self, environ, settings):
        with opened(environ, settings, at_once=False) as session:
            assert session.ca_file.is_file()
            assert status(environ)["sessions"] == 1


def test_the_command_imports_little():
    code = (
        "import sys\n"
        "import uv_variants.daemon.connection, uv_variants.daemon.place\n"
        "found = {'asyncio', 'httpx', 'starlette', 'cryptography', 'filelock', 'ssl',"
        " 'http.client'} & set(sys.modules)\n"
        "print(sorted(found))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


class TestOverview:
    def test_status(self, environ, settings):
        assert daemon_rows(environ) == []
        with opened(environ, settings) as session:
            assert session.ca_file
            rows = dict(daemon_rows(environ))
        assert rows["commands"] == "1"
        assert f"port {session.port}" in rows["daemon"]
        assert rows["cache"].startswith(str(settings.cache))
        assert rows["ends"] == "600 seconds after the last command"

    def test_stop(self, environ, settings):
        assert stop_daemons(environ) == []
        with opened(environ, settings) as session:
            assert session.ca_file
            (line,) = stop_daemons(environ)
            assert line.endswith("ends after the command that it serves")
            assert daemon_rows(environ) == []
        with opened(environ, settings) as session:
            assert session.ca_file
        wait_for(lambda: dict(daemon_rows(environ))["commands"] == "0")
        (line,) = stop_daemons(environ)
        assert line.startswith("Stopped process")

    def test_a_stale_file_is_removed(self, environ):
        record = Record(1, 9, new_secret(), "other", 1.0)
        write_record(record_path(environ), record)
        assert stop_daemons(environ) == []
        assert not record_path(environ).exists()
