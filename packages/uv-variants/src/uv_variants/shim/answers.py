"""Finished answers: bytes that serve everybody who asks the same, compressed or not.

What is in them depends on the upstream and the URL alone. The entity tag is the hash of the body,
with a suffix for the compressed form, so that any cache may keep them and ask whether they changed.
"""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

_WORTH_IT = 512
_LEVEL = 6

Headers = list[tuple[bytes, bytes]]
Form = Literal["json", "html"]
"""Of a page: PEP 691 or PEP 503."""


@dataclass(frozen=True)
class Answer:
    """One answer.

    Attributes:
        body: uncompressed.
        kind: content type.
        cache: value of ``Cache-Control``.
        expires: `time.monotonic` from which on it has to be made anew.
        vary: value of ``Vary`` beside the encoding; empty if nothing else matters.
        status: HTTP status.
        packs: whether it is worth the time to compress it.
    """

    body: bytes
    kind: str
    cache: str
    expires: float = 0.0
    vary: str = ""
    status: int = 200
    packs: bool = True

    @cached_property
    def tag(self) -> str:
        """Hash of the body, the part of the entity tag that both forms share."""
        return hashlib.sha256(self.body).hexdigest()[:32]

    @cached_property
    def compressed(self) -> bytes | None:
        """The body compressed, None if that does not make it smaller."""
        if not self.packs or len(self.body) < _WORTH_IT:
            return None
        packed = gzip.compress(self.body, _LEVEL, mtime=0)
        return packed if len(packed) < len(self.body) else None

    @property
    def weight(self) -> int:
        """Bytes that it takes in memory."""
        return 1000 + len(self.body) + len(self.compressed or b"")

    @cached_property
    def forms(self) -> tuple[tuple[Headers, bytes], tuple[Headers, bytes]]:
        """Headers and body, as they are and compressed."""
        common = [
            (b"content-type", self.kind.encode()),
            (b"cache-control", self.cache.encode()),
            (b"vary", ", ".join(filter(None, (self.vary, "Accept-Encoding"))).encode()),
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
        headers, body = self.forms[takes_gzip(accept_encoding)]
        if if_none_match and self.status == 200 and self._is_known(if_none_match):
            kept = (b"cache-control", b"vary", b"etag")
            return 304, [header for header in headers if header[0] in kept], b""
        return self.status, headers, body

    def _is_known(self, if_none_match: bytes) -> bool:
        if if_none_match.strip() == b"*":
            return True
        # Whichever form a client has: it has what it would get.
        tags = (tag.strip().removeprefix(b"W/") for tag in if_none_match.split(b","))
        known = self.tag.encode()
        return any(tag in (b'"%s"' % known, b'"%s-gz"' % known) for tag in tags)


def takes_gzip(accept_encoding: bytes) -> bool:
    """Return whether a client with this ``Accept-Encoding`` reads gzip."""
    for item in accept_encoding.lower().split(b","):
        name, _, quality = item.partition(b";")
        if name.strip() in (b"gzip", b"*"):
            return quality.replace(b" ", b"") not in (b"q=0", b"q=0.0", b"q=0.00", b"q=0.000")
    return False


def accepted_forms(accept: str) -> tuple[Form, ...]:
    """Return the forms of pages that a client with this ``Accept`` takes, the preferred one first.

    JSON has to be asked for by name; who takes nothing that there is gets HTML.
    """
    best: dict[Form, float] = {"json": 0.0, "html": 0.0}
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
