"""The daemon: sessions behind one port, and its end when it is idle."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from uv_variants.errors import USER_ERRORS, UvVariantsError
from uv_variants.transport import Authority, Transport

from .control import Control
from .identity import identity
from .known_bundles import remember_bundle
from .record import read_record, remove_record
from .session import SessionSettings
from .sessions import OpenSession, Sessions
from .start_lock import locked

TICK = 1.0
CODE_SECONDS = 30.0
"""Seconds between two looks at the code on disk."""
LOG_BYTES = 2**20
MEMORY_BYTES = 512 * 2**20
"""A daemon that has more ends when it has no session: the next command starts another one."""
END_SECONDS = 2.0
"""Seconds for requests in progress when the daemon ends."""


class Daemon:
    """A daemon.

    Its state file is removed before it stops listening, so no command finds a port without daemon.
    """

    def __init__(self, message: Mapping[str, Any]) -> None:
        """Set up; see `process` for *message*."""
        logging.basicConfig(stream=sys.stderr, level="WARNING", format="%(message)s")
        self._folder = Path(message["folder"])
        self._path = Path(message["record"]) if message["record"] else None
        self._identity = str(message["identity"])
        self._idle = float(message["idle"])
        self._first = message["first"]
        self._started = float(message["started"])
        self._secret = str(message["secret"])
        self._sessions = Sessions(self._secret)
        self._authority, self._made = _authority(self._folder)
        control = Control(
            self._secret, self._sessions, self._opened, self._status, self._stop, self._is_ending
        )
        self._transport = Transport(
            self._authority, self._sessions.route, control, self._sessions.forwarder
        )
        self._ending = False
        self._opening = 0
        self._looked = time.monotonic()

    def run(self, listening: socket.socket) -> None:
        """Serve at *listening* until the end."""
        try:
            asyncio.run(self._run(listening))
        finally:
            self._forget()
            self._sessions.services.close()
            if self._made is not None:
                self._made.cleanup()

    async def _run(self, listening: socket.socket) -> None:
        with suppress(*USER_ERRORS):  # the command gets the error when it connects
            first = await self._opened(self._first["id"], self._first["settings"])
            first.pid = int(self._first["pid"])
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            with suppress(NotImplementedError, ValueError):  # Windows
                loop.add_signal_handler(number, self._transport.close)
        serving = asyncio.create_task(self._transport.serve([listening]))
        watching = asyncio.create_task(self._watch())
        await asyncio.wait((serving, watching), return_when=asyncio.FIRST_COMPLETED)
        self._ending = True
        await asyncio.to_thread(self._forget)  # a command may have the lock, and ask meanwhile
        self._transport.close()
        watching.cancel()
        await asyncio.wait((serving,), timeout=END_SECONDS)

    async def _opened(self, name: str, tree: Any) -> OpenSession:  # noqa: ANN401
        """Open the session with an id and a tree of settings; see `Sessions.open` for errors."""
        known = self._sessions.by_id(name)
        if known is not None:
            return known
        settings = SessionSettings.from_tree(tree)
        self._opening += 1
        try:
            bundle, roots = await asyncio.to_thread(self._certificates, settings)
            return self._sessions.open(OpenSession(name, settings, bundle, roots))
        finally:
            self._opening -= 1

    def _certificates(self, settings: SessionSettings) -> tuple[Path, Path]:
        system = settings.system_certs
        bundle, roots = self._authority.files(settings.environ, system=system)
        if self._made is None:
            given = settings.environ.get("SSL_CERT_FILE", "")
            import certifi

            with suppress(OSError):
                remember_bundle(
                    self._folder,
                    settings,
                    bundle,
                    (self._folder / "authority.pem", Path(given or certifi.where())),
                )
        return bundle, roots

    # --- the end

    async def _watch(self) -> None:
        """Return when the daemon is to end."""
        while True:
            self._sessions.expire()
            if self._may_end():
                self._ending = True  # at once: a session that is opened now would be lost
                return
            await asyncio.sleep(TICK if self._idle else TICK / 5)

    def _may_end(self) -> bool:
        now = time.monotonic()
        if now - self._looked > CODE_SECONDS:
            self._looked = now
            _shorten_log()
            if not self._is_current():
                self._stop()
        if len(self._sessions) or self._opening:
            return False
        if self._ending or now - self._sessions.last_end >= self._idle:
            return True
        return memory_bytes() > MEMORY_BYTES

    def _is_current(self) -> bool:
        """Return whether commands still find this daemon, and it is of the code on disk."""
        if self._path is None:
            return True
        record = read_record(self._path)
        return record is not None and record.secret == self._secret and identity() == self._identity

    def _is_ending(self) -> bool:
        return self._ending

    def _stop(self) -> None:
        """Take no more sessions, and end after the last one."""
        self._ending = True
        self._forget()

    def _forget(self) -> None:
        """Remove the state file, so that the next command starts another daemon."""
        path, self._path = self._path, None
        if path is None:
            return
        with suppress(OSError), locked(self._folder / "daemon.lock", 5.0):
            record = read_record(path)
            if record is not None and record.secret == self._secret:
                remove_record(path, record)

    # --- status

    async def _status(self) -> dict[str, Any]:
        from uv_variants.program_version import own_version

        return {
            "pid": os.getpid(),
            "version": own_version(),
            "python": sys.executable,
            "started": self._started,
            "sessions": len(self._sessions),
            "services": len(self._sessions.services),
            "memory": memory_bytes(),
            "caches": [str(path) for path in self._sessions.services.caches()],
            "idle": self._idle,
            "ending": self._ending,
        }


def _authority(folder: Path) -> tuple[Authority, tempfile.TemporaryDirectory[str] | None]:
    """Return the authority in *folder*, or one in a temporary folder if that cannot be used."""
    try:
        return Authority.load_or_create(folder), None
    except UvVariantsError as error:
        print(f"{error}: using temporary certificates", file=sys.stderr)
        made = tempfile.TemporaryDirectory(prefix="uv-variants-", ignore_cleanup_errors=True)
        return Authority.load_or_create(Path(made.name)), made


def memory_bytes() -> int:
    """Return the memory that this process uses now, 0 if the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return _most_memory()
    return pages * os.sysconf("SC_PAGE_SIZE")


def _most_memory() -> int:
    """Return the most memory that this process has used: macOS tells no other."""
    try:
        import resource
    except ImportError:
        return 0
    found = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return found if sys.platform == "darwin" else found * 1024


def _shorten_log() -> None:
    """Empty the error output if it is a file that has grown."""
    with suppress(OSError):
        if os.fstat(2).st_size > LOG_BYTES:
            os.ftruncate(2, 0)
