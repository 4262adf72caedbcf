"""Complete responses, and the headers that ask for newer ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx

_VALIDATORS = {"ETag": "If-None-Match", "Last-Modified": "If-Modified-Since"}
_VALIDATOR_CHARACTERS = 1000


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
    """

    url: str
    content_type: str
    body: bytes
    validators: Mapping[str, str] = field(default_factory=dict)
    unchanged: bool = False


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
