"""Running a program that is not trusted to end, to be quiet or to clean up after itself."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from ..limits import PLUGIN_ANSWER_BYTES, PLUGIN_NOISE_BYTES, size_in_words

MARK = "PEP_VARIANTS_RUN"
"""Environment variable that marks a program and what it starts, however it detaches itself."""

NOISE_BYTES = 32 * 1024
"""How much of the end of the error output is kept."""

_GRACE = 2.0
"""Seconds that a killed program gets to disappear; one stuck in a driver never does."""


class Outcome(NamedTuple):
    """Outcome of a program.

    Attributes:
        output: its standard output.
        errors: the end of its error output.
        status: exit status, negative for a signal; None if it did not end by itself.
        exceeded: the limit that ended it, in words; empty if none did.
    """

    output: bytes
    errors: str
    status: int | None
    exceeded: str = ""


def run(
    command: Sequence[str | os.PathLike[str]],
    *,
    environ: Mapping[str, str],
    cwd: Path,
    time_limit: float,
    request: bytes = b"",
) -> Outcome:
    """Run *command* until it ends or exceeds a limit, then kill everything that it started.

    It may write `PLUGIN_ANSWER_BYTES` to its standard output and `PLUGIN_NOISE_BYTES` to its error
    output, of which only the end is kept.

    Args:
        command: program and arguments; no shell is involved.
        environ: its environment variables, all of them.
        cwd: its working directory.
        time_limit: in seconds.
        request: what it reads from its standard input, at most 16 KiB, as pipes hold that much.

    It gets a new session (on Windows a job). It is asked to end (SIGTERM), then killed with
    the session; on Linux so are processes that left it, by `MARK`. This also happens when the
    caller is interrupted.

    Raises:
        OSError: it cannot be started.
    """
    assert len(request) <= 16384
    mark = os.urandom(16).hex()
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        cwd=cwd,
        env={**environ, MARK: mark},
        start_new_session=True,  # nothing on Windows, and the next line nothing elsewhere
        creationflags=0x08000200 if sys.platform == "win32" else 0,  # no window, new group
    )
    job = _Job(process)
    assert process.stdin
    assert process.stdout
    assert process.stderr
    finished, ended = threading.Event(), threading.Event()
    output = _Drain(process.stdout, PLUGIN_ANSWER_BYTES, PLUGIN_ANSWER_BYTES, finished)
    errors = _Drain(process.stderr, PLUGIN_NOISE_BYTES, NOISE_BYTES, finished)
    watch = threading.Thread(target=_await_end, args=(process, finished, ended), daemon=True)
    try:
        for thread in (output, errors, watch):
            thread.start()
        with contextlib.suppress(OSError):  # it may have ended, or closed its input
            process.stdin.write(request)
        with contextlib.suppress(OSError):
            process.stdin.close()
        in_time = finished.wait(time_limit)
    finally:
        _kill(process, ended, mark, job)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE)
    # They end with the last holder of the other end. One that escaped keeps them waiting, and
    # then what has come so far is what there is.
    for drain in (output, errors):
        drain.join(_GRACE)
        if not drain.is_alive():
            drain.stream.close()
    exceeded = ""
    if output.exceeded:
        exceeded = f"answered more than {size_in_words(PLUGIN_ANSWER_BYTES)}"
    elif errors.exceeded:
        exceeded = f"printed more than {size_in_words(PLUGIN_NOISE_BYTES)}"
    elif not in_time:
        exceeded = f"did not end within {time_limit:g} s"
    return Outcome(
        bytes(output.kept),
        errors.kept.decode("utf-8", "replace"),
        None if exceeded else process.returncode,
        exceeded,
    )


class _Drain(threading.Thread):
    """Reads a pipe to its end, so that its writer never blocks, and keeps the end of it."""

    def __init__(self, stream: IO[bytes], limit: int, keep: int, exceeded: threading.Event) -> None:
        super().__init__(daemon=True)
        self.stream = stream
        self.kept = bytearray()
        self.exceeded = False
        self._limit = limit
        self._keep = keep
        self._event = exceeded

    def run(self) -> None:
        total = 0
        with contextlib.suppress(OSError, ValueError):
            while chunk := self.stream.read(64 * 1024):
                total += len(chunk)
                self.kept += chunk
                del self.kept[: -self._keep]
                if total > self._limit:
                    self.exceeded = True
                    self._event.set()
                    return


def _await_end(
    process: subprocess.Popen[bytes], finished: threading.Event, ended: threading.Event
) -> None:
    if sys.platform != "win32" and hasattr(os, "waitid"):
        # Without reaping it: while it is a zombie its number, which is that of its group, cannot
        # be given to anybody else.
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    else:
        process.wait()
    ended.set()
    finished.set()


def _kill(process: subprocess.Popen[bytes], ended: threading.Event, mark: str, job: _Job) -> None:
    job.kill()
    if sys.platform == "win32":
        return
    if not ended.is_set():
        # A supervisor ends what it supervises, wherever that went. The process is not reaped yet,
        # so the number is still its own.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process.pid, signal.SIGTERM)
        ended.wait(_GRACE)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    if sys.platform == "linux":
        # Processes that started a new session. Repeated until none is left: they may be forking.
        for _ in range(20):
            if not _kill_marked(f"{MARK}={mark}".encode()):
                break


def _kill_marked(mark: bytes) -> int:
    """Kill every process of this user with *mark* in its environment; return how many."""
    if sys.platform != "linux":
        return 0
    count = 0
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with contextlib.suppress(OSError):  # another user's, or gone
                if mark in Path(entry.path, "environ").read_bytes():
                    os.kill(int(entry.name), signal.SIGKILL)
                    count += 1
    return count


class _Job:
    """On Windows, all that a program starts; elsewhere nothing, sessions do that there."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._handle = None
        if sys.platform == "win32":
            import ctypes

            kernel = ctypes.WinDLL("kernel32", use_last_error=True)
            kernel.CreateJobObjectW.restype = ctypes.c_void_p
            kernel.AssignProcessToJobObject.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
            kernel.TerminateJobObject.argtypes = (ctypes.c_void_p, ctypes.c_uint)
            kernel.CloseHandle.argtypes = (ctypes.c_void_p,)
            self._kernel = kernel
            self._process = process
            # The interpreter needs much longer to start than this to be called: nothing that it
            # starts can be outside.
            self._handle = kernel.CreateJobObjectW(None, None)
            # Popen keeps the handle of the process to itself, and knows no other way to it.
            handle = int(process._handle)  # type: ignore[attr-defined]
            kernel.AssignProcessToJobObject(self._handle, handle)

    def kill(self) -> None:
        """Kill all of it."""
        if sys.platform == "win32" and self._handle:
            self._kernel.TerminateJobObject(self._handle, 1)
            self._kernel.CloseHandle(self._handle)
            self._handle = None
            with contextlib.suppress(OSError):
                self._process.kill()
