"""Project pages on disk: for a new process to ask whether they have changed, and for failures."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256

from variants_index.cache.store import Store

from ..settings import Upstream

_KIND = "proxy-page"


@dataclass(frozen=True)
class PageRecord:
    """A page as it was received.

    Attributes:
        body: of the response.
        kind: content type.
        url: after redirects; empty if there is no record.
        time: of the last validation that was recorded, seconds since the epoch.
        private: whether it was fetched with credentials.
        validators: see `variants_index.http.session.Response`.
    """

    body: bytes = field(default=b"", repr=False)
    kind: str = ""
    url: str = ""
    time: float = 0.0
    private: bool = False
    validators: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, store: Store, upstream: Upstream, project: str) -> PageRecord:
        """Return the record of a page, an empty one if there is none."""
        record = store.get(_KIND, _name(upstream, project))
        if record is None:
            return cls()
        head, _, body = record.partition(b"\n")
        try:
            tree = json.loads(head)
            return cls(
                body,
                str(tree["kind"]),
                str(tree["url"]),
                float(tree["time"]),
                bool(tree["private"]),
                {str(name): str(value) for name, value in tree["validators"].items()},
            )
        except (ValueError, KeyError, TypeError, AttributeError):
            return cls()  # of another release

    def write(self, store: Store, upstream: Upstream, project: str) -> None:
        """Write it as the record of a page."""
        head = {
            "kind": self.kind,
            "url": self.url,
            "time": self.time,
            "private": self.private,
            "validators": dict(self.validators),
        }
        data = json.dumps(head).encode() + b"\n" + self.body
        store.put(_KIND, _name(upstream, project), data)

    @property
    def digest(self) -> str:
        """Hash of all that decides what the page says."""
        return page_digest(self.body, self.kind, self.url)


def page_digest(body: bytes, kind: str, url: str) -> str:
    """Return the hash of a page: of its contents, their type, and the base of its links."""
    return sha256(body + f"\n{kind}\n{url}".encode()).hexdigest()


def _name(upstream: Upstream, project: str) -> str:
    credentials = upstream.credentials
    user = credentials.username if credentials else ""
    return json.dumps([upstream.url, upstream.kind, user, project])
