"""The shim that runs for this user: where it is, and who may use it.

One file, readable by its owner alone, written by ``uv-variants serve``. That it is there says
nothing: who wants to know asks at the address.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from .address import USERNAME

VARIABLE = "VARIANTS_STATE_DIR"
TIMEOUT = 2.0


@dataclass(frozen=True)
class Running:
    """A shim that was started by ``serve``.

    Attributes:
        pid: of its process.
        host: address it is bound to.
        port: of it.
        token: that it wants, empty if it is open to all.
        upstreams: URL by name, without credentials.
        digests: of URL and credentials, by name: whether it reads an index as we would.
        platforms: names of platform files it knows.
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
        """Host to connect to: what listens everywhere is found on loopback."""
        return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104

    @property
    def url(self) -> str:
        """Base URL, without the token."""
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"http://{host}:{self.port}"

    @property
    def url_with_token(self) -> str:
        """Base URL as a client that knows the token uses it."""
        if not self.token:
            return self.url
        return self.url.replace("://", f"://{USERNAME}:{self.token}@", 1)

    def answers(self) -> bool:
        """Return whether it is there."""
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
    """Return where the file is."""
    named = environ.get(VARIABLE)
    if named:
        return Path(named).absolute() / "shim.json"
    import platformdirs

    return platformdirs.user_state_path("variants", appauthor=False) / "shim.json"


def write_state(path: Path, running: Running) -> None:
    """Write *running* to *path*, for its owner only."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    with contextlib.suppress(FileNotFoundError):
        unfinished.unlink()
    handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(asdict(running), file)
    unfinished.replace(path)


def read_state(path: Path) -> Running | None:
    """Return what is at *path*; None if nothing is, or it is not this user's."""
    try:
        if os.name != "nt":
            status = path.stat()
            if status.st_uid != os.getuid() or status.st_mode & 0o022:
                return None  # whoever wrote it could make uv read from anywhere
        tree = json.loads(path.read_text("utf-8"))
        return Running(**{**tree, "platforms": tuple(tree["platforms"])})
    except (OSError, ValueError, TypeError, KeyError):
        return None


def remove_state(path: Path, pid: int) -> None:
    """Remove the file at *path* if it is that of process *pid*."""
    running = read_state(path)
    if running is not None and running.pid == pid:
        with contextlib.suppress(OSError):
            path.unlink()
