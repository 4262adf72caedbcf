"""Complete responses, kept in memory: the body and its gzip form, with headers.

They depend on the upstream and the URL only. The entity tag is the hash of the body, with a suffix
for the gzip form, so that any cache can store and revalidate them.
"""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from ..headers import SECURITY_HEADERS

_WORTH_IT = 512
_LEVEL = 6

Headers = list[tuple[bytes, bytes]]
PageFormat = Literal["json", "html"]
"""Format of a page: PEP 691 or PEP 503."""
AnswerKey = tuple[str, tuple[PageFormat, ...], bool]
"""What a page depends on: path, accepted formats, `Client.merges`."""


@dataclass(frozen=True)
class CachedResponse:
    """One response.

    Attributes:
        body: uncompressed.
        kind: content type.
        cache: value of ``Cache-Control``.
        expires: `time.monotonic` at which it has to be made again.
        vary: value of ``Vary`` besides ``Accept-Encoding``.
        status: HTTP status.
        packs: compress the body.
        kept: seconds that nginx may keep it although clients have to ask again; 0 for what
            `cache` says. See `shared_caches`.
    """

    body: bytes
    kind: str
    cache: str
    expires: float = 0.0
    vary: str = ""
    status: int = 200
    packs: bool = True
    kept: int = 0

    @cached_property
    def tag(self) -> str:
        """Hash of the body; the entity tags of both forms begin with it."""
        return hashlib.sha256(self.body).hexdigest()[:32]

    @cached_property
    def compressed(self) -> bytes | None:
        """The body as gzip, None if that is not smaller."""
        if not self.packs or len(self.body) < _WORTH_IT:
            return None
        packed = gzip.compress(self.body, _LEVEL, mtime=0)
        return packed if len(packed) < len(self.body) else None

    @property
    def weight(self) -> int:
        """Approximate size in memory, in bytes."""
        return 1000 + len(self.body) + len(self.compressed or b"")

    @cached_property
    def forms(self) -> tuple[tuple[Headers, bytes], tuple[Headers, bytes]]:
        """Headers and body of the plain and of the gzip form.

        With `SECURITY_HEADERS`: what is in memory is sent as it is, see `ProxyMiddleware`.
        """
        common = [
            *([(b"x-accel-expires", b"%d" % self.kept)] if self.kept else []),
            (b"content-type", self.kind.encode()),
            (b"cache-control", self.cache.encode()),
            (b"vary", ", ".join(filter(None, (self.vary, "Accept-Encoding"))).encode()),
            *SECURITY_HEADERS,
        ]
        plain = [
            *common,
            (b"etag", f'"{self.tag}"'.encode()),
            (b"content-length", str(len(self.body)).encode()),
        ]
        if self.compressed is None:
            return (plain, self.body), (plain, self.body)
        packed = [
            *common,
            (b"etag", f'"{self.tag}-gz"'.encode()),
            (b"content-encoding", b"gzip"),
            (b"content-length", str(len(self.compressed)).encode()),
        ]
        return (plain, self.body), (packed, self.compressed)

    def response(self, accept_encoding: bytes, if_none_match: bytes) -> tuple[int, Headers, bytes]:
        """Return status, headers and body for a request with these headers."""
        headers, body = self.forms[accepts_gzip(accept_encoding)]
        if if_none_match and self.status == 200 and self._is_known(if_none_match):
            left_out = (b"content-type", b"content-encoding", b"content-length")
            return 304, [header for header in headers if header[0] not in left_out], b""
        return self.status, headers, body

    def _is_known(self, if_none_match: bytes) -> bool:
        if if_none_match.strip() == b"*":
            return True
        # The tag of either form: the contents are the same.
        tags = (tag.strip().removeprefix(b"W/") for tag in if_none_match.split(b","))
        known = self.tag.encode()
        return any(tag in (b'"%s"' % known, b'"%s-gz"' % known) for tag in tags)


def accepts_gzip(accept_encoding: bytes) -> bool:
    """Return whether a client with this ``Accept-Encoding`` accepts gzip."""
    for item in accept_encoding.lower().split(b","):
        name, _, quality = item.partition(b";")
        if name.strip() in (b"gzip", b"*"):
            return quality.replace(b" ", b"") not in (b"q=0", b"q=0.0", b"q=0.00", b"q=0.000")
    return False


def accepted_formats(accept: str) -> tuple[PageFormat, ...]:
    """Return the formats that a client with this ``Accept`` accepts, the preferred one first.

    JSON must be named; a client that accepts neither gets HTML.
    """
    best: dict[PageFormat, float] = {"json": 0.0, "html": 0.0}
    for item in accept.lower().split(","):
        name, *parameters = (part.strip() for part in item.split(";"))
        quality = 1.0
        for parameter in parameters:
            if parameter.startswith("q="):
                try:
                    quality = float(parameter[2:])
                except ValueError:
                    quality = 0.0
        if name in (
            "application/vnd.pypi.simple.v1+json",
            "application/vnd.pypi.simple.latest+json",
        ):
            best["json"] = max(best["json"], quality)
        elif name in (
            "application/vnd.pypi.simple.v1+html",
            "application/vnd.pypi.simple.latest+html",
            "text/html",
            "text/*",
            "*/*",
        ):
            best["html"] = max(best["html"], quality)
    # Sorting is stable: of equals JSON comes first.
    forms = sorted((form for form in best if best[form] > 0), key=lambda form: -best[form])
    return tuple(forms) or ("html",)


def wants_new(cache_control: str) -> bool:
    """Return whether a request with this ``Cache-Control`` wants no answer from a cache.

    uv sends it with ``--upgrade`` and ``--refresh``.
    """
    return "no-cache" in cache_control.lower()
