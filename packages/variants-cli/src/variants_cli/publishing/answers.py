"""What an upload API answered: accepted, there already, refused, or to be tried again.

Servers give the reason in different places: PyPI and devpi in the reason phrase of the status line,
others in JSON, plain text or a page of HTML.
"""

from __future__ import annotations

import html
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pep_variants.errors import printable, redacted
from variants_index.http.failures import BUSY, retry_after

from .retries import Temporary

if TYPE_CHECKING:
    from collections.abc import Collection

    import httpx

BODY_BYTES = 8 * 1024
"""How much of an answer is read for its reason."""

_LONGEST = 300
_JSON_KEYS = ("message", "detail", "error", "title", "errors")
_TAGS = re.compile(r"<(style|script|title)\b.*?</\1\s*>|<[^>]*>", re.DOTALL | re.IGNORECASE)
# Around the reason on the pages of bottle, which pypiserver is made with.
_FRAME = re.compile(
    r"\s*Error: \d+ .{0,200}?Sorry, the requested URL .{0,2000}? caused an error:(?:\s*None\s*$)?",
    re.DOTALL,
)
_EXISTS = re.compile(r"already (?:exists?\b|been taken)|duplicate", re.IGNORECASE)

_ACCESS = (401, 403, 407)
_CONFLICT = 409
_TOO_LARGE = 413
_NO_API = (404, 405, 410, 501)


@dataclass(frozen=True)
class Answer:
    """An answer that is final.

    Attributes:
        status: HTTP status.
        reason: in the server's words, on one line, without credentials; empty if it gave none.
        devpi: the server is a devpi, whose pages are elsewhere than those of others.
    """

    status: int
    reason: str
    devpi: bool = False

    @property
    def is_success(self) -> bool:
        """Whether the file was accepted, or was there before with the same contents."""
        return 200 <= self.status < 300

    @property
    def says_exists(self) -> bool:
        """Whether it was refused because the index has a file of that name."""
        if self.status == _CONFLICT:
            return True
        return 400 <= self.status < 500 and _EXISTS.search(self.reason) is not None

    @property
    def denies_access(self) -> bool:
        """Whether the credentials were refused, or are missing."""
        return self.status in _ACCESS

    @property
    def is_too_large(self) -> bool:
        """Whether the file is larger than the server takes."""
        return self.status == _TOO_LARGE

    @property
    def is_elsewhere(self) -> bool:
        """Whether there is no upload API at the URL."""
        return self.status in _NO_API

    def __str__(self) -> str:
        return f"status {self.status}: {self.reason}" if self.reason else f"status {self.status}"


def read_answer(response: httpx.Response, body: bytes, secrets: Collection[str]) -> Answer:
    """Return the answer.

    Args:
        response: status and headers.
        body: its first `BODY_BYTES`.
        secrets: what is not shown, if a server repeats it.

    Raises:
        Temporary: the server cannot answer now.
    """
    reason = _reason(response, body.decode("utf-8", "replace"))
    for secret in secrets:
        reason = reason.replace(secret, "****")
    reason = _shown(reason)
    answer = Answer(response.status_code, reason, "X-Devpi-Server-Version" in response.headers)
    if response.status_code in BUSY:
        raise Temporary(str(answer), retry_after(response))
    return answer


def _reason(response: httpx.Response, text: str) -> str:
    kind = response.headers.get("Content-Type", "")
    if "json" in kind and (found := _of_json(text)):
        return found
    phrase = response.reason_phrase
    if phrase and phrase.lower() not in _PHRASES:
        return phrase
    if "html" in kind or text.lstrip()[:1] == "<":
        return _FRAME.sub("", html.unescape(_TAGS.sub(" ", text)))
    return text if "text/plain" in kind else ""


def _of_json(text: str) -> str:
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    for _ in range(3):
        if isinstance(tree, list) and tree:
            tree = tree[0]
        if isinstance(tree, dict):
            values = (tree.get(key) for key in _JSON_KEYS)
            tree = next((value for value in values if _says_something(value)), "")
    return tree if isinstance(tree, str) else ""


def _says_something(value: object) -> bool:
    return bool(value.strip() if isinstance(value, str) else value)


def _shown(text: str) -> str:
    words = printable(" ".join(redacted(text).split()))
    return words if len(words) <= _LONGEST else words[: _LONGEST - 1] + "…"


def _phrases() -> frozenset[str]:
    from http import HTTPStatus

    return frozenset(status.phrase.lower() for status in HTTPStatus)


_PHRASES = _phrases()
