"""Where the proxy of ``uv-variants serve`` is, and its token: one file that only its user can read.

The file may outlive the proxy: `RunningProxy.responds` asks the address.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pep_variants.files import replacing

from .record import state_folder

TIMEOUT = 2.0


@dataclass(frozen=True)
class RunningProxy:
    """A proxy that ``serve`` started.

    Attributes:
        pid: process id.
        host: address that it listens at.
        port: port that it listens at.
        token: password that clients have to send, empty for a proxy that is open to all.
        upstreams: URL by name of index, without credentials.
        digests: `UserIndex.digest` by name of index.
        platforms: names of the platform files that it has.
    """

    pid: int
    host: str
    port: int
    token: str = field(repr=False)
    upstreams: Mapping[str, str]
    digests: Mapping[str, str] = field(repr=False)
    platforms: tuple[str, ...] = ()

    @property
    def address(self) -> str:
        """Host to connect to: loopback for a proxy that listens at all addresses."""
        return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104

    @property
    def url(self) -> str:
        """Base URL, without the token."""
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"http://{host}:{self.port}"

    def responds(self) -> bool:
        """Return whether a proxy answers at the address."""
        import http.client

        connection = http.client.HTTPConnection(self.address, self.port, timeout=TIMEOUT)
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


def state_path(environ: Mapping[str, str]) -> Path:
    """Return the path of the state file."""
    return state_folder(environ) / "proxy.json"


def write_state(path: Path, running: RunningProxy) -> None:
    """Write *running* to *path*, readable by its owner only."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with replacing(path, mode=0o600) as file:
        file.write(json.dumps(asdict(running)).encode())


def read_state(path: Path) -> RunningProxy | None:
    """Return the proxy in *path*; None without such a file, or if another user could write it."""
    try:
        if os.name != "nt":
            status = path.stat()
            if status.st_uid != os.getuid() or status.st_mode & 0o022:
                return None  # its writer could have uv install from any index
        tree = json.loads(path.read_text("utf-8"))
        return RunningProxy(**{**tree, "platforms": tuple(tree["platforms"])})
    except (OSError, ValueError, TypeError, KeyError):
        return None


def remove_state(path: Path, pid: int) -> None:
    """Remove the file at *path* if it is that of process *pid*."""
    running = read_state(path)
    if running is not None and running.pid == pid:
        with contextlib.suppress(OSError):
            path.unlink()
