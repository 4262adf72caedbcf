"""The indexes that uv would use, in the order in which it would, and how the shim calls them."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

PYPI = "https://pypi.org/simple"
PYPI_NAME = "pypi"

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+:", re.IGNORECASE)
_UNFIT = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True)
class UserIndex:
    """One index of the user's, as uv knows it.

    Attributes:
        url: of the simple API's root or, of a find-links place, of the page or directory.
        name: uv's name of it, empty for none.
        default: it stands in place of PyPI.
        explicit: only for the projects that name it.
        links: a find-links place.
        legacy: of ``index-url`` or ``extra-index-url``, which uv asks after all others.
        username, password: what ``UV_INDEX_…`` variables say.
    """

    url: str = field(repr=False)  # may have a password in it
    name: str = ""
    default: bool = False
    explicit: bool = False
    links: bool = False
    legacy: bool = False
    username: str = ""
    password: str = field(default="", repr=False)

    @property
    def shim_name(self) -> str:
        """What the shim calls it: the same for the same index, on every machine."""
        if self.name:
            return _UNFIT.sub("-", self.name).strip("-._") or "index"
        bare = bare_url(self.url)
        if not self.links and bare.rstrip("/") == PYPI:
            return PYPI_NAME
        host = _UNFIT.sub("-", urlsplit(bare).hostname or "local").strip("-._") or "local"
        return f"{host[:80]}-{hashlib.sha256(bare.encode()).hexdigest()[:10]}"

    @property
    def digest(self) -> str:
        """Hash of everything that decides what is read, credentials included."""
        parts = (self.url, str(self.links), self.username, self.password)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def bare_url(url: str) -> str:
    """Return *url* without user name and password, and without the last slash."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])).rstrip("/")


def index_at(
    place: str, base: Path, environ: Mapping[str, str], **attributes: str | bool
) -> UserIndex:
    """Return the index at *place*, a URL or a path relative to *base*, with its credentials."""
    url = place.strip()
    if not _SCHEME.match(url) or (os.name == "nt" and url[1:2] == ":"):
        url = Path(base, os.path.expanduser(url)).absolute().as_uri()  # noqa: PTH111
    elif "$" in url:
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
    """Return the index that ``--index`` or ``UV_INDEX`` means: a place, or ``name=place``."""
    name, equals, place = text.partition("=")
    if equals and re.fullmatch(r"[A-Za-z0-9._-]+", name):
        return index_at(place, base, environ, name=name, default=default)
    return index_at(text, base, environ, default=default)


def distinct(indexes: Iterable[UserIndex]) -> dict[str, UserIndex]:
    """Return indexes by the name the shim has for them: the first one of a name counts."""
    found: dict[str, UserIndex] = {}
    for index in indexes:
        found.setdefault(index.shim_name, index)
    return found
