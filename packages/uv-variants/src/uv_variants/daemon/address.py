"""How uv reaches a proxy: the reserved host of its index URLs, and proxy variables."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping

from variants_proxy.listening import LOOPBACK

RESERVED_HOST = "uv-variants.invalid"
"""Host of all index URLs that uv gets. RFC 2606: it never resolves, so only a proxy answers."""

RESERVED_URL = f"http://{RESERVED_HOST}"

USERNAME = "uv"
"""User name that goes with the token in HTTP basic authentication."""

_HTTP_PROXIES = ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")
_HTTPS_PROXIES = ("HTTPS_PROXY", "https_proxy")


def proxy_variables(
    environ: Mapping[str, str], port: int, token: str, index_urls: Iterable[str]
) -> dict[str, str]:
    """Return the variables with which uv reaches `RESERVED_HOST`, and all other hosts as before.

    Args:
        environ: environment variables of the user.
        port: of the proxy, on loopback.
        token: of the proxy.
        index_urls: of the user's indexes; those of plain HTTP are reached directly.
    """
    proxy = f"http://{USERNAME}:{token}@{LOOPBACK}:{port}"
    changes = {"HTTP_PROXY": proxy, "http_proxy": proxy}
    exempt = environ.get("NO_PROXY") or environ.get("no_proxy") or ""
    if exempt.strip() == "*":
        exempt = ""
        changes.update(dict.fromkeys((*_HTTPS_PROXIES, "ALL_PROXY", "all_proxy"), ""))
    if not any(environ.get(name) for name in _HTTP_PROXIES) or "" in changes.values():
        # The user has no proxy for these hosts, so uv needs none either.
        from urllib.parse import urlsplit

        hosts = {urlsplit(url).hostname or "" for url in index_urls if url.startswith("http://")}
        exempt = ",".join(filter(None, (exempt, "localhost,127.0.0.1,::1", *sorted(hosts))))
    if exempt:
        changes.update(NO_PROXY=exempt, no_proxy=exempt)
    if sys.platform in ("darwin", "win32") and not any(
        environ.get(name) for name in (*_HTTP_PROXIES, *_HTTPS_PROXIES)
    ):
        # uv ignores the system's proxy settings once a variable is set.
        import urllib.request

        system = urllib.request.getproxies().get("https")
        if system:
            changes["HTTPS_PROXY"] = system
    return changes
