"""URL paths of the proxy.

=====================================================  ============================================
``/p/<key>/simple/``                                   projects of all upstreams that list them
``/p/<key>/simple/<project>/``                         page of the first upstream that has it
``/p/<key>/i/<index>/simple/…``                        the same of one upstream alone
``/p/<key>/i/<index>/links/``                          all files of a find-links page
``/p/<key>/files/<index>/<project>/<choice>/<name>``   a file under its plain filename
``…/<name>.metadata``                                  its core metadata (PEP 658)
``/p/<key>/i/<index>/variants/<project>/``             decisions and their reasons, as JSON
``/health``, ``/metrics``                              for operators
=====================================================  ============================================

``<key>`` is a platform key (see `key`) or a floating name. ``<choice>`` is the label of the
variant that the plain filename stands for, `PLAIN` for a file without label, or `CHOSEN` for the
one that is selected at the time of the request (in pages of floating names). Links to files of the
proxy are relative: pages do not depend on the host name that a client uses.
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


def links_url(key: str, index: str) -> str:
    """Return the path of the page of the find-links upstream *index*."""
    return f"/p/{quote(key, safe='~')}/i/{quote(index)}/links/"


def variants_url(key: str, index: str, project: str) -> str:
    """Return the path of the decisions on *project*, a normalized name."""
    return f"/p/{quote(key, safe='~')}/i/{quote(index)}/variants/{project}/"


def file_path(index: str, project: str, choice: str, filename: str) -> str:
    """Return the path of a file relative to ``/p/<key>/``."""
    if not _SAFE.fullmatch(filename):
        filename = quote(filename)
    return f"files/{index}/{project}/{choice}/{filename}"  # the others need no quoting
