"""Responses of the proxy and their headers: formats, validators, browsers.

Clients ask again for whatever may change, with its entity tag. What depends on who asks is private:
no cache before the proxy may keep it for another client.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal

Headers = list[tuple[bytes, bytes]]
PageFormat = Literal["json", "html"]
"""Format of a page: PEP 691 or PEP 503."""

SECURITY_HEADERS: Headers = [
    (b"content-security-policy", b"sandbox; default-src 'none'"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
]
"""Of every response: in a browser, no text of an upstream runs scripts in the proxy's origin, is
sniffed as another type, is embedded elsewhere, or receives a referrer."""

_JSON = ("application/vnd.pypi.simple.v1+json", "application/vnd.pypi.simple.latest+json")
_HTML = (
    "application/vnd.pypi.simple.v1+html",
    "application/vnd.pypi.simple.latest+html",
    "text/html",
    "text/*",
    "*/*",
)


@dataclass(frozen=True)
class Document:
    """A complete response, which clients can revalidate.

    Attributes:
        body: as it is sent.
        kind: content type.
        cache: value of ``Cache-Control``.
        vary: value of ``Vary``.
        tag: entity tag; empty for one of the body.
    """

    body: bytes
    kind: str
    cache: str = "no-cache"
    vary: str = ""
    tag: str = ""

    def answer(self, if_none_match: str) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers and body for a request with this ``If-None-Match``."""
        tag = self.tag or f'"{hashlib.sha256(self.body).hexdigest()[:32]}"'
        headers = {"cache-control": self.cache, "etag": tag}
        if self.vary:
            headers["vary"] = self.vary
        if is_known(if_none_match, tag):
            return 304, headers, b""
        return 200, headers | {"content-type": self.kind}, self.body


def page_digest(body: bytes, content_type: str, url: str) -> str:
    """Return the hash of an index's page: of contents, their type, and the base of its links."""
    return hashlib.sha256(body + f"\n{content_type}\n{url}".encode()).hexdigest()


def tag_as_sent(body: bytes, content_type: str, url: str) -> str:
    """Return the entity tag of a page that is passed on, see `tag_of_unchanged`."""
    return tag_of_unchanged(page_digest(body, content_type, url))


def tag_of_unchanged(digest: str) -> str:
    """Return the entity tag of a page that is passed on, where its index has none for it.

    It is none that a page of this proxy has: what has it needs no choice as long as the index has
    the same page (`page_digest`).
    """
    return f'"as-sent-{digest[:32]}"'


def is_known(if_none_match: str, tag: str) -> bool:
    """Return whether one of the entity tags in ``If-None-Match`` is *tag* (RFC 9110, 13.1.2)."""
    tags = (item.strip().removeprefix("W/") for item in if_none_match.split(","))
    return any(item in (tag.removeprefix("W/"), "*") for item in tags)


def accepted_formats(accept: str) -> tuple[PageFormat, ...]:
    """Return the formats that a client with this ``Accept`` accepts, the preferred one first.

    JSON must be named; a client that accepts neither gets HTML.
    """
    qualities = _qualities(accept)
    best: dict[PageFormat, float] = {
        "json": max(qualities.get(name, 0.0) for name in _JSON),
        "html": max(qualities.get(name, 0.0) for name in _HTML),
    }
    # Sorting is stable: of equals JSON comes first.
    forms = sorted((form for form in best if best[form] > 0), key=lambda form: -best[form])
    return tuple(forms) or ("html",)


def format_of(content_type: str) -> PageFormat | None:
    """Return the format of a page with this ``Content-Type``, None for another one."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind in _JSON:
        return "json"
    return "html" if kind in _HTML else None


def _qualities(header: str) -> dict[str, float]:
    """Return the quality values of a header that lists what a client accepts."""
    found: dict[str, float] = {}
    for item in header.lower().split(","):
        name, *parameters = (part.strip() for part in item.split(";"))
        quality = 1.0
        for parameter in parameters:
            if parameter.startswith("q="):
                try:
                    quality = float(parameter[2:])
                except ValueError:
                    quality = 0.0
        found[name] = max(found.get(name, 0.0), quality)
    return found


def for_one_client(headers: Headers) -> Headers:
    """Return the headers of a response that depends on ``Authorization``."""
    kept = [item for item in headers if item[0] != b"cache-control"]
    control = dict(headers).get(b"cache-control", b"no-cache").removeprefix(b"public, ")
    if not control.startswith((b"private", b"no-store")):
        control = b"private, " + control
    return [*kept, (b"cache-control", control), (b"vary", b"Authorization")]
