"""The state file of the daemon: where it listens, and its secret. Only its user can read it.

The file may outlive the daemon, and its port and process id may be another's by then: the other
side has to prove that it knows the secret (see `control_client`).
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pep_variants.files import read_text, replacing

from .identity import installation

VARIABLE = "VARIANTS_STATE_DIR"
IDLE_VARIABLE = "VARIANTS_DAEMON_IDLE"
IDLE_SECONDS = 600.0
_LIMIT = 16 * 1024


@dataclass(frozen=True)
class Record:
    """A daemon.

    Attributes:
        pid: process id, for people; nothing is sent to it.
        port: of loopback.
        secret: of the daemon, see `tokens`.
        identity: of its code, see `identity`.
        started: seconds since the epoch.
    """

    pid: int
    port: int
    secret: str = field(repr=False)
    identity: str
    started: float


def state_folder(environ: Mapping[str, str]) -> Path:
    """Return the directory of state files: of daemon, authority and ``serve``."""
    named = environ.get(VARIABLE)
    if named:
        return Path(named).absolute()
    import platformdirs

    return platformdirs.user_state_path("variants", appauthor=False)


def record_path(environ: Mapping[str, str]) -> Path:
    """Return the state file of the daemon of this installation of uv-variants."""
    return state_folder(environ) / f"daemon-{installation()}.json"


def records(environ: Mapping[str, str]) -> dict[Path, Record]:
    """Return the daemons of all installations, by state file; they may have ended."""
    try:
        paths = sorted(state_folder(environ).glob("daemon-*.json"))
    except OSError:
        return {}
    return {path: found for path in paths if (found := read_record(path)) is not None}


def idle_seconds(environ: Mapping[str, str]) -> float:
    """Return after how many seconds without a command the daemon ends; 0: with the command."""
    text = environ.get(IDLE_VARIABLE, "").strip()
    try:
        found = float(text) if text else IDLE_SECONDS
    except ValueError:
        return IDLE_SECONDS
    return found if 0 <= found < 10**9 else IDLE_SECONDS


def read_record(path: Path) -> Record | None:
    """Return the daemon in *path*; None without one, or if another user could write the file."""
    try:
        if os.name != "nt":
            status = path.lstat()
            if status.st_uid != os.getuid() or status.st_mode & 0o077:
                return None
        found = Record(**json.loads(read_text(path, _LIMIT)))
    except (OSError, ValueError, TypeError):
        return None
    valid = (
        isinstance(found.port, int)
        and 0 < found.port < 65536
        and isinstance(found.secret, str)
        and len(found.secret) >= 32
        and isinstance(found.identity, str)
        and isinstance(found.pid, int)
    )
    return found if valid else None


def write_record(path: Path, record: Record) -> None:
    """Write *record* to *path*.

    Raises:
        OSError: it cannot be written.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with replacing(path, mode=0o600) as file:
        file.write(json.dumps(asdict(record)).encode())


def remove_record(path: Path, record: Record) -> None:
    """Remove the file at *path* if it is that of the daemon *record*."""
    if read_record(path) == record:
        with contextlib.suppress(OSError):
            path.unlink()
