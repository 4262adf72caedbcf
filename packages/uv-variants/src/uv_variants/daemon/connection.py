"""A session of the daemon, as the command has it: opened, kept, restored if the daemon dies.

A thread holds a connection to the daemon for as long as the session lives. The daemon ends the
session when the connection ends, so also if the command is killed; and the command sees at once if
the daemon dies, and starts another one at the same port, with the same secret: uv's next requests
are answered as if nothing had happened.
"""

from __future__ import annotations

import errno
import socket
import threading
import time
from collections.abc import Mapping
from pathlib import Path

from uv_variants.errors import ProxyFailed
from variants_proxy.server.listening import LOOPBACK

from .control_client import ControlClient, NoDaemon, Refused
from .place import DaemonPlace
from .record import Record
from .session import SessionSettings
from .tokens import new_id, session_token

RESTARTS = 5
ANSWER_SECONDS = 60.0
"""Seconds that a new daemon may take to import what it needs, on a busy machine."""
REPORT_SECONDS = 10.0
PORT_SECONDS = 5.0
"""Seconds in which a port may become free."""


class LiveSession:
    """A session of the daemon, from before uv starts until after it has ended."""

    def __init__(
        self, environ: Mapping[str, str], place: DaemonPlace, settings: SessionSettings
    ) -> None:
        self._environ = environ
        self._place = place
        self._settings = settings
        self.id = new_id()
        self._waiting: socket.socket | None = None
        self._port = 0
        self._secret = ""
        self._control: ControlClient | None = None
        self._ca_file: Path | None = None
        self._attached = threading.Event()
        self._closed = threading.Event()
        self._failure: ProxyFailed | None = None
        self._guard = threading.Lock()

    # --- what the command gets

    @property
    def port(self) -> int:
        """Port of loopback."""
        return self._port

    @property
    def token(self) -> str:
        """Token of this session."""
        return session_token(self._secret, self.id)

    @property
    def proxy_url(self) -> str:
        """The HTTP proxy for uv."""
        return f"http://{self.id}:{self.token}@{LOOPBACK}:{self.port}"

    @property
    def ca_file(self) -> Path:
        """Certificates that uv has to trust; waits for a daemon that is being started.

        Raises:
            ProxyFailed: it does not answer.
        """
        if self._ca_file is None:
            self._attached.wait(ANSWER_SECONDS)
        if self._ca_file is None:
            raise self._failure or ProxyFailed(
                f"the index proxy did not start within {ANSWER_SECONDS:g} seconds: "
                f"{self._place.last_words()}"
            )
        return self._ca_file

    def failure(self) -> ProxyFailed | None:
        """Return why there is no daemon any more."""
        return self._failure

    def refusals(self) -> list[str]:
        """Return the files that uv did not get, with the reason."""
        return self._report("refusals")

    def noted_projects(self) -> list[str]:
        """Return the projects that uv asked for and that there are notices about."""
        return self._report("noted")

    def plain_projects(self) -> list[str]:
        """Return the projects that uv asked for and that have nothing to choose from."""
        return self._report("plain")

    def close(self) -> None:
        """End the session, and a daemon of the command's own with it."""
        if self._closed.is_set():
            return
        self._closed.set()
        with self._guard:
            if self._control is not None:
                self._control.interrupt()
            if self._waiting is not None:
                self._waiting.close()
                self._waiting = None
        self._place.close()

    def _report(self, kind: str) -> list[str]:
        if not self._attached.is_set():
            return []  # uv asked for nothing
        try:
            control = ControlClient(self._port, self._secret, seconds=REPORT_SECONDS)
        except NoDaemon:
            return []
        try:
            found = control.request("GET", f"/session/{self.id}/report")[kind]
        except (NoDaemon, Refused):
            return []
        finally:
            control.close()
        return [str(item) for item in found]

    # --- opening

    def open(self, *, at_once: bool) -> None:
        """Open the session with the daemon that runs, or a new one.

        Args:
            at_once: False if uv may need no index: then a new daemon starts when uv connects.

        Raises:
            OSError: state or log file cannot be written, or no process started.
            Refused: the daemon takes no more sessions.
        """
        record = self._place.running()
        if record is not None and self._attach_to(record):
            self._begin(self._stay)
            return
        bundle = None if at_once else self._place.known_bundle(self._settings)
        if bundle is not None:
            self._ca_file = bundle
            self._waiting = self._place.listen()
            self._secret = self._place.new_secret()
            self._port = self._waiting.getsockname()[1]
            self._begin(self._start_when_asked)
            return
        with self._place.locked():
            now = self._place.running()
            if now is not None and now != record and self._attach_to(now):
                self._begin(self._stay)
                return
            self._start(self._place.listen_again())
        self._ca_file = self._place.known_bundle(self._settings)
        self._begin(self._stay)

    def _begin(self, work: object) -> None:
        assert callable(work)
        self._thread = threading.Thread(target=work, daemon=True)
        self._thread.start()

    def _attach_to(self, record: Record) -> bool:
        """Open the session with a daemon that runs; return False if it has just ended."""
        self._port, self._secret = record.port, record.secret
        if self._attach(self._place.patience(record)):
            return True
        self._port, self._secret = 0, ""
        return False

    def _attach(self, seconds: float) -> bool:
        try:
            control = ControlClient(self._port, self._secret, seconds=seconds)
        except NoDaemon:
            return False
        try:
            body = {"id": self.id, "settings": self._settings.tree()}
            answer = control.request("POST", "/session", body)
        except NoDaemon:
            control.close()
            return False
        except Refused as error:
            control.close()
            if error.status == 503:  # it is about to end
                return False
            raise
        with self._guard:
            self._control = control
            self._ca_file = Path(answer["ca_file"])
            if self._closed.is_set():
                control.interrupt()
        self._attached.set()
        return True

    def _start(self, listening: socket.socket, *, beside: bool = False) -> None:
        """Start a daemon that has this session from the beginning.

        Args:
            listening: the daemon's; closed here.
            beside: another one runs for the user, so this one is for this session alone.
        """
        self._port = listening.getsockname()[1]
        self._secret = self._secret or self._place.secret_for(self._port)
        first = {"id": self.id, "settings": self._settings.tree()}
        with listening:
            self._place.start(self._environ, listening, self._secret, first, beside=beside)

    # --- staying

    def _start_when_asked(self) -> None:
        import select

        assert self._waiting is not None
        try:
            while not select.select([self._waiting], [], [], 0.2)[0]:
                if self._closed.is_set():
                    return
            with self._guard:
                listening, self._waiting = self._waiting, None
            if listening is None:
                return
            with self._place.locked():
                self._start(listening, beside=self._running() is not None)
        except (OSError, ValueError) as error:
            if not self._closed.is_set():
                self._fail(f"the index proxy cannot be started: {error}")
            return
        self._stay()

    def _stay(self) -> None:
        """Hold the connection, and restore it when the daemon has died."""
        for left in reversed(range(RESTARTS + 1)):
            try:
                attached = self._control is not None or self._attach(ANSWER_SECONDS)
            except Refused as error:
                self._fail(str(error))
                return
            if attached:
                assert self._control is not None
                self._control.wait_for_end()
                with self._guard:
                    self._control.close()
                    self._control = None
            if self._closed.is_set():
                return
            try:
                if left:
                    self._restart()
            except OSError as error:
                self._fail(f"the index proxy ended: {error.strerror or error}")
                return
        self._fail(f"the index proxy ended {RESTARTS + 1} times: {self._place.last_words()}")

    def _restart(self) -> None:
        """Start another daemon at the port that uv knows, unless another command has.

        Raises:
            OSError: the port is another program's by now, or no process can be started.
        """
        with self._place.locked():
            other = self._running()
            if other is not None and other.port == self._port:
                return
            self._start(self._listen_again(), beside=other is not None)

    def _listen_again(self) -> socket.socket:
        """Return a socket at the port that uv knows; a daemon that ends may have it for a moment.

        Raises:
            OSError: it stays in use.
        """
        end = time.monotonic() + PORT_SECONDS
        while True:
            try:
                return self._place.listen(self._port)
            except OSError as error:
                if error.errno != errno.EADDRINUSE or time.monotonic() >= end:
                    raise
                time.sleep(0.05)

    def _running(self) -> Record | None:
        """Return the daemon of the state file, None if it does not answer."""
        record = self._place.running()
        return record if record is not None and self._place.answers(record) else None

    def _fail(self, why: str) -> None:
        self._failure = ProxyFailed(why)
        self._attached.set()
