"""Complete responses, and the headers that ask for newer ones."""

from __future__ import annotations

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
    """

    url: str
    content_type: str
    body: bytes
    validators: Mapping[str, str] = field(default_factory=dict)
    unchanged: bool = False
    max_age: int = 0


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
