"""The proxy process of one command: started with it, restarted if it dies, ended with it."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import select
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from typing import IO, Any

from uv_variants.errors import ProxyFailed
from variants_proxy.listening import listen

from .proxy_messages import noted_projects, refusals

RESTARTS = 5
OUTPUT_BYTES = 16 * 1024
"""Bytes of the error output, from its end, that are read."""


def python_command(module: str, *arguments: str) -> list[str]:
    """Return the command that runs ``main`` of *module* with this Python.

    Unlike ``python -m`` it does not look for modules in the working directory.
    """
    code = (
        "import sys; sys.path = [path for path in sys.path if path]; "
        f"from {module} import main; main()"
    )
    return [sys.executable, "-c", code, *arguments]


class ProxyProcess:
    """A proxy that lives as long as the command that started it.

    The command holds the listening socket: uv may connect before the process is ready, and waits;
    if the process is killed, another one takes over, and no connection is refused meanwhile.

    Attributes:
        token: password that clients have to send.
        port: of loopback.
    """

    def __init__(self, environ: Mapping[str, str], *, at_once: bool) -> None:
        """Open the socket and start the process, which imports what it needs and waits.

        Args:
            environ: environment variables of the user.
            at_once: start now; otherwise when a client connects, which may be never.
        """
        self.token = secrets.token_urlsafe(24)
        self._socket = listen()
        self.port: int = self._socket.getsockname()[1]
        self._environ = dict(environ)
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as this
        self._ending = threading.Event()
        self._process = self._start() if at_once else None

    def configure(self, settings: Mapping[str, Any]) -> None:
        """Send the settings, after which the process serves.

        Args:
            settings: made by `proxy_messages.settings_message`; token and socket are added here.
        """
        self._settings = {**settings, "token": self.token}
        if self._process is not None:
            self._send_settings(self._process)
        threading.Thread(target=self._keep_alive, daemon=True).start()

    def _start(self) -> subprocess.Popen[bytes]:
        options: dict[str, Any] = {"start_new_session": True}
        if os.name == "nt":
            options = {"creationflags": getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)}
        else:
            options["pass_fds"] = (self._socket.fileno(),)
        return subprocess.Popen(
            python_command("uv_variants.daemon.server_process"),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
            env=self._environ,
            # Signals from the terminal are for uv; the proxy ends after uv has ended.
            **options,
        )

    def _send_settings(self, process: subprocess.Popen[bytes]) -> None:
        shared: int | str = self._socket.fileno()
        share = getattr(self._socket, "share", None)  # on Windows, which inherits no sockets
        if share is not None:
            import base64

            shared = base64.b64encode(share(process.pid)).decode()
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            message = json.dumps({**self._settings, "socket": shared})
            process.stdin.write(message.encode() + b"\n")
            process.stdin.flush()

    def _keep_alive(self) -> None:
        try:
            self._restart_while_needed()
        except (OSError, ValueError):
            # `stop` closes the socket while this thread waits for it.
            if not self._ending.is_set():
                raise

    def _restart_while_needed(self) -> None:
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
            self._send_settings(self._process)
        assert self._process is not None
        self._process.wait()
        if not self._ending.is_set():
            # Clients that wait for an answer get a connection error.
            self._socket.close()

    def failure(self) -> ProxyFailed | None:
        """Return why there is no proxy any more, None if there is one."""
        if self._socket.fileno() != -1:
            return None
        lines = self._output().strip().splitlines()
        last = lines[-1] if lines else "it wrote no error message"
        return ProxyFailed(f"the index proxy ended {RESTARTS + 1} times: {last}")

    def refusals(self) -> list[str]:
        """Return the files that uv did not get, with the reason: each once, the last few."""
        return refusals(self._output())

    def noted_projects(self) -> list[str]:
        """Return the projects that uv asked for and that the proxy has notices about."""
        return noted_projects(self._output())

    def _output(self) -> str:
        self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, self._errors.tell() - OUTPUT_BYTES))
        return self._errors.read().decode("utf-8", "replace")

    def stop(self) -> None:
        """End the process, without waiting for it."""
        self._ending.set()
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        self._socket.close()
