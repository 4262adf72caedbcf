"""Pages as upstreams wrote them: most have no variants and are served without parsing.

The check for that takes a tenth of the time of parsing. It is strict: pages of an unknown spelling
are parsed and written again, as are pages with relative links that are served elsewhere.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any
from urllib.parse import unquote_to_bytes

from pep_variants.limits import PAGE_VALUES, json_values
from pep_variants.model.filename import read_version
from pep_variants.model.label import METADATA_SUFFIX, split_label
from variants_index.pages import HTML, JSON, Page, PageFile, read_page

from .responses import PageFormat

_FORMS: dict[str, PageFormat] = {JSON: "json", HTML: "html", "text/html": "html"}

# A link in the spelling of common tools: absolute, or relative in the second group.
_LINK = re.compile(
    rb'<a href="(?:https?://[\w.:-]+/[^"?#<>&\s]*/([^/"?#<>&\s]+)|([^"?#<>&\s:]+))(?:#[^"<>]*)?"'
    rb'(?: [a-z-]+(?:="[^"]*")?)* ?>'
)
_ANY_LINK = re.compile(rb"<a[\s/]", re.IGNORECASE)
_SECTION = b"<!["
_VERSION = b"pypi:repository-version"
_KNOWN_VERSION = re.compile(rb'<meta name="pypi:repository-version" content="1(?:\.[^"]*)?">')
_ABSOLUTE = ("https://", "http://")
_SUFFIX = METADATA_SUFFIX.encode()
_DASHES = 5
"""Minimum number of dashes in a filename with a label."""


@dataclass(frozen=True)
class PassThrough:
    """A page that can be served unchanged.

    Attributes:
        form: format of the page.
        newest: a wheel of the newest version, None without wheels.
        relative: whether it has relative links: then only at its own URL.
    """

    form: PageFormat
    newest: PageFile | None
    relative: bool = False


@dataclass(frozen=True)
class UpstreamPage:
    """The page of one project of an upstream.

    Attributes:
        body: response body.
        kind: content type.
        url: base of relative links.
        project: normalized name.
    """

    body: bytes = field(repr=False)
    kind: str
    url: str
    project: str

    @cached_property
    def page(self) -> Page:
        """The parsed page.

        Raises:
            InvalidPage: it is not a valid page.
        """
        return read_page(self.body, self.kind, self.url, self.project)

    @cached_property
    def plain(self) -> PassThrough | None:
        """Set if the page can be served unchanged; None if it has to be parsed.

        It has no variants, and links in common spellings only.
        """
        form = _FORMS.get(self.kind.partition(";")[0].strip().lower())
        if form is None or _SUFFIX in self.body:
            return None
        return self._plain_json() if form == "json" else self._plain_html()

    def _plain_html(self) -> PassThrough | None:
        if not _is_readable(self.body):
            return None
        links: list[tuple[bytes, bytes]] = _LINK.findall(self.body)
        names = [name or path.rpartition(b"/")[2] for name, path in links]
        if len(names) != len(_ANY_LINK.findall(self.body)) or any(map(_has_label, names)):
            return None
        relative = any(path for _, path in links)
        if relative and b"<base" in self.body.lower():
            return None
        newest = _newest(names)
        if newest is None:
            return PassThrough("html", None, relative)
        link = next(islice(_LINK.finditer(self.body), newest, None))[0]
        return PassThrough("html", self._file(link), relative)

    def _plain_json(self) -> PassThrough | None:
        if json_values(self.body) > PAGE_VALUES:
            return None  # parsing raises the error
        try:
            tree = json.loads(self.body)
            entries: list[dict[str, Any]] = tree["files"]
            if tree["meta"]["api-version"].partition(".")[0] != "1":
                return None
            relative = False
            for entry in entries:
                for link in (entry["url"], entry.get("provenance") or _ABSOLUTE[0]):
                    if not link.startswith(_ABSOLUTE):
                        if ":" in link:
                            return None
                        relative = True
            names = [entry["filename"].encode() for entry in entries]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None
        if any(map(_has_label, names)):
            return None
        newest = _newest(names)
        if newest is None:
            return PassThrough("json", None, relative)
        part = json.dumps({**tree, "files": [entries[newest]]}).encode()
        return PassThrough("json", self._file(part), relative)

    def _file(self, part: bytes) -> PageFile | None:
        """Return the only file in *part* of the page."""
        return next(iter(read_page(part, self.kind, self.url, self.project).files), None)


def _is_readable(body: bytes) -> bool:
    """Return whether parsing an HTML page will succeed."""
    said = _VERSION in body
    return _SECTION not in body and (not said or _KNOWN_VERSION.search(body) is not None)


def _newest(names: list[bytes]) -> int | None:
    """Return the position of the first wheel of the newest version, None without wheels."""
    places: dict[str, int] = {}  # by the version as filenames spell it
    for place, name in enumerate(names):
        if name.endswith(b".whl") and name.count(b"-") >= _DASHES - 1:
            places.setdefault(name.split(b"-", 2)[1].decode("utf-8", "replace"), place)
    versions = {version: text for text in places if (version := read_version(text)) is not None}
    return places[versions[max(versions)]] if versions else None


def _has_label(name: bytes) -> bool:
    if b"%" in name:
        name = unquote_to_bytes(name)
    if name.count(b"-") < _DASHES:
        return False
    return split_label(name.decode("utf-8", "replace"))[1] is not None
