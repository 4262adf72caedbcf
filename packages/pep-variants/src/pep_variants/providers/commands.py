"""Commands that come with drivers, run within bounds: no shell, limited time and output."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from .libraries import within

if TYPE_CHECKING:
    from subprocess import Popen

logger = logging.getLogger(__name__)

TIME_LIMIT = 10.0
"""Seconds that a command may take."""

OUTPUT_LIMIT = 1 << 20
"""Bytes that a command may print."""


def find_command(name: str, folders: Iterable[str | os.PathLike[str]]) -> str | None:
    """Return the path of the command in the first of *folders* that has it, None if none has.

    Relative folders do not count, they would mean the working directory.
    """
    for folder in folders:
        path = os.path.join(folder, name)  # noqa: PTH118 - Path would drop what an empty one means
        if os.path.isabs(folder) and os.path.isfile(path) and os.access(path, os.X_OK):  # noqa: PTH113, PTH117
            return path
    return None


def command_path(environ: Mapping[str, str]) -> list[str]:
    """Return the folders of ``PATH``."""
    return environ.get("PATH", os.defpath).split(os.pathsep)


def command_output(
    command: Sequence[str], environ: Mapping[str, str], time_limit: float = TIME_LIMIT
) -> str | None:
    """Return what *command* prints, None if it fails or prints too much.

    It has no input, and its error output is discarded. Where it has to be stopped it is, with
    everything that it started (on Windows: itself alone).

    Raises:
        TimeoutError: it takes longer than *time_limit* seconds.
    """
    import subprocess

    deadline = time.monotonic() + time_limit
    try:
        process = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=dict(environ),
            start_new_session=True,
        )
    except OSError as error:
        logger.debug("%s cannot be started: %s", command[0], error)
        return None
    try:
        output = within(time_limit, lambda: _read(process))
        if len(output) > OUTPUT_LIMIT:
            logger.debug("%s prints more than %d bytes", command[0], OUTPUT_LIMIT)
            _stop(process)
            return None
        try:
            status = process.wait(max(0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"no end within {time_limit:g} s") from None
    except BaseException:
        _stop(process)
        raise
    if status:
        logger.debug("%s fails with status %d", command[0], status)
        return None
    return output.decode(errors="replace")


def _read(process: Popen[bytes]) -> bytes:
    assert process.stdout is not None
    with process.stdout as stream:
        return stream.read(OUTPUT_LIMIT + 1)


def _stop(process: Popen[bytes]) -> None:
    # Not yet waited for, so the number of the process still is that of its group.
    import signal
    import subprocess

    try:
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
        process.wait(1)
    except (OSError, subprocess.TimeoutExpired) as error:  # stuck inside the kernel
        logger.debug("process %d does not end: %s", process.pid, error)
