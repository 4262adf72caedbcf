"""Responses of the proxy and their headers: formats, validators, caches, browsers.

What depends on who asks says so (``Vary: Authorization``) and is private: caches that ignore
``Vary``, as many content delivery networks do, must not keep it. nginx takes both into account, so
it is told separately how long it may keep a response, in ``X-Accel-Expires``, which it sends to no
client.
"""

from __future__ import annotations

import gzip
import hashlib
import re
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

NGINX = b"x-accel-expires"
"""Header with the seconds for nginx. It has to come before ``Cache-Control``: nginx up to 1.22
otherwise heeds what that forbids."""

SHORTEST_SECONDS = 10
"""Seconds that caches which clients share keep a page, or that there is none, at least."""

MISSING = f"max-age=0, s-maxage={SHORTEST_SECONDS}"
"""``Cache-Control`` of a response that something does not exist: it may be uploaded soon, so
clients ask again; caches that they share do not."""

_WORTH_IT = 512
_LIFETIME = re.compile(rb"(?<![\w-])(s-maxage|max-age)=(\d{1,10})")
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
        body: uncompressed.
        kind: content type.
        cache: value of ``Cache-Control``.
        vary: value of ``Vary`` besides ``Accept-Encoding``.
        kept: seconds that nginx may keep it although clients have to ask again; 0 for what
            `cache` says.
        tag: entity tag; empty for one of the body.
    """

    body: bytes
    kind: str
    cache: str
    vary: str = ""
    kept: int = 0
    tag: str = ""

    @property
    def headers(self) -> dict[str, str]:
        """Headers for caches."""
        kept = {NGINX.decode(): str(self.kept)} if self.kept else {}
        vary = {"vary": self.vary} if self.vary else {}
        return {**kept, "cache-control": self.cache, **vary}

    def answer(
        self, accept_encoding: str, if_none_match: str, *, compress: bool
    ) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers and body for a request with these headers.

        Args:
            accept_encoding: of the request.
            if_none_match: of the request.
            compress: use gzip where the client accepts it.
        """
        # Weak if the compressed form has the same tag. uv asks again with strong ones alone.
        weak = "W/" if compress else ""
        tag = self.tag or f'{weak}"{hashlib.sha256(self.body).hexdigest()[:32]}"'
        vary = ", ".join(filter(None, (self.vary, "Accept-Encoding")))
        headers = self.headers | {"vary": vary, "etag": tag}
        if is_known(if_none_match, tag):
            return 304, headers, b""
        headers["content-type"] = self.kind
        body = self.body
        if compress and len(body) >= _WORTH_IT and accepts_gzip(accept_encoding):
            body = gzip.compress(body, 1, mtime=0)
            headers["etag"] = f"W/{tag.removeprefix('W/')}"
            headers["content-encoding"] = "gzip"
        return 200, headers, body


def page_digest(body: bytes, content_type: str, url: str) -> str:
    """Return the hash of an index's page: of contents, their type, and the base of its links."""
    return hashlib.sha256(body + f"\n{content_type}\n{url}".encode()).hexdigest()


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


def accepts_gzip(accept_encoding: str) -> bool:
    """Return whether a client with this ``Accept-Encoding`` accepts gzip."""
    qualities = _qualities(accept_encoding)
    return qualities.get("gzip", qualities.get("*", 0.0)) > 0


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
    """Return the headers of a response that depends on ``Authorization``.

    It has one ``Vary``, since nginx up to 1.22 reads only one.
    """
    varying = [b"Authorization"]
    control, seconds = b"", b""
    kept: Headers = []
    for name, value in headers:
        lower = name.lower()
        if lower == b"vary":
            varying += [item for item in map(bytes.strip, value.split(b",")) if item]
        elif lower == b"cache-control":
            control = value
        elif lower == NGINX:
            seconds = value
        else:
            kept.append((name, value))
    if not seconds:
        seconds = _lifetime(control)
    first: Headers = [(NGINX, seconds)] if seconds and b"no-store" not in control else []
    if control:
        first.append((b"cache-control", _private(control)))
    unique = {item.lower(): item for item in varying}
    return [*first, *kept, (b"vary", b", ".join(unique.values()))]


def _lifetime(control: bytes) -> bytes:
    """Return the seconds that shared caches may keep a response, empty if they may not at all."""
    if b"no-cache" in control or b"private" in control:
        return b""
    found: dict[bytes, bytes] = dict(_LIFETIME.findall(control))
    seconds = found.get(b"s-maxage") or found.get(b"max-age") or b""
    return seconds if seconds.strip(b"0") else b""


def _private(control: bytes) -> bytes:
    if b"no-store" in control:
        return control
    parts = [part.strip() for part in control.split(b",")]
    own = [part for part in parts if part not in (b"public", b"private")]
    return b", ".join([b"private", *(part for part in own if not part.startswith(b"s-maxage"))])
