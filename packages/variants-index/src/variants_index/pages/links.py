"""Links of an index page: their URLs, and which of them may be opened.

That depends on the URL of the page, not on its contents:
``<base href="file:///">`` on a page from a server does not make its links local.
"""

from __future__ import annotations

import re
from urllib.parse import unquote, urljoin, urlsplit

from pep_variants.internal import limits

# What links have in common, a server, the root or a number of folders up, and a path in which
# joining would change nothing.
_SEGMENT = r"[\w%~+@=-][\w%~+@=.-]*"
_PLAIN = re.compile(
    rf"(https?://[a-z0-9.:-]+/|/|(?:\.\./)*)({_SEGMENT}(?:/{_SEGMENT})*/?)", re.ASCII
)
_INVALID = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_IGNORED = dict.fromkeys(map(ord, "\t\r\n"))
_LOCALHOST = ("", "localhost")


class Links:
    """The links of one page.

    Pages from servers link to ``http`` and ``https`` URLs; as in pip and uv, a page from an
    ``https`` server may link to ``http`` files. Only a page that is a local file itself may link
    to local files, and only to those of its own machine.
    """

    def __init__(self, page: str, base: str | None = None) -> None:
        """Set up.

        Args:
            page: URL of the page after redirects.
            base: ``href`` of the ``<base>`` of the page, if any.
        """
        self._page = page
        self._base = page
        if base:
            try:
                joined = urljoin(page, base)
                _ = urlsplit(joined).port
            except ValueError:
                pass  # ignored
            else:
                self._base = joined
        # Nearly all of thousands of links begin alike: where that leads to is checked once.
        self._good: dict[str, str] = {}
        self._local = urlsplit(self._base).scheme == "file"

    def join(self, address: str) -> str | None:
        """Return the absolute URL of *address* without fragment, None if it must not be opened."""
        if len(address) > limits.URL_CHARACTERS:
            return None
        plain = _PLAIN.fullmatch(address)
        # In a local path, percent-encoding can hide the name of another machine.
        if plain is None or (self._local and "%" in address):
            return self._joined(address)
        prefix, path = plain.groups()
        start = self._good.get(prefix)
        if start is None:
            url = self._joined(address)
            if url is not None and url.endswith(path):
                self._good[prefix] = url[: -len(path)]
            return url
        return start + path

    def _joined(self, address: str) -> str | None:
        try:
            # Ignored in URLs by browsers and newer Pythons.
            address = address.translate(_IGNORED)
            url = urljoin(self._base, address).partition("#")[0]
            parts = urlsplit(url)
            _ = parts.port
        except ValueError:
            return None
        if _INVALID.search(url):
            return None
        if parts.scheme in ("http", "https"):
            return url if parts.hostname else None
        return url if parts.scheme == "file" and self._same_machine(url) else None

    def _same_machine(self, url: str) -> bool:
        """Return whether the ``file:`` *url* is on the machine that the page is on.

        On Windows, opening a path of another machine (``file://host/share``, ``file:////host``,
        backslashes) sends it the user's login.
        """
        page = urlsplit(self._page)
        return page.scheme == "file" and _machine(url) == _machine(self._page)


def _machine(url: str) -> str:
    """Return the host of a ``file:`` URL as Windows reads it, empty for this machine."""
    parts = urlsplit(url)
    path = unquote(parts.path).replace("\\", "/")
    if path.startswith("//"):
        return path.lstrip("/").partition("/")[0].lower() or "//"
    return "" if parts.netloc in _LOCALHOST else parts.netloc.lower()
