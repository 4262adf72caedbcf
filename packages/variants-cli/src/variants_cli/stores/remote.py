"""A store in object storage: S3 and what speaks its protocol, Google Cloud Storage, Azure."""

from __future__ import annotations

import contextlib
import os
import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pep_variants.errors import redacted

from .aws_profile import s3_configuration
from .store import CHUNK, Changed, Content, Entry, HashedStream, StoreError, Version, checked_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from .store import Headers

SCHEMES = ("s3", "gs", "az")

_CONCURRENT_PARTS = 6
_DELETED_AT_ONCE = 500
_RETRIES: dict[str, Any] = {
    "max_retries": 8,
    "retry_timeout": timedelta(minutes=3),
    "backoff": {"init_backoff": timedelta(milliseconds=200), "max_backoff": timedelta(seconds=15)},
}
_ENDPOINTS = {
    "s3": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
    "gs": (),
    "az": ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
}
_HINTS = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile (AWS_PROFILE), or a role",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS, or gcloud auth application-default login",
    "az": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_TOKEN",
}
_REFUSED = re.compile(r"status code: 40[13]")
_NO_CREDENTIALS = ("169.254.", "metadata.google", "Account must be specified")
"""In errors of looking for them, last at addresses that only machines in clouds have."""
_CODE = re.compile(r"<Code>([^<]{1,60})</")
_MESSAGE = re.compile(r"<Message>([^<]{1,200})</")
_DETAILS = re.compile(r" in [\d.]+(?:ns|µs|ms|s)(?:, after \d+ retries[^-]*)?")


def is_remote(place: str) -> bool:
    """Return whether *place* is the URL of object storage."""
    return place.partition("://")[0].lower() in SCHEMES and "://" in place


