"""Names of projects, as a command needs them.

`packaging.utils` does the same, and imports `packaging.tags`, `logging`, `subprocess` and others:
longer than a command takes otherwise.
"""

from __future__ import annotations

import re

_SEPARATORS = re.compile(r"[-_.]+")
_NAME = re.compile(r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)")


def normalized(name: str) -> str:
    """Return the normalized form of the name of a project (PEP 503)."""
    return _SEPARATORS.sub("-", name).lower()


def name_of(text: str) -> str | None:
    """Return the project that a requirement or ``name@version`` names, as written.

    Args:
        text: a requirement (PEP 508), or what uv takes in its place.

    Returns:
        The name, None if *text* does not begin with one.
    """
    match = _NAME.match(text)
    return match[1] if match else None
