"""Hashes of files, compared with what an index or a lock file says of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

ALGORITHMS = ("sha512", "sha384", "sha256", "sha224", "sha1", "md5")
"""The algorithms that are checked; digests of others are ignored, as pip does."""


class Digests:
    """Hashes the bytes of a file, and compares the digests with the expected ones.

    Every expected digest of a known algorithm has to match.
    """

    def __init__(self, expected: Mapping[str, str]) -> None:
        """Start; *expected* has hexadecimal digests by algorithm."""
        self._expected = {name: expected[name] for name in ALGORITHMS if name in expected}
        self._hashes = {name: hashlib.new(name) for name in self._expected}

    @classmethod
    def of(cls, algorithms: Iterable[str]) -> Digests:
        """Return digests of the known ones of *algorithms*, that are compared with nothing."""
        digests = cls({})
        digests._hashes = {name: hashlib.new(name) for name in algorithms if name in ALGORITHMS}
        return digests

    @property
    def found(self) -> dict[str, str]:
        """Hexadecimal digests of the bytes so far, by algorithm."""
        return {name: digest.hexdigest() for name, digest in self._hashes.items()}

    def update(self, chunk: bytes) -> None:
        """Add the next bytes."""
        for digest in self._hashes.values():
            digest.update(chunk)

    def problem(self) -> str | None:
        """Return which digest differs, fit to follow the name of the file; None if none does."""
        for name, expected in self._expected.items():
            digest = self._hashes[name].hexdigest()
            if digest != expected.lower():
                return f"does not match its {name} hash: expected {expected}, found {digest}"
        return None