class RemoteStore:
    """Implements `store.Store` with obstore, below a prefix of a bucket or container."""

    def __init__(self, url: str, environ: Mapping[str, str]) -> None:
        """Use *url*: ``s3://bucket/prefix``, ``gs://…`` or ``az://container/prefix``.

        Credentials come from where the tools of each vendor take them.

        Raises:
            StoreError: it is not such a URL, the extra ``publish`` is not installed, or its
                configuration is not usable.
        """
        self._scheme = url.partition("://")[0].lower()
        self._url = redacted(url).rstrip("/")
        parts = urlsplit(url)
        if self._scheme not in SCHEMES or not parts.hostname or parts.query or parts.fragment:
            raise StoreError(f"{self._url}: is not a URL like s3://bucket/prefix")
        if parts.username is not None or parts.password is not None:
            raise StoreError(f"{self._url}: has credentials: set {_HINTS[self._scheme]}")
        try:
            import obstore
            from obstore.store import from_url
        except ImportError:
            raise StoreError(
                f"{self._url}: needs obstore: pip install 'variants-cli[publish]'"
            ) from None
        self._obstore: Any = obstore
        options: dict[str, Any] = {}
        config: dict[str, Any] = {}
        if self._scheme == "s3":
            config, options = s3_configuration(environ)
        endpoint = next(
            (environ[name] for name in _ENDPOINTS[self._scheme] if environ.get(name)), ""
        )
        emulated = environ.get("AZURE_STORAGE_USE_EMULATOR", "") if self._scheme == "az" else ""
        plain_http = endpoint.startswith("http://") or bool(emulated)
        try:
            connect: Any = from_url  # one overload per vendor
            self._store = connect(
                self._url,
                config=config or None,
                client_options={"allow_http": True} if plain_http else None,
                retry_config=_RETRIES,
                **options,
            )
        except (obstore.exceptions.BaseError, ValueError) as error:
            raise self._failed("", error) from None

    @property
    def name(self) -> str:
        """The URL."""
        return self._url

    def get(self, path: str, limit: int) -> Content | None:
        """Return the object at *path*, see `store.Store`."""
        with self._errors(path):
            try:
                found = self._obstore.get(self._store, checked_path(path))
            except FileNotFoundError as error:
                self._check_bucket(error)
                return None
            if found.meta["size"] > limit:
                raise StoreError(f"{self._url}/{path}: larger than {limit:,} bytes")
            return Content(bytes(found.bytes()), _version(found.meta))

    def size(self, path: str) -> int | None:
        """Return the bytes of the object at *path*, see `store.Store`."""
        with self._errors(path):
            try:
                return int(self._obstore.head(self._store, checked_path(path))["size"])
            except FileNotFoundError as error:
                self._check_bucket(error)
                return None

    def put(self, path: str, data: bytes, headers: Headers) -> None:
        """Write an object, see `store.Store`."""
        with self._errors(path):
            self._obstore.put(
                self._store, checked_path(path), data, attributes=_attributes(headers)
            )

    def put_file(
        self,
        path: str,
        source: Path,
        sha256: str,
        headers: Headers,
        progress: Callable[[int], None],
    ) -> None:
        """Write the file *source* in parts, several at a time, see `store.Store`."""
        try:
            stream = source.open("rb")
        except OSError as error:
            raise StoreError(f"{source}: {error.strerror or error}") from None
        with stream, self._errors(path):
            chunks = HashedStream(stream, source, sha256, progress)
            large = os.fstat(stream.fileno()).st_size > CHUNK
            self._obstore.put(
                self._store,
                checked_path(path),
                # Parts are read while others are sent; what raises here aborts the upload.
                iter(chunks) if large else b"".join(chunks),
                attributes=_attributes(headers),
                use_multipart=large,
                chunk_size=CHUNK,
                max_concurrency=_CONCURRENT_PARTS,
            )

    def put_if(self, path: str, data: bytes, version: Version | None, headers: Headers) -> None:
        """Write an object if it still has *version*, see `store.Store`."""
        exceptions = self._obstore.exceptions
        with self._errors(path):
            try:
                self._obstore.put(
                    self._store,
                    checked_path(path),
                    data,
                    attributes=_attributes(headers),
                    mode="create" if version is None else _mode(version),
                )
            except (exceptions.AlreadyExistsError, exceptions.PreconditionError):
                raise Changed(f"{self._url}/{path}: was changed by another process") from None
            except FileNotFoundError as error:
                # S3 answers so where the object to replace is gone.
                self._check_bucket(error)
                raise Changed(f"{self._url}/{path}: was removed by another process") from None

    def entries(self, prefix: str) -> Iterator[Entry]:
        """Yield all objects below *prefix*, see `store.Store`."""
        with self._errors(prefix):
            for batch in self._obstore.list(self._store, prefix or None):
                for item in batch:
                    yield Entry(item["path"], item["size"], item["last_modified"])

    def delete(self, paths: Iterable[str]) -> None:
        """Remove objects, see `store.Store`."""
        batch: list[str] = []
        for path in paths:
            batch.append(checked_path(path))
            if len(batch) == _DELETED_AT_ONCE:
                self._delete(batch)
                batch = []
        if batch:
            self._delete(batch)

    def _delete(self, batch: list[str]) -> None:
        with self._errors(batch[0]), contextlib.suppress(FileNotFoundError):
            self._obstore.delete(self._store, batch)

    def _check_bucket(self, error: Exception) -> None:
        """Raise if the bucket itself is missing: the status is that of a missing object."""
        if _no_bucket(error):
            raise self._failed("", error)

    @contextlib.contextmanager
    def _errors(self, path: str) -> Iterator[None]:
        try:
            yield
        except self._obstore.exceptions.BaseError as error:
            raise self._failed(path, error) from None
        except (OSError, ValueError) as error:
            raise self._failed(path, error) from None

    def _failed(self, path: str, error: Exception) -> StoreError:
        """Return what to raise for *error*; obstore has types for some causes of some requests."""
        place = f"{self._url}/{path}" if path else self._url
        exceptions = self._obstore.exceptions
        text = str(error)
        reason = _reason(text)
        if _no_bucket(error):
            bucket = urlsplit(self._url).hostname
            return StoreError(f"{self._url}: there is no bucket {bucket}: create it first")
        if any(word in reason for word in _NO_CREDENTIALS):
            return StoreError(
                f"{place}: no credentials were found: {_HINTS[self._scheme]} ({reason})"
            )
        if isinstance(
            error, exceptions.PermissionDeniedError | exceptions.UnauthenticatedError
        ) or _REFUSED.search(reason):
            return StoreError(
                f"{place}: the storage refused ({reason}): check the permissions of the "
                f"credentials: {_HINTS[self._scheme]}"
            )
        if isinstance(error, exceptions.NotSupportedError) or "NotImplemented" in text:
            return StoreError(
                f"{place}: the storage does not support conditional writes (If-Match), which "
                f"keep two publishers from losing each other's files ({reason})"
            )
        return StoreError(f"{place}: {reason}")


def _no_bucket(error: Exception) -> bool:
    return any(code in str(error) for code in ("NoSuchBucket", "ContainerNotFound"))


def _version(meta: Mapping[str, Any]) -> Version:
    """Return the version of an object: what identifies it differs between vendors."""
    e_tag, version = meta.get("e_tag"), meta.get("version")
    return Version("\n".join((e_tag or "", version or "")))


def _mode(version: Version) -> dict[str, str]:
    e_tag, _, number = version.partition("\n")
    return {name: value for name, value in (("e_tag", e_tag), ("version", number)) if value}


def _attributes(headers: Headers) -> dict[str, str]:
    return {"Content-Type": headers.content_type, "Cache-Control": headers.cache_control}


def _reason(text: str) -> str:
    """Return what an error of obstore says in one line; the rest is a dump of its data."""
    line = text.partition("\n\nDebug source:")[0]
    code, message = _CODE.search(line), _MESSAGE.search(line)
    line = line.partition("<?xml")[0]
    line = _DETAILS.sub("", " ".join(line.split())).rstrip(": ")
    # URLs of requests may be signed.
    line = " ".join(redacted(word) if "://" in word else word for word in line.split(" "))
    if code is not None:
        line = f"{line}: {code[1]}" + (f", {message[1]}" if message is not None else "")
    return line[:500]
