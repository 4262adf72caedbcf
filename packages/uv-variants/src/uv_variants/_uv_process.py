"""Running uv as a child process that gets the signals and the terminal."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import IO, Any

if sys.platform == "linux":
    import fcntl


def run_uv(
    command: Sequence[str],
    environ: Mapping[str, str],
    *,
    stdout: IO[bytes] | None = None,
    read_line: Callable[[bytes], None] | None = None,
) -> int:
    """Run uv on the user's terminal, forward signals, and return its exit code.

    A negative code is the signal that ended it. If this process is killed, uv ends as well.

    Args:
        command: uv's command line.
        environ: environment variables.
        stdout: file for its standard output, None for that of this process.
        read_line: called with each line of its standard error, which is passed on.
    """
    stderr = None if read_line is None else subprocess.PIPE
    options = {"env": dict(environ), "stdout": stdout, "stderr": stderr}
    with _started(list(command), options) as process, _forwarded_signals(process):
        reader = None
        if read_line is not None and process.stderr is not None:
            reader = threading.Thread(target=_pass_on, args=(process.stderr, read_line))
            reader.start()
        while True:
            try:
                code = process.wait()
            except KeyboardInterrupt:  # on Windows, where uv gets it as well
                continue
            if reader is not None:
                reader.join()
            return code


class Check:
    """Whether ``uv sync --frozen`` changes nothing, which uv says while this process imports.

    uv only compares lock file and environment then, in a few milliseconds. An older uv, which has
    no ``--check`` for this command, ends with an error, and so does one that needs an index.
    """

    def __init__(self, process: subprocess.Popen[bytes] | None = None) -> None:
        self._process = process

    @classmethod
    def start(cls, command: Sequence[str], environ: Mapping[str, str]) -> Check:
        """Start *command*, uv's command line with ``--check``."""
        with contextlib.suppress(OSError):
            return cls(
                subprocess.Popen(
                    list(command),
                    env={**environ, "UV_OFFLINE": "1"},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
            )
        return cls()

    def passes(self) -> bool:
        """Return whether uv was asked, and says that nothing changes."""
        return self._process is not None and self._process.wait() == 0

    def close(self) -> None:
        """End uv, if it still runs: the command does not need to know."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()


@contextmanager
def _started(
    command: Sequence[str], options: Mapping[str, Any]
) -> Iterator[subprocess.Popen[bytes]]:
    """Yield the process of *command*, started with *options* of `subprocess.Popen`.

    On Linux it gets SIGIO, which ends it, when this process has gone: it would go on to ask a proxy
    that is no longer there.
    """
    if sys.platform != "linux":
        yield subprocess.Popen(command, **options)
        return
    theirs, ours = os.pipe()
    try:
        process = subprocess.Popen(command, pass_fds=(theirs,), **options)
        with contextlib.suppress(OSError):  # it has ended
            fcntl.fcntl(theirs, fcntl.F_SETOWN, process.pid)
            fcntl.fcntl(theirs, fcntl.F_SETFL, os.O_ASYNC)
        yield process
    finally:
        os.close(theirs)
        os.close(ours)


def _pass_on(stream: IO[bytes], read_line: Callable[[bytes], None]) -> None:
    """Write the lines of *stream* to standard error, and hand them to *read_line*."""
    with stream:
        for line in stream:
            with contextlib.suppress(OSError):  # a closed pipe: uv is not to fail of it
                sys.stderr.buffer.write(line)
                sys.stderr.buffer.flush()
            read_line(line)


def end_as(code: int) -> int:
    """Return the exit code for uv's *code*; end by the same signal if a signal ended uv."""
    if code >= 0 or os.name == "nt":
        return code
    number = -code
    with contextlib.suppress(OSError, ValueError):
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    return 128 + number


@contextmanager
def _forwarded_signals(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Send the signals that this process gets on to *process*."""
    if os.name == "nt":
        # The console sends Ctrl-C to all of its processes; uv decides what it means.
        before = signal.signal(signal.SIGINT, lambda *_: None)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)
        return

    def forward(number: int, _frame: FrameType | None) -> None:
        # The terminal has sent signals of the keyboard to uv already.
        if number in (signal.SIGINT, signal.SIGQUIT) and in_foreground():
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
        if before is not signal.SIG_IGN:  # with nohup uv ignores it as well
            signal.signal(number, forward)
    try:
        yield
    finally:
        for number, before in before_all.items():
            signal.signal(number, before)


def in_foreground() -> bool:
    """Return whether the terminal sends the signals of its keyboard to this process."""
    try:
        with open("/dev/tty", "rb") as terminal:  # noqa: PTH123 - a device, not a file
            return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    except OSError:
        return False
