"""A cache of the properties of distributions in a directory.

Reading a distribution hashes the whole file. A file whose size and modification time are those of
the last run is not read again. The inventory is safe to delete, and is ignored if it is not valid.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from typing import TYPE_CHECKING, Any

from pep_variants.errors import VariantError
from pep_variants.files import replacing

from .wheelhouse import CoreMetadata, Distribution, VariantFile, identified

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

FORMAT = 1
FILENAME = ".inventory.json"

_SETTLED = 2_000_000_000
"""Nanoseconds: a file that changed this shortly before it was read may change again without
another modification time, on file systems with a resolution of seconds."""


class Inventory:
    """Distributions of earlier runs, by path relative to the directory."""

    def __init__(self, path: Path, directory: Path) -> None:
        """Read the inventory at *path*, of the distributions in *directory*."""
        self._path = path
        self._directory = directory
        self._entries: dict[str, Any] = {}
        self._variants: list[str] = []
        try:
            tree = json.loads(path.read_bytes())
            body = tree["body"]
            if tree["format"] == FORMAT and tree["sha256"] == _digest(body):
                self._entries, self._variants = body["files"], body["variants"]
        except (OSError, ValueError, KeyError, TypeError):
            pass  # missing, or not written by us

    def find(self, path: Path, metadata: Path | None) -> Distribution | None:
        """Return the distribution *path*, None if it has to be read.

        Args:
            path: of the distribution.
            metadata: path of its METADATA file, if one is to be written; None otherwise.

        Raises:
            OSError: the file does not exist.
        """
        entry = self._entries.get(self._key(path))
        if entry is None:
            return None
        stat = path.stat()
        if [stat.st_size, stat.st_mtime_ns] != entry["stat"]:
            return None
        core_metadata = variant = None
        if entry["metadata"] is not None:
            digest, size = entry["metadata"]
            try:
                if metadata is not None and metadata.stat().st_size != size:
                    return None
            except FileNotFoundError:
                return None
            core_metadata = CoreMetadata(digest, size, None)
        if entry["variant"] is not None:
            variant = VariantFile(self._variants[entry["variant"]].encode(), str(path))
        try:
            project, version, label = identified(path.name)
        except VariantError:
            return None
        return Distribution(
            path,
            project,
            version,
            label,
            stat.st_size,
            entry["sha256"],
            entry["requires-python"],
            core_metadata,
            variant,
        )

    def write(self, distributions: Iterable[Distribution]) -> None:
        """Replace the inventory with *distributions*.

        Raises:
            OSError: it cannot be written.
        """
        now = time.time_ns()
        variants: dict[str, int] = {}
        files = {}
        for item in distributions:
            stat = item.path.stat()
            if stat.st_size != item.size or now - stat.st_mtime_ns < _SETTLED:
                continue
            text = None if item.variant is None else item.variant.data.decode()
            known = item.core_metadata
            files[self._key(item.path)] = {
                "stat": [stat.st_size, stat.st_mtime_ns],
                "sha256": item.sha256,
                "requires-python": item.requires_python,
                "metadata": None if known is None else [known.sha256, known.size],
                "variant": None if text is None else variants.setdefault(text, len(variants)),
            }
        body = {"files": files, "variants": list(variants)}
        tree = {"format": FORMAT, "sha256": _digest(body), "body": body}
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(self._path) as stream:
            stream.write(json.dumps(tree, separators=(",", ":")).encode())

    def _key(self, path: Path) -> str:
        return os.path.relpath(path, self._directory)


def _digest(body: object) -> str:
    return hashlib.sha256(json.dumps(body, separators=(",", ":")).encode()).hexdigest()
