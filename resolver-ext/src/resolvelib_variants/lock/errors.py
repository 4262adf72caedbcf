"""Errors of lock files."""

from __future__ import annotations


class LockError(Exception):
    """A lock file that cannot be written, read, or installed from; names file and package."""
