"""Records in a directory: whole or not at all, checked when they are read, gone without harm.

No record is ever changed in place, so there is nothing to lock: fifty processes may write the same
record, and whoever reads it sees one of them. What a killed process leaves behind is a temporary
file in a folder of its own, which is cleared when it is old. How much is kept, see `eviction`.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import secrets
import time
from collections.abc import Mapping
from pathlib import Path

from pep_variants.plugins.cache import VARIABLE

from . import eviction
from .eviction import Bounds, Usage

logger = logging.getLogger(__name__)

FORMAT = "1"
"""Raised when what is kept changes its meaning: part of the path."""

_MAGIC = b"pep-variants index cache\n"
_DIGEST = hashlib.sha256().digest_size
_HOUR = 3600.0


def default_directory(environ: Mapping[str, str]) -> Path:
    """Return where records are kept: below ``VARIANTS_CACHE_DIR``, else among the user's caches."""
    if environ.get(VARIABLE):
        return Path(environ[VARIABLE]).absolute() / "index"
    import platformdirs

    return platformdirs.user_cache_path("variants", appauthor=False) / "index"


class Store:
    """The directory, see above; safe to use from several threads.

    Attributes:
        root: made when something is written.
        bounds: how much is kept.
        problem: why nothing is written any more, empty as long as all is well. A full disk costs
            the cache, not the work.
    """

    def __init__(self, root: Path, bounds: Bounds | None = None) -> None:
        self.root = root / FORMAT
        self.bounds = bounds or Bounds()
        self.problem = ""
        self._unfinished = self.root / eviction.UNFINISHED
        self._look_again = 0.0

    def get(self, kind: str, name: str) -> bytes | None:
        """Return the record, None if there is none, or none that is whole.

        Args:
            kind: what it is, a word fit for a folder.
            name: anything that identifies it; only its hash is kept.
        """
        path = self._path(kind, name)
        try:
            with path.open("rb") as stream:
                status = os.fstat(stream.fileno())
                data = stream.read()
        except OSError:
            return None
        start = len(_MAGIC) + _DIGEST
        payload = data[start:]
        if data[:start] == _MAGIC + hashlib.sha256(payload).digest():
            eviction.mark_used(path, status)
            return payload
        logger.debug("%s is damaged: removed", path)
        with contextlib.suppress(OSError):
            path.unlink()
        return None

    def put(self, kind: str, name: str, payload: bytes) -> None:
        """Keep *payload*, if that can be done and it is not larger than all may be."""
        size = len(_MAGIC) + _DIGEST + len(payload)
        if self.problem or eviction.occupied(size) > self.bounds.size:
            return
        path = self._path(kind, name)
        try:
            try:
                self._write(path, payload, size)
            except FileNotFoundError:  # somebody removed the directory meanwhile
                self._look_again = 0.0
                self._write(path, payload, size)
        except PermissionError as error:
            # Windows: somebody reads what would be replaced. He has a record, that will do.
            if not path.exists():
                self._give_up(error)
        except OSError as error:
            self._give_up(error)

    def remove(self, kind: str, name: str) -> None:
        """Forget a record."""
        with contextlib.suppress(OSError):
            self._path(kind, name).unlink()

    def usage(self) -> dict[str, Usage]:
        """Return how many records of each kind there are, and what they take on disk."""
        return eviction.usage(self.root)

    def clear(self) -> Usage:
        """Forget everything; return what that was."""
        return eviction.clear(self.root)

    def _path(self, kind: str, name: str) -> Path:
        key = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
        return self.root / kind / key[:2] / key[2:40]

    def _write(self, path: Path, payload: bytes, size: int) -> None:
        outdated = self._prepare()
        if not eviction.admit(self.root, size, self.bounds, outdated=outdated):
            return
        temporary = self._unfinished / secrets.token_hex(12)
        try:
            with temporary.open("xb") as stream:
                stream.write(_MAGIC + hashlib.sha256(payload).digest())
                stream.write(payload)
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise

    def _prepare(self) -> bool:
        """Make the directory; return whether nobody looked through it for a day."""
        now = time.monotonic()
        if now < self._look_again:
            return False
        # What private indexes have is nobody else's business.
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._unfinished.mkdir(mode=0o700, exist_ok=True)
        eviction.clear_abandoned(self.root)
        self._look_again = now + _HOUR
        return eviction.stale(self.root)

    def _give_up(self, error: OSError) -> None:
        reason = error.strerror or str(error)
        self.problem = f"{os.fspath(self.root)}: the cache cannot be written: {reason}"
        logger.debug("%s", self.problem)
