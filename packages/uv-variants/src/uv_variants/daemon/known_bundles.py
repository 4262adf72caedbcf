"""Which file of certificates uv gets, remembered: a command need not ask a daemon for it.

The daemon makes the file (`transport.authority`), and notes for which variables it is and what it
was made from. The note counts as long as all of these files are unchanged.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable
from pathlib import Path

from pep_variants.files import read_text, replacing

from .session import SessionSettings

DAYS = 7
"""Days for which a note counts: much less than certificates are valid."""
_VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "UV_NATIVE_TLS", "UV_SYSTEM_CERTS")
_LIMIT = 64 * 1024


def known_bundle(folder: Path, settings: SessionSettings) -> Path | None:
    """Return the file of certificates for *settings*, None if it has to be made."""
    try:
        note = json.loads(read_text(_place(folder, settings), _LIMIT))
        if not 0 <= time.time() - note["made"] < DAYS * 86400:
            return None
        if any(_state(path) != state for path, state in note["sources"]):
            return None
        return Path(note["bundle"])
    except (OSError, ValueError, TypeError, KeyError):
        return None


def remember_bundle(
    folder: Path, settings: SessionSettings, bundle: Path, sources: Iterable[Path]
) -> None:
    """Note that *bundle* is the file for *settings*, made from *sources*.

    Raises:
        OSError: the note cannot be written.
    """
    if settings.system_certs or any(
        settings.environ.get(name) for name in _VARIABLES if name != "SSL_CERT_FILE"
    ):
        return  # what they stand for is not one file
    paths = [str(path) for path in (bundle, *sources)]
    note = {
        "bundle": str(bundle),
        "made": time.time(),
        "sources": [[path, _state(path)] for path in paths],
    }
    with replacing(_place(folder, settings), mode=0o600) as file:
        file.write(json.dumps(note).encode())


def _place(folder: Path, settings: SessionSettings) -> Path:
    parts = [settings.environ.get(name, "") for name in _VARIABLES]
    text = json.dumps([*parts, settings.system_certs])
    return folder / f"bundle-{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"


def _state(path: str) -> list[int]:
    status = Path(path).stat()
    # The bundle itself is touched when it is used; its name has its hash.
    return [status.st_size, 0 if "trusted-" in path else status.st_mtime_ns]
