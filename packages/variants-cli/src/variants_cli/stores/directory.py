"""A store in a directory, which several processes, also on other machines, may write at once."""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeVar

from filelock import FileLock, Timeout

from pep_variants.files import read_regular, replacing

from .store import Changed, Content, Entry, HashedStream, StoreError, Version, checked_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from .store import Headers

_Result = TypeVar("_Result")

LOCK = ".publish.lock"
"""Held while an object is compared and replaced."""

LOCK_SECONDS = 120.0

_BUSY_SECONDS = 5.0
"""How long Windows may refuse to replace a file that another process reads."""


class DirectoryStore:
    """Implements `store.Store` in a directory, which is created when it is first written."""

    def __init__(self, root: Path) -> None:
        """Use the directory *root*."""
        self._root = root

    @property
    def name(self) -> str:
        """The directory."""
        return str(self._root)

    def get(self, path: str, limit: int) -> Content | None:
        """Return the object at *path*, see `store.Store`."""
        try:
            data = _patiently(lambda: read_regular(self._path(path), limit).data)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise self._failed(path, error) from None
        return Content(data, _version(data))

    def size(self, path: str) -> int | None:
        """Return the bytes of the object at *path*, see `store.Store`."""
        try:
            return self._path(path).stat().st_size
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise self._failed(path, error) from None

    def put(self, path: str, data: bytes, headers: Headers) -> None:
        """Write an object, see `store.Store`."""
        del headers  # a file server derives them from the name
        with self._writing(path) as stream:
            stream.write(data)

    def put_file(
        self,
        path: str,
        source: Path,
        sha256: str,
        headers: Headers,
        progress: Callable[[int], None],
    ) -> None:
        """Write the file *source*, see `store.Store`."""
        del headers
        try:
            stream = source.open("rb")
        except OSError as error:
            raise StoreError(f"{source}: {error.strerror or error}") from None
        with stream, self._writing(path) as target:
            for chunk in HashedStream(stream, source, sha256, progress):
                target.write(chunk)

    def put_if(self, path: str, data: bytes, version: Version | None, headers: Headers) -> None:
        """Write an object if it still has *version*, see `store.Store`."""
        with self._locked(path):
            try:
                there = _version(_patiently(self._path(path).read_bytes))
            except (FileNotFoundError, NotADirectoryError):
                there = None
            except OSError as error:
                raise self._failed(path, error) from None
            if there != version:
                raise Changed(f"{self._path(path)}: was changed by another process")
            self.put(path, data, headers)

    def entries(self, prefix: str) -> Iterator[Entry]:
        """Yield all objects below *prefix*, see `store.Store`."""
        top = self._path(prefix) if prefix else self._root
        for found in sorted(top.rglob("*")):
            path = found.relative_to(self._root).as_posix()
            try:
                status = found.stat()
            except OSError:
                continue  # removed meanwhile
            if path != LOCK and found.is_file():
                modified = datetime.fromtimestamp(status.st_mtime, timezone.utc)
                yield Entry(path, status.st_size, modified)

    def delete(self, paths: Iterable[str]) -> None:
        """Remove objects, and directories that are empty then, see `store.Store`."""
        for path in paths:
            found = self._path(path)
            try:
                _patiently(lambda found=found: found.unlink(missing_ok=True))  # type: ignore[misc]
            except NotADirectoryError:
                continue
            except OSError as error:
                raise self._failed(path, error) from None
            for folder in found.parents:
                if folder == self._root:
                    break
                try:
                    folder.rmdir()
                except OSError:
                    break  # not empty

    def _path(self, path: str) -> Path:
        return self._root.joinpath(*checked_path(path).split("/"))

    @contextlib.contextmanager
    def _writing(self, path: str) -> Iterator[IO[bytes]]:
        """Yield a file that becomes the object *path*, on the disk before this returns."""
        target = self._path(path)
        with contextlib.ExitStack() as stack:
            try:
                yield self._opened(target, stack)
                stack.close()  # its errors are those of writing
            except OSError as error:
                raise self._failed(path, error) from None

    def _opened(self, target: Path, stack: contextlib.ExitStack) -> IO[bytes]:
        tries = 10
        while True:
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                return stack.enter_context(replacing(target, durable=True))
            except FileNotFoundError:
                # Another process removed the directory, as it was empty.
                tries -= 1
                if not tries:
                    raise

    @contextlib.contextmanager
    def _locked(self, path: str) -> Iterator[None]:
        try:
            self._root.mkdir(parents=True, exist_ok=True)
            place = _lock_path(self._root)
            lock = FileLock(place, timeout=LOCK_SECONDS)
            lock.acquire()
        except Timeout:
            raise StoreError(
                f"{place}: another process holds it for {LOCK_SECONDS:.0f} seconds"
            ) from None
        except OSError as error:
            raise self._failed(path, error) from None
        try:
            yield
        finally:
            lock.release()

    def _failed(self, path: str, error: OSError) -> StoreError:
        return StoreError(f"{self._path(path)}: {error.strerror or error}")


def _lock_path(root: Path) -> Path:
    """Return the file to lock for *root*: in a checkout of git where no commit includes it."""
    root = root.resolve()
    for folder in (root, *root.parents):
        git = folder / ".git"
        if git.is_dir():
            return git / LOCK.lstrip(".")
        if git.is_file():  # a worktree or a submodule
            target = git.read_text("utf-8", "replace").removeprefix("gitdir:").strip()
            return folder / target / LOCK.lstrip(".")
    return root / LOCK


def _version(data: bytes) -> Version:
    return Version(hashlib.sha256(data).hexdigest())


def _patiently(act: Callable[[], _Result]) -> _Result:
    """Return what *act* returns; on Windows, repeat it while another process has the file open."""
    deadline = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            return act()
        except PermissionError:
            if os.name != "nt" or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
