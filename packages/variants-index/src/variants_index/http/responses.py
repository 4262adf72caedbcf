"""Complete responses, the headers that ask for newer ones, and how responses are cached."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx

_VALIDATORS = {"ETag": "If-None-Match", "Last-Modified": "If-Modified-Since"}
_VALIDATOR_CHARACTERS = 1000
_MAX_AGE = re.compile(r"(?<![\w-])max-age=(\d{1,9})")


@dataclass(frozen=True)
class Response:
    """A complete response.

    Attributes:
        url: after redirects, without credentials.
        content_type: the header; for local files ``text/html`` or empty.
        body: decompressed.
        validators: request headers that ask for another response than this one
            (RFC 9110, section 13.1); empty if the server gave none.
        unchanged: it is the response that was asked past: without a body (status 304).
        max_age: seconds for which a client may use it without asking again (RFC 9111, 5.2.2).
        may_be_stored: whether the server allows a cache to keep it.
    """

    url: str
    content_type: str
    body: bytes
    validators: Mapping[str, str] = field(default_factory=dict)
    unchanged: bool = False
    max_age: int = 0
    may_be_stored: bool = False

    def record(self) -> bytes:
        """Return it for `read_response`."""
        head = [self.url, self.content_type, dict(self.validators)]
        return json.dumps(head).encode() + b"\n" + self.body


def read_response(record: bytes | None) -> Response | None:
    """Return the response in a record of a cache, None if there is none, or of another release."""
    head, _, body = (record or b"").partition(b"\n")
    try:
        url, content_type, validators = json.loads(head)
    except (ValueError, TypeError):
        return None
    return Response(url, content_type, body, validators)


def validators_of(response: httpx.Response) -> dict[str, str]:
    """Return the headers of a request that asks for another response than *response*."""
    return {
        asked: value
        for given, asked in _VALIDATORS.items()
        if (value := response.headers.get(given)) is not None
        and value.isascii()
        and value.isprintable()
        and len(value) <= _VALIDATOR_CHARACTERS
    }


def max_age_of(response: httpx.Response) -> int:
    """Return the seconds for which ``Cache-Control`` allows to use *response*, 0 without."""
    control = response.headers.get("Cache-Control", "").lower()
    found = _MAX_AGE.search(control)
    return int(found[1]) if found and "no-cache" not in control and "no-store" not in control else 0


def may_be_stored(response: httpx.Response) -> bool:
    """Return whether a private cache may keep *response* (RFC 9111, section 5.2.2.5).

    A query may be a signature: such URLs are not kept.
    """
    forbidden = "no-store" in response.headers.get("Cache-Control", "").lower()
    return not forbidden and not response.url.query
