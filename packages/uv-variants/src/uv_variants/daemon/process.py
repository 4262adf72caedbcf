"""The daemon's process: started by `launch`, with a message on standard input.

The message is JSON: ``folder`` of its files, ``record`` (its state file, null for a daemon of one
command), ``identity`` of its code, ``secret``, ``idle`` seconds, ``temporary`` (the folder is
removed at the end), ``first`` session with the ``pid`` of its command, ``started``, ``socket``.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from typing import Any


def main() -> None:
    """Serve until there is nothing to do."""
    os.umask(0o077)
    data = sys.stdin.buffer.read()
    if not data:
        return  # the command was killed while it started this process
    message: dict[str, Any] = json.loads(data)
    listening = _socket(message["socket"])
    # Not the directory of some project, which could not be unmounted or, on Windows, removed.
    os.chdir(message["folder"])
    _spare_searches()
    try:
        from pep_variants.gc_pause import paused

        with paused(True):
            from .server import Daemon

        Daemon(message).run(listening)
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        raise
    finally:
        if message["temporary"]:
            import shutil

            os.chdir(os.path.dirname(message["folder"]))  # noqa: PTH120
            shutil.rmtree(message["folder"], ignore_errors=True)
        sys.stderr.flush()
        # Threads that still wait for an upstream have no client any more.
        os._exit(0)


def _spare_searches() -> None:
    """Have httpcore not look for a module several times in each request that is sent on.

    It tries to import sniffio, which tells asyncio from trio; without it all of ``sys.path`` is
    searched each time.
    """
    from importlib.util import find_spec

    if find_spec("sniffio") is None:
        sys.modules["sniffio"] = None  # type: ignore[assignment] # an import fails at once


def _socket(listening: object) -> socket.socket:
    if isinstance(listening, int):
        return socket.socket(fileno=listening)
    assert isinstance(listening, str)
    import base64

    # On Windows, which inherits no sockets.
    return socket.fromshare(base64.b64decode(listening))  # type: ignore[attr-defined, no-any-return]


if __name__ == "__main__":
    main()
