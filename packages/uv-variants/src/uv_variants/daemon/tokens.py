"""Secrets of the daemon: one that only commands of its user know, and one per session from it.

The daemon's secret is in its state file alone. uv, and what uv starts, get the token of their
session, which opens nothing but that session. Both follow from the secret, so a daemon that is
restarted with it accepts the tokens of commands in progress.
"""

from __future__ import annotations

import hmac
import os

NONCE_BYTES = 16


def new_secret() -> str:
    """Return a new secret of a daemon."""
    return os.urandom(32).hex()


def new_id() -> str:
    """Return the id of a new session, or a nonce."""
    return os.urandom(NONCE_BYTES).hex()


def session_token(secret: str, session: str) -> str:
    """Return the token of the session with the id *session*."""
    return _digest(secret, f"session:{session}")


def proof(secret: str, nonce: str) -> str:
    """Return what a daemon that knows *secret* answers to *nonce*."""
    return _digest(secret, f"health:{nonce}")


def is_equal(given: str, expected: str) -> bool:
    """Compare secrets, in a time that does not depend on where they differ."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode())


def _digest(secret: str, text: str) -> str:
    return hmac.digest(secret.encode(), text.encode(), "sha256").hex()
