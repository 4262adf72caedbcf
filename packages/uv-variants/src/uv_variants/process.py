"""Processes: the shim of one command, and uv beside it."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import IO, Any

from .errors import ShimFailed

LOOPBACK = "127.0.0.1"
BACKLOG = 512
RESTARTS = 5

# Not with -m, which would look for modules in the working directory first.
ENTRY = (
    "import sys; sys.path = [path for path in sys.path if path]; "
    "from uv_variants.{} import main; main()"
)


def listen(host: str = LOOPBACK, port: int = 0) -> socket.socket:
    """Return a socket that listens at *host*, at a free port by default.

    Raises:
        OSError: the address is taken, or none of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol said: for sockets without, asyncio does not switch off waiting for more
    # bytes to send, and every answer is 40 ms late.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        if os.name != "nt":
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(BACKLOG)
    except OSError:
        listening.close()
        raise
    return listening


class Shim:
    """A shim that lives as long as the command that started it.

    The socket is the command's: uv may connect before the shim is there, and waits; a shim that
    is killed is started again, and nobody is refused meanwhile.

    Attributes:
        token: what who comes has to know.
        port: of loopback.
    """

    def __init__(self, environ: Mapping[str, str], *, at_once: bool) -> None:
        """Start it; it gets ready to be told what to do.

        Args:
            environ: environment variables of the user.
            at_once: otherwise it is started when somebody connects, which may be never.
        """
        self.token = secrets.token_urlsafe(24)
        self._socket = listen()
        self.port: int = self._socket.getsockname()[1]
        self._environ = dict(environ)
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as this
        self._ending = threading.Event()
        self._process = self._start() if at_once else None

    def tell(self, told: Mapping[str, Any]) -> None:
        """Let it serve.

        Args:
            told: settings, see `told`; how it is reached is added here.
        """
        self._told = {**told, "token": self.token, "tied": True}
        if self._process is not None:
            self._write(self._process)
        threading.Thread(target=self._keep_alive, daemon=True).start()

    def _start(self) -> subprocess.Popen[bytes]:
        options: dict[str, Any] = {"start_new_session": True}
        if os.name == "nt":
            options = {"creationflags": getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)}
        else:
            options["pass_fds"] = (self._socket.fileno(),)
        return subprocess.Popen(
            [sys.executable, "-c", ENTRY.format("server")],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
            env=self._environ,
            # Signals from the terminal are uv's; the shim goes when uv is gone.
            **options,
        )

    def _write(self, process: subprocess.Popen[bytes]) -> None:
        shared: int | str = self._socket.fileno()
        share = getattr(self._socket, "share", None)  # only Windows has it
        if share is not None:
            from .told import encoded

            shared = encoded(share(process.pid))
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps({**self._told, "socket": shared}).encode() + b"\n")
            process.stdin.flush()

    def _keep_alive(self) -> None:
        try:
            self._start_again()
        except (OSError, ValueError):
            # The socket is closed already: the command was faster.
            if not self._ending.is_set():
                raise

    def _start_again(self) -> None:
        for _ in range(RESTARTS):
            if self._process is None:
                while not select.select([self._socket], [], [], 0.2)[0]:
                    if self._ending.is_set():
                        return
            else:
                self._process.wait()
            if self._ending.is_set():
                return
            self._process = self._start()
            self._write(self._process)
        assert self._process is not None
        self._process.wait()
        if not self._ending.is_set():
            # Whoever waits for it has to be told.
            self._socket.close()

    def failure(self) -> ShimFailed | None:
        """Return why there is no shim, None if there is one."""
        if self._socket.fileno() != -1:
            return None
        return ShimFailed(f"the index shim does not stay alive: {self.last_words()}")

    def last_words(self) -> str:
        """Return the last line that it wrote to its error output."""
        self._errors.seek(0)
        lines = self._errors.read()[-4000:].decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing"

    def stop(self) -> None:
        """End it, without waiting for it."""
        self._ending.set()
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        self._socket.close()


def run_uv(command: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run uv on the user's terminal, hand signals on, and return its exit code.

    Negative: it ended by that signal.
    """
    process = subprocess.Popen(list(command), env=dict(environ))
    with _handing_on(process):
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:  # on Windows; uv has it, too
                continue


def end_as(code: int) -> int:
    """Return the exit code for what uv returned; die by the same signal as it did."""
    if code >= 0 or os.name == "nt":
        return code
    number = -code
    with contextlib.suppress(OSError, ValueError):
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    return 128 + number


@contextmanager
def _handing_on(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Hand the signals that come meanwhile to *process*."""
    if os.name == "nt":
        # The console sends Ctrl-C to all of its processes; uv decides what becomes of it.
        before = signal.signal(signal.SIGINT, lambda *_: None)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)
        return

    def hand_on(number: int, _frame: FrameType | None) -> None:
        # Of a signal from the keyboard the terminal has told uv already.
        if number in (signal.SIGINT, signal.SIGQUIT) and _in_foreground():
            return
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(number)

    numbers = (
        signal.SIGINT,
        signal.SIGTERM,
        signal.SIGHUP,
        signal.SIGQUIT,
        signal.SIGUSR1,
        signal.SIGUSR2,
    )
    before_all = {number: signal.getsignal(number) for number in numbers}
    for number, before in before_all.items():
        if before is not signal.SIG_IGN:  # nohup: then uv ignores it as well
            signal.signal(number, hand_on)
    try:
        yield
    finally:
        for number, before in before_all.items():
            signal.signal(number, before)


def _in_foreground() -> bool:
    try:
        with open("/dev/tty", "rb") as terminal:  # noqa: PTH123 - no file to speak of
            return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    except OSError:
        return False
