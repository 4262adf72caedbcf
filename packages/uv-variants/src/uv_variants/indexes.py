"""The indexes of the user, and their names in URLs of the proxy."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from variants_proxy.internal import absolute_url, upstream_name

if TYPE_CHECKING:
    from variants_proxy import Upstream
    from variants_proxy.internal import Kind


@dataclass(frozen=True)
class UserIndex:
    """An index that uv is configured for.

    Attributes:
        url: of the simple API's root or, for find-links, of the page or directory.
        name: name that the user gave it, empty without one.
        default: replaces PyPI.
        explicit: only used for projects that name it.
        links: a find-links page or directory.
        legacy: of ``index-url`` or ``extra-index-url``, which uv asks last, or ``find-links``.
        username, password: of ``UV_INDEX_…`` variables.
        shown: URL at which uv asks for a directory of this machine; empty for indexes
            that uv asks at their own URL.
    """

    url: str = field(repr=False)  # may have a password in it
    name: str = ""
    default: bool = False
    explicit: bool = False
    links: bool = False
    legacy: bool = False
    username: str = ""
    password: str = field(default="", repr=False)
    shown: str = ""

    @property
    def proxy_name(self) -> str:
        """Name in URLs of the proxy: the same for the same index on every machine."""
        return upstream_name(self.url, self.name, "find-links" if self.links else "simple")

    def upstream(self) -> Upstream:
        """Return the index as an upstream of the proxy.

        Raises:
            InvalidSetting: its URL is not valid.
        """
        from variants_index.internal import Credentials
        from variants_proxy import Upstream

        credentials = None
        if self.username or self.password:
            credentials = Credentials(self.username, self.password)
        kind: Kind = "find-links" if self.links else "simple"
        return Upstream(self.proxy_name, self.url, kind, credentials, explicit=self.explicit)


def index_at(
    place: str, base: Path, environ: Mapping[str, str], **attributes: str | bool
) -> UserIndex:
    """Return the index at *place*, a URL or a path relative to *base*, with its credentials."""
    url = absolute_url(place, base)
    if url == place.strip() and "$" in url:
        url = os.path.expandvars(url)
    index = UserIndex(url, **attributes)  # type: ignore[arg-type]
    if not index.name:
        return index
    key = re.sub(r"[^A-Z0-9]", "_", index.name.upper())
    return replace(
        index,
        username=environ.get(f"UV_INDEX_{key}_USERNAME", ""),
        password=environ.get(f"UV_INDEX_{key}_PASSWORD", ""),
    )


def named_index_at(
    text: str, base: Path, environ: Mapping[str, str], *, default: bool = False
) -> UserIndex:
    """Return the index in a value of ``--index`` or ``UV_INDEX``: ``place`` or ``name=place``."""
    name, equals, place = text.partition("=")
    if equals and re.fullmatch(r"[A-Za-z0-9._-]+", name):
        return index_at(place, base, environ, name=name, default=default)
    return index_at(text, base, environ, default=default)


def distinct(indexes: Iterable[UserIndex]) -> dict[str, UserIndex]:
    """Return indexes by their names in the proxy; of two with the same name the first one."""
    found: dict[str, UserIndex] = {}
    for index in indexes:
        found.setdefault(index.proxy_name, index)
    return found
