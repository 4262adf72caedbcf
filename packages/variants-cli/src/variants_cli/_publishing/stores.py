"""Stores of an index of static files: a directory, and object storage.

Objects have paths: relative, with ``/``, without empty, ``.`` and ``..`` segments. Readers see an
object whole or not at all, and see a write as soon as it returned. Several processes, also on
other machines, may write at once: `put_if` replaces an object only if it is the one that was read.
All methods raise `PublishError` if the store cannot be reached or refuses.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

from filelock import FileLock, Timeout

from pep_variants import labels as wheel_labels
from pep_variants import limits, safe_files
from pep_variants.errors import redacted
from variants_index import pages as index_pages

from .._indexing.static_index import HTML_PAGE, JSON_PAGE
from .._indexing.wheelhouse import CORE_METADATA_SUFFIX
from .errors import PublishError, install_command

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Version: TypeAlias = Any
"""Identifies the content of one object, as its store spells it."""

CHUNK = 8 * 1024 * 1024
"""Bytes of a file that are read at a time."""

LOCK = ".publish.lock"
"""Held in a directory while an object is compared and replaced."""

_LOCK_SECONDS = 120.0

_IMMUTABLE = "public, max-age=31536000, immutable"
_CHANGING = "public, max-age=60"

_CREDENTIALS = (
    "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (of a profile: aws configure export-credentials "
    "--format env), a role, or what the tools of Google Cloud and Azure read"
)
_NO_BUCKET = "NoSuchBucket|ContainerNotFound"
# Causes in the texts of errors, which obstore has types for in some requests only.
_CAUSES = {
    _NO_BUCKET: "there is no such bucket: create it first",
    # Last looked for at addresses that only machines in clouds have.
    r"169\.254\.|metadata\.google|Account must be specified": "no credentials were found: set "
    + _CREDENTIALS,
    "status code: 40[13]": "the storage refused: check the permissions of the credentials: "
    + _CREDENTIALS,
    "NotImplemented|NotSupported": "the storage does not support conditional writes (If-Match), "
    "which keep two publishers from losing each other's files",
}
_CODE = re.compile(r"<Code>([^<]{1,60})</(?:.*?<Message>([^<]{1,200})</)?", re.DOTALL)


class PreconditionFailed(PublishError):
    """An object is not, or no longer, the version that was to be replaced."""


@dataclass(frozen=True)
class StoredContent:
    """An object that was read.

    Attributes:
        data: all of it.
        version: of exactly these bytes.
    """

    data: bytes
    version: Version


def open_store(place: str) -> Store:
    """Return the store at *place*: a directory, or a URL such as ``s3://bucket/prefix``.

    Raises:
        PublishError: it is neither, or its configuration is not usable.
    """
    if "://" in place:
        return ObjectStore(place)
    path = Path(place)
    if path.exists() and not path.is_dir():
        raise PublishError(
            f"{place}: is a file: give a directory, or a URL such as s3://bucket/prefix"
        )
    return DirectoryStore(path)


class DirectoryStore:
    """A store in a directory, which is created when it is first written.

    Nothing is read or written through links in it, which may lead elsewhere.
    """

    def __init__(self, root: Path) -> None:
        """Use the directory *root*."""
        self._root = root
        self._is_tidy = False
        self.name = str(root)

    def get(self, path: str, limit: int) -> StoredContent | None:
        """Return the object at *path* of at most *limit* bytes, None if there is none."""
        with self._errors(path), contextlib.suppress(FileNotFoundError, NotADirectoryError):
            data = safe_files.patiently(
                lambda: safe_files.read_regular(self._path(path), limit).data
            )
            return StoredContent(data, hashlib.sha256(data).hexdigest())
        return None

    def size(self, path: str) -> int | None:
        """Return the bytes of the object at *path*."""
        with self._errors(path), contextlib.suppress(FileNotFoundError, NotADirectoryError):
            return self._path(path).stat().st_size
        return None

    def put(self, path: str, data: bytes | Iterable[bytes]) -> None:
        """Write an object, in one or more chunks; nothing if reading them fails."""
        target = self._path(path)
        with self._errors(path):
            target.parent.mkdir(parents=True, exist_ok=True)
            if not self._is_tidy:  # of what publishers that were ended have left
                self._is_tidy = True
                safe_files.remove_leftovers(self._root, below=True)
            with safe_files.replacing(target, durable=True) as stream:
                for chunk in (data,) if isinstance(data, bytes) else data:
                    stream.write(chunk)

    def put_if(self, path: str, data: bytes, version: Version | None) -> None:
        """Write an object if it still has *version*; None if it must not exist yet.

        Raises:
            PreconditionFailed: it has another, or is there, or is not.
        """
        with self._errors(path):
            self._root.mkdir(parents=True, exist_ok=True)
            try:
                with FileLock(self._root / LOCK, timeout=_LOCK_SECONDS):
                    found = self.get(path, limits.PROJECTS_BYTES)
                    if (found.version if found else None) != version:
                        raise PreconditionFailed(
                            f"{self._path(path)}: was changed by another process"
                        )
                    self.put(path, data)
            except Timeout:
                raise PublishError(
                    f"{self._root / LOCK}: another process holds it for {_LOCK_SECONDS:.0f} seconds"
                ) from None

    def paths(self, prefix: str) -> Iterator[str]:
        """Yield the paths of all objects below *prefix*."""
        top = self._path(prefix) if prefix else self._root
        left = set(safe_files.leftovers(top, below=True))
        for found in sorted(top.rglob("*")):
            path = found.relative_to(self._root).as_posix()
            is_own = path != LOCK and found not in left
            if is_own and found.is_file() and not found.is_symlink():
                yield path

    def delete(self, paths: Iterable[str]) -> None:
        """Remove objects."""
        for path in paths:
            with self._errors(path), contextlib.suppress(NotADirectoryError):
                safe_files.patiently(partial(self._path(path).unlink, missing_ok=True))

    def _path(self, path: str) -> Path:
        found = self._root
        for name in _checked(path).split("/"):
            found /= name
            if found.is_symlink():
                raise PublishError(f"{found}: is a link, and what it leads to is left alone")
        return found

    def left(self) -> list[tuple[Path, int]]:
        """Return path and size of files that publishers write now, or were ended in writing."""
        found = []
        for path in safe_files.leftovers(self._root, below=True):
            with contextlib.suppress(OSError):
                found.append((path, path.lstat().st_size))
        return found

    @contextlib.contextmanager
    def _errors(self, path: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise PublishError(f"{self._path(path)}: {error.strerror or error}") from None


class ObjectStore:
    """A store with obstore, below a prefix of a bucket or container.

    S3 and what speaks its protocol, Google Cloud Storage, Azure.
    """

    def __init__(self, url: str) -> None:
        """Use *url*: ``s3://bucket/prefix``, ``gs://…`` or ``az://container/prefix``.

        Credentials come from where the tools of each vendor take them.

        Raises:
            PublishError: it is not such a URL, the extra ``publish`` is not installed, or its
                configuration is not usable.
        """
        parts = urlsplit(url)
        self.name = redacted(url).rstrip("/")
        is_known = parts.scheme in ("s3", "gs", "az") and parts.hostname
        if not is_known or parts.query or parts.fragment:
            raise PublishError(
                f"{self.name}: is neither a directory nor an s3://, gs:// or az:// URL, such as "
                "s3://bucket/prefix"
            )
        if "@" in parts.netloc:
            raise PublishError(f"{self.name}: has credentials: set {_CREDENTIALS}")
        try:
            import obstore.store
        except ImportError:
            raise PublishError(
                f"{self.name}: needs obstore: {install_command('publish')}"
            ) from None
        self._obstore: Any = obstore
        connect: Any = obstore.store.from_url  # one overload per vendor
        with self._errors(""):
            # Without TLS only where AWS_ENDPOINT_URL and the like say so.
            self._store = connect(self.name, client_options={"allow_http": True})

    def get(self, path: str, limit: int) -> StoredContent | None:
        """Return the object at *path*."""
        with self._errors(path), self._missing():
            found = self._obstore.get(self._store, _checked(path))
            if found.meta["size"] > limit:
                raise PublishError(f"{self.name}/{path}: larger than {limit:,} bytes")
            # What identifies an object differs between vendors.
            version = {key: found.meta[key] for key in ("e_tag", "version") if found.meta.get(key)}
            return StoredContent(bytes(found.bytes()), version)
        return None

    def size(self, path: str) -> int | None:
        """Return the bytes of the object at *path*."""
        with self._errors(path), self._missing():
            return int(self._obstore.head(self._store, _checked(path))["size"])
        return None

    def put(self, path: str, data: bytes | Iterable[bytes]) -> None:
        """Write an object; chunks are read while others are sent."""
        with self._errors(path):
            self._put(path, data)

    def put_if(self, path: str, data: bytes, version: Version | None) -> None:
        """Write an object if it still has *version*."""
        exceptions = self._obstore.exceptions
        with self._errors(path):
            try:
                self._put(path, data, version or "create")
            except (
                exceptions.AlreadyExistsError,
                exceptions.PreconditionError,
                FileNotFoundError,  # S3 answers so where the object to replace is gone
            ) as error:
                if re.search(_NO_BUCKET, str(error)):
                    raise
                raise PreconditionFailed(
                    f"{self.name}/{path}: was changed by another process"
                ) from None

    def paths(self, prefix: str) -> Iterator[str]:
        """Yield the paths of all objects below *prefix*."""
        with self._errors(prefix):
            for batch in self._obstore.list(self._store, prefix or None):
                for item in batch:
                    yield item["path"]

    def delete(self, paths: Iterable[str]) -> None:
        """Remove objects."""
        wanted = [_checked(path) for path in paths]
        if wanted:
            with self._errors(wanted[0]), self._missing():
                self._obstore.delete(self._store, wanted)

    def _put(self, path: str, data: bytes | Iterable[bytes], mode: Any = None) -> None:  # noqa: ANN401
        attributes = _attributes(path)
        self._obstore.put(self._store, _checked(path), data, attributes=attributes, mode=mode)

    @contextlib.contextmanager
    def _missing(self) -> Iterator[None]:
        """Let objects be missing, but not the bucket: the status is the same."""
        try:
            yield
        except FileNotFoundError as error:
            if re.search(_NO_BUCKET, str(error)):
                raise

    @contextlib.contextmanager
    def _errors(self, path: str) -> Iterator[None]:
        try:
            yield
        except (self._obstore.exceptions.BaseError, OSError, ValueError) as error:
            where = f"{self.name}/{path}".rstrip("/")
            reason = _reason(str(error))
            found = (words for cause, words in _CAUSES.items() if re.search(cause, str(error)))
            words = next(found, "")
            raise PublishError(
                f"{where}: {words} ({reason})" if words else f"{where}: {reason}"
            ) from None


Store = DirectoryStore | ObjectStore


def file_chunks(source: Path, sha256: str) -> Iterator[bytes]:
    """Yield the chunks of a file; the last one only if the file is the one that was expected."""
    digest = hashlib.sha256()
    held = b""
    try:
        with source.open("rb") as stream:
            while chunk := stream.read(CHUNK):
                if held:
                    yield held
                held = chunk
                digest.update(chunk)
    except OSError as error:
        raise PublishError(f"{source}: {error.strerror or error}") from None
    if digest.hexdigest() != sha256:
        raise PublishError(f"{source}: changed while it was read: run the command again")
    yield held


def _checked(path: str) -> str:
    """Return *path* if it names an object inside a store."""
    if any(segment in ("", ".", "..") for segment in path.split("/")) or "\\" in path:
        raise PublishError(f"{path!r}: is not the path of an object")
    return path


def _attributes(path: str) -> dict[str, str]:
    """Return what servers are to send with the object at *path*; only pages ever change."""
    name = path.rpartition("/")[2]
    kind, cached = "application/octet-stream", _IMMUTABLE
    if name == JSON_PAGE:
        kind, cached = index_pages.JSON, _CHANGING
    elif name == HTML_PAGE:
        kind, cached = "text/html; charset=utf-8", _CHANGING
    elif name.endswith(wheel_labels.METADATA_SUFFIX):
        kind = "application/json"
    elif name.endswith(CORE_METADATA_SUFFIX):
        kind = "text/plain; charset=utf-8"
    return {"Content-Type": kind, "Cache-Control": cached}


def _reason(text: str) -> str:
    """Return what an error of obstore says in one line; the rest is a dump of its data."""
    line = text.partition("\n\nDebug source:")[0]
    code = _CODE.search(line)
    line = " ".join(line.partition("<?xml")[0].split()).rstrip(": ")
    # URLs of requests may be signed.
    line = " ".join(redacted(word) if "://" in word else word for word in line.split(" "))
    return ": ".join(filter(None, (line, *(code.groups() if code else ()))))[:500]
