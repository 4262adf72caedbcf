"""What is a URL, and what is a path."""

from __future__ import annotations


def is_url(text: str) -> bool:
    """Return whether *text* is a URL rather than a path."""
    return text.startswith(("http://", "https://", "file://"))
