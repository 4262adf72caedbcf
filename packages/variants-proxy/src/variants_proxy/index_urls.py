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
"""

from __future__ import annotations

from urllib.parse import quote


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
