"""Security headers of every response, apart from what imports a server.

Pages may come from an upstream unchanged. In a browser they must not run scripts in the proxy's
origin, be sniffed as another type, be embedded elsewhere, or receive a referrer.
"""

from __future__ import annotations

SECURITY_HEADERS = [
    (b"content-security-policy", b"sandbox; default-src 'none'"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
]
