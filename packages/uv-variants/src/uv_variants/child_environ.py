"""The environment variables of uv: the user's, and those with which its requests come to us."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

_PROXIES = (
    *("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"),
    *("ALL_PROXY", "all_proxy"),
)
_EXEMPT = ("NO_PROXY", "no_proxy")


def child_environ(
    environ: Mapping[str, str], *, proxy_url: str, ca_file: Path, cache: Path
) -> dict[str, str]:
    """Return the variables that uv gets.

    Args:
        environ: the user's. Their proxies and exceptions count for what is sent to the outside.
        proxy_url: the HTTP proxy that answers for the indexes, and passes on all else.
        ca_file: certificates that uv has to trust, the user's included.
        cache: uv's cache directory, see `uv_directories.variants_cache`.
    """
    changed = {name: value for name, value in environ.items() if name not in _EXEMPT}
    changed.update(dict.fromkeys(_PROXIES, proxy_url))
    changed["SSL_CERT_FILE"] = str(ca_file)
    changed["UV_CACHE_DIR"] = str(cache)
    return changed
