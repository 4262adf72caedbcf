"""Storage of the HTTP cache: `hishel` implements RFC 9111, a `Store` has the records.

Only headers that caching needs are stored: of requests those that `Vary` may name, of responses no
cookies. Responses of URLs with a query, which may be signed, are not stored.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Iterable, Iterator
from typing import cast

import httpx
from hishel import BaseStorage, CacheOptions, Entry, Headers, Request, Response
from hishel.httpx import CacheTransport

from pep_variants import limits

from .store import Store

KIND = "http"
_REQUEST_HEADERS = ("accept", "accept-encoding")
_RESPONSE_HEADERS = (
    "age", "cache-control", "content-encoding", "content-length", "content-type", "date",
    "etag", "expires", "last-modified", "vary",
)  # fmt: skip
_OK = 200
_MOST_NAMES = 4096


def cache_transport(below: httpx.BaseTransport, store: Store) -> httpx.BaseTransport:
    """Return a transport that sends through *below* what a private cache in *store* lacks."""
    return CacheTransport(
        below,
        storage=ResponseStorage(store),
        rfc=CacheOptions(shared=False, allow_stale=False),
    )


class ResponseStorage(BaseStorage):
    """`hishel` storage with one response per URL, each a record of a `Store`."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self._store = store
        self._lock = threading.Lock()
        # `update_headers` gets the id only.
        self._names: dict[uuid.UUID, str] = {}

    def create_entry(
        self,
        request: Request,
        response: Response,
        key: str,
        *,
        ttl: float | None = None,  # noqa: ARG002 - headers have it
        tti: float | None = None,  # noqa: ARG002
    ) -> Entry:
        """Return an entry that is stored when its body was read to the end."""
        entry = Entry(uuid.uuid4(), request, response)
        if response.status_code == _OK and "?" not in request.url:
            stream = cast("Iterable[bytes]", response.stream or ())
            response.stream = self._saving(iter(stream), request, response, key)
        return entry

    def get_entries(self, key: str) -> list[Entry]:
        """Return the stored response under *key*, if any."""
        payload = self._store.get(KIND, key)
        if payload is None:
            return []
        try:
            head, _, body = payload.partition(b"\n")
            tree = json.loads(head)
            entry = Entry(
                uuid.UUID(tree["id"]),
                Request("GET", tree["url"], Headers(tree["request"])),
                Response(_OK, Headers(tree["response"]), iter((body,))),
            )
        except (ValueError, KeyError, TypeError):
            self._store.remove(KIND, key)  # of another release
            return []
        with self._lock:
            self._names[entry.id] = key
            if len(self._names) > _MOST_NAMES:  # a long-running server
                self._names.pop(next(iter(self._names)), None)
        return [entry]

    def update_headers(self, id: uuid.UUID, headers: Headers) -> None:  # noqa: A002
        """Update a stored response with the headers of a 304 response."""
        key = self._names.get(id)
        payload = None if key is None else self._store.get(KIND, key)
        if key is None or payload is None:
            return
        head, _, body = payload.partition(b"\n")
        tree = json.loads(head)
        kept = _kept(headers, _RESPONSE_HEADERS)
        # Most servers change nothing, and the page is revalidated the next time too.
        if tree["id"] == str(id) and _stable(kept) != _stable(tree["response"]):
            tree["response"] = {**tree["response"], **kept}
            self._store.put(KIND, key, json.dumps(tree).encode() + b"\n" + body)

    def remove_entry(self, id: uuid.UUID) -> None:  # noqa: A002
        """Remove a stored response."""
        key = self._names.pop(id, None)
        if key is not None:
            self._store.remove(KIND, key)

    def _saving(
        self, stream: Iterator[bytes], request: Request, response: Response, key: str
    ) -> Iterator[bytes]:
        parts: list[bytes] = []
        size = 0
        for chunk in stream:
            size += len(chunk)
            if size <= limits.CACHED_ANSWER_BYTES:
                parts.append(chunk)
            else:
                parts.clear()
            yield chunk
        if size > limits.CACHED_ANSWER_BYTES:
            return
        head = {
            "id": str(uuid.uuid4()),
            "url": request.url,
            "request": _kept(request.headers, _REQUEST_HEADERS),
            "response": _kept(response.headers, _RESPONSE_HEADERS),
        }
        self._store.put(KIND, key, json.dumps(head).encode() + b"\n" + b"".join(parts))


def _kept(headers: Headers, names: Iterable[str]) -> dict[str, str]:
    return {name: value for name in names if (value := headers.get(name)) is not None}


def _stable(headers: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name not in ("age", "date")}
