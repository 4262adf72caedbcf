"""Failed requests: statuses and network errors as typed errors with messages."""

from __future__ import annotations

import email.utils
import ssl
import time

import httpx

from pep_variants.internal import redacted

from ..errors import AccessDenied, BadResponse, NotFound

BUSY = (408, 425, 429, 500, 502, 503, 504)
"""Statuses after which a request is sent again."""

_OK = 200
_GONE = (404, 410)
_DENIED = (401, 403, 407)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 19


def check_status(response: httpx.Response, url: str, allowed: tuple[int, ...] = ()) -> None:
    """Check the status of a response: 200, or one of *allowed*; close it otherwise.

    Raises:
        PackageIndexError: it is another one; the message says what to do.
    """
    status = response.status_code
    if status == _OK or status in allowed:
        return
    response.close()
    place = redacted(url)
    if status in _GONE:
        raise NotFound(f"{place}: not found (HTTP status {status})", status)
    if status in _DENIED:
        raise AccessDenied(
            f"{place}: access denied (HTTP status {status}): put user name and password into the "
            "URL of the index, netrc or keyring"
        )
    raise BadResponse(f"{place}: HTTP status {status}", status)


def retry_after(response: httpx.Response) -> float:
    """Return the seconds of the ``Retry-After`` header (RFC 9110, section 10.2.3), 0 without."""
    text = response.headers.get("Retry-After", "")
    if _is_number(text):
        return float(text)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return 0.0


def certificate_error(error: BaseException) -> ssl.SSLCertVerificationError | None:
    """Return what is wrong with the certificate of a server, None if the error is another one."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLCertVerificationError):
        cause = cause.__cause__ or cause.__context__
    return cause


def describe(error: Exception) -> str:
    """Return an error of httpx in words for a message."""
    # Messages of the libraries may hold the URL of a proxy, or what a server sent.
    text = redacted("".join(c if c.isprintable() else "?" for c in str(error)[:200]))
    untrusted = certificate_error(error)
    if untrusted is not None:
        return (
            f"the certificate is not accepted ({untrusted.verify_message or text}): name the file "
            "with the authorities to trust in the variable SSL_CERT_FILE"
        )
    if isinstance(error, httpx.ProxyError) and text.startswith("407"):
        return (
            "the proxy wants another user name or password: put them into the proxy's URL in the "
            "variable HTTPS_PROXY or HTTP_PROXY"
        )
    words: dict[type[Exception], str] = {
        httpx.ConnectTimeout: "the connection timed out",
        httpx.ReadTimeout: "the response timed out",
        httpx.ConnectError: f"cannot connect ({text})",
        httpx.RemoteProtocolError: f"the response is cut off or invalid ({text})",
    }
    return words.get(
        type(error), f"{type(error).__name__}: {text}" if text else type(error).__name__
    )
