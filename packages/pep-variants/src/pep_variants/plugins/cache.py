"""The directory in which plugin environments and answers are kept.

Anything in it may be deleted at any time. What is read from it is checked first; what is written
becomes visible whole or not at all; who builds something holds a lock, which the system takes
from a process that is killed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import ProviderError

logger = logging.getLogger(__name__)

VARIABLE = "VARIANTS_CACHE_DIR"
"""Environment variable that moves the cache."""

FORMAT = 1
"""Raised when what is kept changes its meaning: takes part in every key."""

_MAX_RECORD_BYTES = 4 * 1024 * 1024


def default_directory(environ: Mapping[str, str]) -> Path:
    """Return where the cache is: in `VARIABLE`, else among the user's caches."""
    if environ.get(VARIABLE):
        return Path(environ[VARIABLE]).absolute() / "plugins"
    import platformdirs

    return platformdirs.user_cache_path("variants", appauthor=False) / "plugins"


def key_of(data: object) -> str:
    """Return a name for *data* (JSON): equal for equal data, fit for a file, telling nothing."""
    text = json.dumps([FORMAT, data], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


@dataclass(frozen=True)
class Cache:
    """The directory, see above.

    Attributes:
        root: made when something is written.
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
            ProviderError: they cannot be made or written, or somebody else could write to them:
                code from there would run with the user's rights.
        """
        advice = f"set {VARIABLE} to a directory of yours"
        try:
            for path in (self.root, self.environments, self.results):
                path.mkdir(mode=0o700, parents=True, exist_ok=True)
                status = path.stat()
                if hasattr(os, "geteuid") and (
                    status.st_uid != os.geteuid() or status.st_mode & 0o022
                ):
                    raise ProviderError(f"{path} can be changed by others: {advice}")
                if not os.access(path, os.W_OK | os.X_OK):
                    raise ProviderError(f"{path} is not writable: {advice}")
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
    """Return the JSON object in the file *path*, None if there is none that can be used."""
    try:
        with path.open("rb") as stream:
            data = stream.read(_MAX_RECORD_BYTES + 1)
        record = json.loads(data) if len(data) <= _MAX_RECORD_BYTES else None
    except (OSError, ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and record.get("format") == FORMAT else None


def write_record(path: Path, record: Mapping[str, object]) -> None:
    """Make *record* the content of the file *path*, atomically; raises OSError."""
    temporary = path.with_name(f".{path.name}.{os.urandom(6).hex()}.tmp")
    try:
        with temporary.open("x", encoding="utf-8") as stream:
            json.dump({"format": FORMAT, **record}, stream)
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
