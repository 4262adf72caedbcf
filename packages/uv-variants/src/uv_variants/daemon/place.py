"""Where a daemon's files are, and how one is started there: shared, or of one command's own."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from variants_proxy.server.listening import LOOPBACK, listen

from .control_client import ControlClient, NoDaemon, Refused
from .identity import identity
from .known_bundles import known_bundle
from .launch import last_words, launch
from .record import (
    Record,
    idle_seconds,
    read_record,
    record_path,
    state_folder,
    write_record,
)
from .session import SessionSettings
from .start_lock import locked
from .tokens import new_secret

LOCK_SECONDS = 60.0
NEW_SECONDS = 120.0
"""Age in seconds up to which a daemon may still be importing what it needs."""


class DaemonPlace:
    """The place of the daemon that the user's commands share."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.folder = state_folder(environ)
        self._path: Path | None = record_path(environ)
        self._started = False
        self._idle = idle_seconds(environ)
        self._identity = identity()
        self._left: Record | None = None

    def running(self) -> Record | None:
        """Return the daemon of the state file if it is of this code; it may have ended.

        One of other code is asked to end as soon as the commands that use it have ended.
        """
        self._left = None
        record = read_record(self._path) if self._path is not None else None
        if record is None:
            return None
        if record.identity != self._identity:
            retire(record)
            return None
        self._left = record
        return record

    def patience(self, record: Record) -> float:
        """Return for how many seconds an answer of *record* is worth waiting for."""
        if os.name != "nt" and not _exists(record.pid):
            return 1.0
        return 30.0 if abs(time.time() - record.started) < NEW_SECONDS else 5.0

    def answers(self, record: Record) -> bool:
        """Return whether the daemon *record* runs."""
        try:
            ControlClient(record.port, record.secret, seconds=self.patience(record)).close()
        except NoDaemon:
            return False
        return True

    def known_bundle(self, settings: SessionSettings) -> Path | None:
        """Return the certificates for uv, if a daemon has put them there before."""
        return known_bundle(self.folder, settings)

    def listen(self, port: int = 0) -> socket.socket:
        """Return a socket that listens at *port* of loopback, by default a free one.

        Raises:
            OSError: it is in use.
        """
        return listen(LOOPBACK, port)

    def listen_again(self) -> socket.socket:
        """Return a socket at the port of the daemon that left its state file, else at a free one.

        So the commands that still use that daemon find the new one.
        """
        if self._left is not None:
            try:
                return self.listen(self._left.port)
            except OSError:
                self._left = None  # its secret may be known to another program
        return self.listen()

    def new_secret(self) -> str:
        """Return a new secret."""
        return new_secret()

    def secret_for(self, port: int) -> str:
        """Return the secret of a daemon at *port*: that of the one that left its state file."""
        if self._left is not None and self._left.port == port:
            return self._left.secret
        return new_secret()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Start and end no daemon elsewhere meanwhile."""
        with locked(self.folder / "daemon.lock", LOCK_SECONDS):
            yield

    def start(
        self,
        environ: Mapping[str, str],
        listening: socket.socket,
        secret: str,
        first: Mapping[str, Any],
        *,
        beside: bool = False,
    ) -> None:
        """Start a daemon, and write its state file.

        Args:
            environ: environment variables of the command.
            listening: its socket.
            secret: of the daemon.
            first: id and settings of its first session.
            beside: it is for this session alone, and has no state file.

        Raises:
            OSError: a file cannot be written, or no process started.
        """
        self._started = True
        shared = self._path if not beside else None
        now = time.time()
        if shared is not None:
            # Before there is a process: if this cannot be written, none is left over.
            write_record(
                shared,
                Record(os.getpid(), listening.getsockname()[1], secret, self._identity, now),
            )
        message = {
            "folder": str(self.folder),
            "record": str(shared) if shared is not None else None,
            "identity": self._identity,
            "secret": secret,
            "idle": self._idle if shared is not None else 0,
            "temporary": self._path is None,
            "first": {**first, "pid": os.getpid()},
            "started": now,
        }
        pid = launch(environ, listening, message, self.folder / "daemon.log")
        if shared is not None:
            record = Record(pid, listening.getsockname()[1], secret, self._identity, now)
            write_record(shared, record)

    def last_words(self) -> str:
        """Return the last line of the daemon's error output."""
        return last_words(self.folder / "daemon.log")

    def close(self) -> None:
        """Leave everything as it is: the daemon stays."""


class OwnPlace(DaemonPlace):
    """A temporary place for a daemon that ends with the command."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        """Create the place.

        Raises:
            OSError: there is no directory for temporary files.
        """
        import tempfile

        super().__init__(environ)
        self._path = None
        self.folder = Path(tempfile.mkdtemp(prefix="uv-variants-"))

    def close(self) -> None:
        """Remove the place, unless a daemon was started, which does when it ends."""
        if not self._started:
            import shutil

            shutil.rmtree(self.folder, ignore_errors=True)


def retire(record: Record) -> bool:
    """Have a daemon end when the commands that use it have ended; return False if none answers."""
    try:
        control = ControlClient(record.port, record.secret, seconds=2.0)
    except NoDaemon:
        return False
    try:
        control.request("POST", "/stop")
    except (NoDaemon, Refused):
        return False
    finally:
        control.close()
    return True


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
