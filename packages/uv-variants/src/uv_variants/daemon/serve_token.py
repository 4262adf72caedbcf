"""The token of ``uv-variants serve``, which stays when the proxy is started again.

Files that ``uv-variants config`` wrote have it in them.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from pep_variants.files import read_text, replacing

from .record import state_folder

_LENGTH = 24
_LIMIT = 1024


def serve_token(environ: Mapping[str, str]) -> str:
    """Return the token, which is made if there is none that only the user could read.

    Raises:
        OSError: it cannot be written.
    """
    path = state_folder(environ) / "serve-token"
    known = _known(path)
    if known is not None:
        return known
    token = secrets.token_urlsafe(_LENGTH)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with replacing(path, mode=0o600) as file:
        file.write(token.encode())
    return token


def _known(path: Path) -> str | None:
    try:
        if os.name != "nt":
            status = path.lstat()
            if status.st_uid != os.getuid() or status.st_mode & 0o077:
                return None
        token = read_text(path, _LIMIT).strip()
    except (OSError, ValueError):
        return None
    return token if len(token) >= _LENGTH and token.isascii() and token.isprintable() else None
