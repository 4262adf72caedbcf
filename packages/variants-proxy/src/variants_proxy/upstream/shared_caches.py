"""Headers for caches between the proxy and its clients: what they may keep, and for whom.

A response that depends on who asks says so (``Vary: Authorization``) and is private: caches that
ignore ``Vary``, as many content delivery networks do, must not keep it. nginx takes both into
account, so it is told separately how long it may keep a response, in ``X-Accel-Expires``, which it
sends to no client.
"""

from __future__ import annotations

import re

from .responses import Headers

NGINX = b"x-accel-expires"
"""Header with the seconds for nginx. It has to come before ``Cache-Control``: nginx up to 1.22
otherwise heeds what that forbids."""

MISSING_SECONDS = 10
"""Lifetime of a response that says that something does not exist: it may be uploaded soon."""

MISSING = f"max-age=0, s-maxage={MISSING_SECONDS}"
"""``Cache-Control`` of such a response: clients ask again, caches that they share do not."""

_LIFETIME = re.compile(rb"(?<![\w-])(s-maxage|max-age)=(\d{1,10})")


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
