"""URL paths of the proxy.

=====================================================  ============================================
``/p/<key>/simple/``                                   projects of all upstreams that list them
``/p/<key>/simple/<project>/``                         page of the first upstream that has it
``/p/<key>/i/<index>/simple/…``                        the same of one upstream alone
``/p/<key>/i/<index>/links/``                          all files of a find-links page
``/p/<key>/files/<index>/<project>/<choice>/<name>``   a file under its plain filename
``…/<name>.metadata``                                  its core metadata (PEP 658)
``/p/<key>/i/<index>/variants/<project>/``             decisions and their reasons, as JSON
``/p/<key>/variants/<project>/``                       the same of the first upstream that has it
``/p/<key>/i/<index>/in-place/<project>/``             page that stands in for the index's own
``…/in-place/<project>/.variant/<label>/<name>``       a file of it; ``.metadata`` as above
``/p/<key>/i/<index>/in-place/``                       the same for a find-links page
``/p/<key>/i/<index>/in-place/.variant/…``             a file of that
``/simple/…``, ``/variants/…``, ``/i/<index>/…``       one URL for all machines: `KeyedIndex`
``/``                                                  a page for people
``/health``                                            for operators
=====================================================  ============================================

``<key>`` is a platform key (see `key`), a floating name, or a registered client (see `clients`).
``<choice>`` is the label of the variant that the plain filename stands for, `PLAIN` for a file
without label, or `CHOSEN` for the one that is selected at the time of the request (in pages of
floating names). Links to files of the proxy are relative: pages do not depend on the host name that
a client uses.

In-place pages are for programs between an installer and an index, which answer requests for URLs of
the index itself. Their links to variants are relative to the page, ``.variant/<label>/<name>`` (see
`in_place_names`); other files keep their absolute URLs, for which the installer has credentials.
"""

from __future__ import annotations

import re
from urllib.parse import quote

_SAFE = re.compile(r"[A-Za-z0-9._-]+")

PLAIN = "-"
CHOSEN = "~"


def index_url(key: str, index: str | None = None) -> str:
    """Return the path of the simple API's root, of one upstream or of all of them."""
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


def in_place_url(key: str, index: str, project: str = "") -> str:
    """Return the path of the in-place page of *project*; without one, of a find-links page."""
    return f"/p/{quote(key, safe='~')}/i/{quote(index)}/in-place/{f'{project}/' if project else ''}"


def file_path(index: str, project: str, choice: str, filename: str) -> str:
    """Return the path of a file relative to ``/p/<key>/``."""
    if not _SAFE.fullmatch(filename):
        filename = quote(filename)
    return f"files/{index}/{project}/{choice}/{filename}"  # the others need no quoting
