"""The directory in which plugin environments and answers are kept.

Anything in it may be deleted at any time. Records are checked when they are read and written
atomically. A process that builds something holds a lock, which the system releases when the process
is killed.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pep_variants.cache_directory import VARIABLE
from pep_variants.errors import ProviderError
from pep_variants.files import replacing
from pep_variants.ownership import NotPrivate, make_private

logger = logging.getLogger(__name__)

FORMAT = 1
"""Version of the format of all records, a part of every key."""

_MAX_RECORD_BYTES = 4 * 1024 * 1024


def key_of(data: object) -> str:
    """Return a name for *data* (JSON): equal for equal data, valid in a path, and a hash."""
    text = json.dumps([FORMAT, data], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


@dataclass(frozen=True)
class Cache:
    """The cache directory.

    Attributes:
        root: its path; created when something is written.
    """

    root: Path

    @property
    def environments(self) -> Path:
        """Plugin environments, one directory per key, with a lock beside each."""
        return self.root / "environments"

    @property
    def results(self) -> Path:
        """Answers of plugins, one file per key."""
        return self.root / "results"

    def prepare(self) -> None:
        """Make the directories.

        Raises:
            ProviderError: they cannot be made or written, or other users could write to them:
                code from there would run with the user's rights.
        """
        advice = f"set {VARIABLE} to a directory that you own"
        try:
            for path in (self.root, self.environments, self.results):
                make_private(path)
                if not os.access(path, os.W_OK | os.X_OK):
                    raise ProviderError(f"{path} is not writable: {advice}")
        except NotPrivate as error:
            raise ProviderError(f"{error}, or {advice}") from None
        except OSError as error:
            raise ProviderError(f"{self.root} cannot be used: {error.strerror}: {advice}") from None

    @contextmanager
    def locked(self, key: str, timeout: float) -> Iterator[None]:
        """Hold the lock of the environment *key*.

        Raises:
            ProviderError: another process held it for *timeout* seconds, or locks do not work.
        """
        import filelock

        path = self.environments / f"{key}.lock"
        lock = filelock.FileLock(str(path))
        try:
            try:
                lock.acquire(timeout=min(timeout, 1.0))
            except filelock.Timeout:
                logger.info("waiting for another process that works with %s", path)
                lock.acquire(timeout=timeout)
        except filelock.Timeout:
            raise ProviderError(f"another process has held {path} for {timeout:.0f} s") from None
        except (OSError, NotImplementedError) as error:
            raise ProviderError(
                f"{path} cannot be locked ({error}): set {VARIABLE} to a local directory"
            ) from None
        try:
            yield
        finally:
            lock.release()


def read_record(path: Path) -> dict[str, Any] | None:
    """Return the JSON object in the file *path*, None if there is no usable one."""
    try:
        with path.open("rb") as stream:
            data = stream.read(_MAX_RECORD_BYTES + 1)
        record = json.loads(data) if len(data) <= _MAX_RECORD_BYTES else None
    except (OSError, ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and record.get("format") == FORMAT else None


def write_record(path: Path, record: Mapping[str, object]) -> None:
    """Make *record* the content of the file *path*, atomically; raises OSError."""
    with replacing(path) as stream:
        stream.write(json.dumps({"format": FORMAT, **record}).encode())
