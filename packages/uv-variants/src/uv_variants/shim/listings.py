"""Pages as upstreams wrote them: most have nothing to choose from and are handed on unread.

Whether a page is one of these takes a tenth of the time that it takes to read it. The look is
strict: what is spelled in a way that it does not know is read and written anew, as are pages with
links that mean something else elsewhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import unquote_to_bytes

from pep_variants.label import METADATA_SUFFIX, split_label
from resolvelib_variants.index.pages import HTML, JSON, Page, PageFile, read_page

from .answers import Form
from .choice import read_version

_FORMS: dict[str, Form] = {JSON: "json", HTML: "html", "text/html": "html"}

# A link that is absolute and as tools write it.
_LINK = re.compile(
    rb'<a href="https?://[\w.:-]+/[^"?#<>\s]*/([^/"?#<>\s]+)(?:#[^"<>]*)?"'
    rb'(?: [a-z-]+(?:="[^"]*")?)* ?>'
)
_ANY_LINK = re.compile(rb"<a[\s/]", re.IGNORECASE)
_SECTION = b"<!["
_VERSION = b"pypi:repository-version"
_KNOWN_VERSION = re.compile(rb'<meta name="pypi:repository-version" content="1(?:\.[^"]*)?">')
_ABSOLUTE = ("https://", "http://")
_SUFFIX = METADATA_SUFFIX.encode()
_DASHES = 5
"""Of the shortest name that may have a label."""


@dataclass(frozen=True)
class Plain:
    """What has been seen of a page that may be handed on as it is.

    Attributes:
        form: of the page.
        newest: a wheel of the newest version, None without wheels.
    """

    form: Form
    newest: PageFile | None


@dataclass(frozen=True)
class Listing:
    """One project's page of an upstream.

    Attributes:
        body: as it came.
        kind: content type.
        url: where it was found: what links are relative to.
        project: normalized name.
    """

    body: bytes = field(repr=False)
    kind: str
    url: str
    project: str

    @cached_property
    def page(self) -> Page:
        """What it says.

        Raises:
            InvalidPage: it is no page.
        """
        return read_page(self.body, self.kind, self.url, self.project)

    @cached_property
    def plain(self) -> Plain | None:
        """What has been seen of a page that serves everybody as it is; None if it has to be read.

        It has no variants and no links but absolute ones.
        """
        form = _FORMS.get(self.kind.partition(";")[0].strip().lower())
        if form is None or _SUFFIX in self.body:
            return None
        return self._plain_json() if form == "json" else self._plain_html()

    def _plain_html(self) -> Plain | None:
        if not _is_readable(self.body):
            return None
        names: list[bytes] = _LINK.findall(self.body)
        if len(names) != len(_ANY_LINK.findall(self.body)) or any(map(_has_label, names)):
            return None
        newest = _newest(names)
        if newest is None:
            return Plain("html", None)
        link = next(_links_to(self.body, names[newest]), b"")
        return Plain("html", self._file(link))

    def _plain_json(self) -> Plain | None:
        try:
            tree = json.loads(self.body)
            entries: list[dict[str, Any]] = tree["files"]
            if tree["meta"]["api-version"].partition(".")[0] != "1":
                return None
            for entry in entries:
                provenance = entry.get("provenance") or _ABSOLUTE[0]
                if not (entry["url"].startswith(_ABSOLUTE) and provenance.startswith(_ABSOLUTE)):
                    return None
            names = [entry["filename"].encode() for entry in entries]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None
        if any(map(_has_label, names)):
            return None
        newest = _newest(names)
        if newest is None:
            return Plain("json", None)
        return Plain("json", self._file(json.dumps({**tree, "files": [entries[newest]]}).encode()))

    def _file(self, part: bytes) -> PageFile | None:
        """Return the one file on a *part* of the page."""
        return next(iter(read_page(part, self.kind, self.url, self.project).files), None)


def _is_readable(body: bytes) -> bool:
    """Return whether reading an HTML page will not fail."""
    said = _VERSION in body
    return _SECTION not in body and (not said or _KNOWN_VERSION.search(body) is not None)


def _newest(names: list[bytes]) -> int | None:
    """Return where the first wheel of the newest version is, None without any."""
    places: dict[str, int] = {}  # by the version as filenames spell it
    for place, name in enumerate(names):
        if name.endswith(b".whl") and name.count(b"-") >= _DASHES - 1:
            places.setdefault(name.split(b"-", 2)[1].decode("utf-8", "replace"), place)
    versions = {version: text for text in places if (version := read_version(text)) is not None}
    return places[versions[max(versions)]] if versions else None


def _links_to(body: bytes, name: bytes) -> Iterator[bytes]:
    place = body.find(b"/" + name)
    while place >= 0:
        link = _LINK.match(body, body.rfind(b"<a ", 0, place))
        if link is not None and link[1] == name:
            yield link[0]
        place = body.find(b"/" + name, place + 1)


def _has_label(name: bytes) -> bool:
    if b"%" in name:
        name = unquote_to_bytes(name)
    if name.count(b"-") < _DASHES:
        return False
    return split_label(name.decode("utf-8", "replace"))[1] is not None
