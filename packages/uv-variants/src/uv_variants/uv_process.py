"""Running uv as a child process that gets the signals and the terminal."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import IO


def run_uv(
    command: Sequence[str], environ: Mapping[str, str], *, stdout: IO[bytes] | None = None
) -> int:
    """Run uv on the user's terminal, forward signals, and return its exit code.

    A negative code is the signal that ended it.

    Args:
        command: uv's command line.
        environ: environment variables.
        stdout: file for its standard output, None for that of this process.
    """
    process = subprocess.Popen(list(command), env=dict(environ), stdout=stdout)
    with _forwarded_signals(process):
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:  # on Windows, where uv gets it as well
                continue


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
