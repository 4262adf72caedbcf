"""Starting a proxy that keeps running, and stopping it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import Any

from uv_variants.errors import ProxyFailed

from .launch import python_command
from .state_file import RunningProxy, read_state, remove_state, state_path

WAIT = 15.0
"""Seconds that a proxy may take to start, and to end."""

_DETACHED_PROCESS, _NEW_PROCESS_GROUP = 0x00000008, 0x00000200
"""Flags of Windows' CreateProcess."""


def start_in_background(arguments: Sequence[str], environ: Mapping[str, str]) -> RunningProxy:
    """Run ``uv-variants`` with *arguments* in the background; return when its proxy answers.

    Raises:
        ProxyFailed: it ended, or does not answer in time.
    """
    options: dict[str, Any] = {"start_new_session": True}
    if os.name == "nt":
        options = {"creationflags": _DETACHED_PROCESS | _NEW_PROCESS_GROUP}
    process = subprocess.Popen(
        python_command("uv_variants.main", *arguments),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=dict(environ),
        **options,
    )
    path = state_path(environ)
    end = time.monotonic() + WAIT
    while time.monotonic() < end:
        running = read_state(path)
        if running is not None and running.pid == process.pid and running.responds():
            return running
        if process.poll() is not None:
            assert process.stderr is not None
            lines = process.stderr.read().decode("utf-8", "replace").strip().splitlines()
            last = lines[-1].removeprefix("uv-variants: ") if lines else "it exited immediately"
            raise ProxyFailed(last)
        time.sleep(0.02)
    process.terminate()
    raise ProxyFailed(f"the index proxy did not start within {WAIT:g} seconds")


def stop_running(running: RunningProxy, environ: Mapping[str, str]) -> None:
    """End a proxy that ``serve`` started, and wait until it has ended.

    Raises:
        ProxyFailed: the process cannot be ended, or does not end in time.
    """
    try:
        os.kill(running.pid, signal.SIGTERM)
    except OSError as error:
        raise ProxyFailed(f"process {running.pid}: {error.strerror}") from None
    end = time.monotonic() + WAIT
    while running.responds():
        if time.monotonic() > end:
            raise ProxyFailed(f"process {running.pid} did not end within {WAIT:g} seconds")
        time.sleep(0.05)
    remove_state(state_path(environ), running.pid)
