"""Upstream indexes as command-line options and variables name them: ``[NAME=]URL``, or a path."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit, urlunsplit

if TYPE_CHECKING:
    from ..settings import Kind, Upstream

PYPI = "https://pypi.org/simple"
PYPI_NAME = "pypi"

_NAME = re.compile(r"[A-Za-z0-9._-]+")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+:", re.IGNORECASE)
_UNFIT = re.compile(r"[^A-Za-z0-9._-]+")


def read_upstream(text: str, base: Path, kind: Kind = "simple") -> Upstream:
    """Return the upstream of an option, ``[NAME=]URL`` or a path relative to *base*.

    Raises:
        InvalidSetting: the name or the URL is not valid.
    """
    from ..settings import Upstream

    name, equals, place = text.partition("=")
    if not equals or not _NAME.fullmatch(name):
        name, place = "", text
    url = absolute_url(place, base)
    return Upstream(upstream_name(url, name, kind), url, kind)


def read_upstreams(
    indexes: Iterable[str], links: Iterable[str], base: Path
) -> tuple[Upstream, ...]:
    """Return the upstreams of options, each name once; PyPI for none.

    Args:
        indexes: values of ``--index``.
        links: values of ``--find-links``.
        base: directory that paths are relative to.

    Raises:
        InvalidSetting: a name or a URL is not valid.
    """
    found = [read_upstream(text, base) for text in indexes]
    found += [read_upstream(text, base, "find-links") for text in links]
    return _distinct(found or [read_upstream(PYPI, base)])


def absolute_url(place: str, base: Path) -> str:
    """Return the URL of *place*, a URL or a path relative to *base*."""
    url = place.strip()
    if not _SCHEME.match(url) or (os.name == "nt" and url[1:2] == ":"):
        return Path(base, os.path.expanduser(url)).absolute().as_uri()  # noqa: PTH111
    return url


def proxy_base(url: str) -> str:
    """Return the base URL of a proxy without query, fragment and slash, often copied with it."""
    return re.split(r"[?#]", url.strip(), maxsplit=1)[0].rstrip("/")


def split_token(url: str) -> tuple[str, str]:
    """Return the base URL of a proxy, and the token that is the password in *url*."""
    parts = urlsplit(proxy_base(url))
    bare = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    return bare, unquote(parts.password or "")


def bare_url(url: str) -> str:
    """Return *url* without user name, password and the last slash."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])).rstrip("/")


def upstream_name(url: str, name: str = "", kind: Kind = "simple") -> str:
    """Return the name of an upstream in URLs of the proxy, the same on every machine.

    Args:
        url: of the index.
        name: the user's name of it, empty for none.
        kind: of the index.
    """
    if name:
        return _UNFIT.sub("-", name).strip("-._") or "index"
    bare = bare_url(url)
    if kind == "simple" and bare == PYPI:
        return PYPI_NAME
    host = _UNFIT.sub("-", urlsplit(bare).hostname or "local").strip("-._") or "local"
    return f"{host[:80]}-{hashlib.sha256(bare.encode()).hexdigest()[:10]}"


def _distinct(upstreams: Iterable[Upstream]) -> tuple[Upstream, ...]:
    """Return the first upstream of each name."""
    found: dict[str, Upstream] = {}
    for upstream in upstreams:
        found.setdefault(upstream.name, upstream)
    return tuple(found.values())
