"""URL paths of the proxy.

==========================================  =====================================================
``/p/<key>/…``                              for the machine of a platform key
``/…``                                      for the machine whose platform key is the user name
``simple/``                                 projects of all upstreams that list them
``simple/<project>/``                       page of the first upstream that has it
``simple/<project>/.variant/<label>/<name>``  a file of it, ``<name>.metadata`` its core metadata
``variants/<project>/``                     decisions and their reasons, as JSON
``i/<index>/simple/…``, ``…/variants/…``    the same of one upstream alone
``i/<index>/links/``, ``…/.variant/…``      all files of a find-links page, and one of them
``/``                                       a page for people
``/health``                                 for operators
==========================================  =====================================================

``<key>`` is a platform key (see `key`), or a registered client (see `clients`). Links to variants
are relative to the page (see `in_place_names`): pages do not depend on the host name that a client
uses. Other files keep their absolute URLs, unless the proxy has the credentials for them.

Upstream indexes in options and variables are ``[NAME=]URL``, or a path.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit, urlunsplit

from .settings import Upstream

if TYPE_CHECKING:
    from .settings import Kind


def index_url(key: str, index: str | None = None) -> str:
    """Return the path of the simple API's root, of one upstream or of all of them.

    >>> from variants_proxy.urls import index_url
    >>> index_url("h100-zen4"), index_url("h100-zen4", "pypi")
    ('/p/h100-zen4/simple/', '/p/h100-zen4/i/pypi/simple/')
    """
    return f"/p/{quote(key, safe='~')}/{f'i/{quote(index)}/' if index else ''}simple/"


def keyed_url(base: str, key: str, token: str = "", index: str | None = None) -> str:
    """Return the URL of an index that is the same for all machines but for the user name.

    Args:
        base: URL of the proxy, without path.
        key: of the machine.
        token: of the proxy, empty for one that is open to all: any password does.
        index: name of an upstream, None for all of them.
    """
    scheme, _, rest = base.rstrip("/").partition("://")
    user = quote(key, safe="~")
    path = f"i/{quote(index)}/" if index else ""
    return f"{scheme}://{user}:{quote(token or 'v', safe='')}@{rest}/{path}simple/"


def links_url(key: str, index: str) -> str:
    """Return the path of the page of the find-links upstream *index*."""
    return f"/p/{quote(key, safe='~')}/i/{quote(index)}/links/"


def variants_url(key: str, index: str, project: str) -> str:
    """Return the path of the decisions on *project*, a normalized name."""
    return f"/p/{quote(key, safe='~')}/i/{quote(index)}/variants/{project}/"


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


def bare_url(url: str) -> str:
    """Return *url* without user name, password and the last slash.

    >>> from variants_proxy.urls import bare_url
    >>> bare_url("https://me:secret@host.example/simple/")
    'https://host.example/simple'
    """
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])).rstrip("/")


def upstream_name(url: str, name: str = "", kind: Kind = "simple") -> str:
    """Return the name of an upstream in URLs of the proxy, the same on every machine.

    Args:
        url: of the index.
        name: the user's name of it, empty for none.
        kind: of the index.

    >>> from variants_proxy.urls import upstream_name
    >>> upstream_name("https://host.example/simple/", "corporate")
    'corporate'
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
