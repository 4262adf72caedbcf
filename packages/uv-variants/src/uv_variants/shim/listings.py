"""Pages as upstreams wrote them: most have nothing to choose from and are handed on unread.

Whether a page is one of these takes a tenth of the time that it takes to read it. The look is
strict: what is spelled in a way that it does not know is read and written anew, as are pages with
links that mean something else elsewhere.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import unquote_to_bytes

from pep_variants.label import METADATA_SUFFIX, split_label
from resolvelib_variants.index.pages import HTML, JSON, Page, read_page

from .answers import Form

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
    def plain_form(self) -> Form | None:
        """The form of a page that serves everybody as it is; None if it has to be read.

        It has no variants and no links but absolute ones.
        """
        form = _FORMS.get(self.kind.partition(";")[0].strip().lower())
        if form is None or _SUFFIX in self.body:
            return None
        if form == "html" and not _is_readable(self.body):
            return None
        names = _json_names(self.body) if form == "json" else _html_names(self.body)
        return form if names is not None and not any(map(_has_label, names)) else None


def _is_readable(body: bytes) -> bool:
    """Return whether reading an HTML page will not fail."""
    said = _VERSION in body
    return _SECTION not in body and (not said or _KNOWN_VERSION.search(body) is not None)


def _html_names(body: bytes) -> list[bytes] | None:
    """Return the filenames on an HTML page, None if there are others than absolute links."""
    names: list[bytes] = _LINK.findall(body)
    return names if len(names) == len(_ANY_LINK.findall(body)) else None


def _json_names(body: bytes) -> list[bytes] | None:
    try:
        tree = json.loads(body)
        entries: list[dict[str, Any]] = tree["files"]
        if tree["meta"]["api-version"].partition(".")[0] != "1":
            return None
        for entry in entries:
            provenance = entry.get("provenance") or _ABSOLUTE[0]
            if not (entry["url"].startswith(_ABSOLUTE) and provenance.startswith(_ABSOLUTE)):
                return None
        return [entry["filename"].encode() for entry in entries]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _has_label(name: bytes) -> bool:
    if b"%" in name:
        name = unquote_to_bytes(name)
    if name.count(b"-") < _DASHES:
        return False
    return split_label(name.decode("utf-8", "replace"))[1] is not None
