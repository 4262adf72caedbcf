"""Starting the daemon's process, apart from the command: its terminal, signals and end.

The command opens the listening socket and passes it on: uv may connect before the process has
imported what it needs, and waits.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

_DETACHED_PROCESS, _NEW_PROCESS_GROUP, _BREAKAWAY = 0x00000008, 0x00000200, 0x01000000
"""Flags of Windows' CreateProcess."""

# Variables of one command: they are in its session's settings, or of no use to a daemon.
_OWN_PREFIXES = ("UV_", "VARIANTS_", "PYTHON", "SSL_", "GIT_")
_OWN = frozenset(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "NETRC", "VIRTUAL_ENV"))


def python_command(module: str, *arguments: str) -> list[str]:
    """Return the command that runs ``main`` of *module* with this Python.

    Unlike ``python -m`` it does not look for modules in the working directory.
    """
    code = (
        "import sys; sys.path = [path for path in sys.path if path]; "
        f"from {module} import main; main()"
    )
    return [sys.executable, "-c", code, *arguments]


def launch(
    environ: Mapping[str, str], listening: socket.socket, message: Mapping[str, Any], log: Path
) -> int:
    """Start a daemon that listens at a socket; return its process id.

    Args:
        environ: environment variables of the command.
        listening: passed on; the caller may close it afterwards.
        message: see `process`; the socket is added here.
        log: file for the error output, which is replaced.

    Raises:
        OSError: no process can be started, or the file cannot be written.
    """
    errors = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
    with os.fdopen(errors, "ab") as stream:
        process = _started(environ, listening, stream)
    shared: int | str = listening.fileno()
    share = getattr(listening, "share", None)  # on Windows, which inherits no sockets
    if share is not None:
        import base64

        shared = base64.b64encode(share(process.pid)).decode()
    assert process.stdin is not None
    try:
        process.stdin.write(json.dumps({**message, "socket": shared}).encode())
        process.stdin.close()
    except OSError:
        pass  # it ended, which shows when the command connects
    # The process outlives this one: without a code the interpreter would warn of that.
    process.returncode = 0
    return process.pid


def last_words(log: Path) -> str:
    """Return the last line of a daemon's error output."""
    try:
        lines = log.read_bytes()[-4096:].decode("utf-8", "replace").strip().splitlines()
    except OSError:
        return "it wrote no error message"
    return lines[-1] if lines else "it wrote no error message"


def _started(
    environ: Mapping[str, str], listening: socket.socket, errors: IO[bytes]
) -> subprocess.Popen[bytes]:
    command = python_command("uv_variants.daemon.process")
    options: dict[str, Any] = {
        "stdin": subprocess.PIPE,
        "stdout": subprocess.DEVNULL,
        "stderr": errors,
        "env": own_environment(environ),
    }
    if os.name != "nt":
        fds = (listening.fileno(),)
        return subprocess.Popen(command, start_new_session=True, pass_fds=fds, **options)
    flags = _DETACHED_PROCESS | _NEW_PROCESS_GROUP
    try:
        # Out of the job of a terminal or build agent, which would end it with the command.
        return subprocess.Popen(command, creationflags=flags | _BREAKAWAY, **options)
    except OSError:
        return subprocess.Popen(command, creationflags=flags, **options)


def own_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the daemon's environment: the user's, without what belongs to one command."""
    return {
        name: value
        for name, value in environ.items()
        if name.upper() not in _OWN and not name.startswith(_OWN_PREFIXES)
    }
