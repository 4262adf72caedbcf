"""The indexes that uv uses for a command: those of options, variables and files, in uv's order.

uv gets its own arguments, variables and files, so this has to agree with what uv reads: uv uses an
index that is missing here as it is, without variants.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from variants_proxy.internal import PYPI

from .configuration import Configuration, read_configuration
from .indexes import UserIndex, distinct, index_at, named_index_at

if TYPE_CHECKING:
    from .command_scope import Scope
    from .invocation import Invocation
    from .place import Place

VARIABLES = {
    "default-index": "UV_DEFAULT_INDEX",
    "index": "UV_INDEX",
    "extra-index-url": "UV_EXTRA_INDEX_URL",
    "index-url": "UV_INDEX_URL",
    "find-links": "UV_FIND_LINKS",
}
"""Options that name indexes, in the order in which uv lists them, and their variables."""

_ONE = ("default-index", "index-url")


class UsedIndexes(NamedTuple):
    """The indexes of one command.

    Attributes:
        indexes: by `UserIndex.proxy_name`, in the order in which uv asks them.
        projects: for the explicit ones, the projects (normalized names) that name them.
        configuration: the indexes and settings of files.
    """

    indexes: Mapping[str, UserIndex]
    projects: Mapping[str, frozenset[str]]
    configuration: Configuration


def used_indexes(invocation: Invocation, scope: Scope, place: Place) -> UsedIndexes:
    """Return the indexes that uv uses for *invocation* in *place*."""
    configuration = read_configuration(invocation, scope, place)
    given = {name: [*_given(name, invocation, place)] for name in VARIABLES}
    filed = configuration.indexes
    listed = [
        *given["default-index"],
        *given["index"],
        *(index for index in filed if not index.legacy),
        *given["extra-index-url"],
        *(index for index in filed if index.legacy and not index.default and not index.links),
        *(given["index-url"] or [index for index in filed if index.legacy and index.default]),
    ]
    without = invocation.has("no-index") or configuration.scalars.get("no-index") is True
    if without:
        listed = [index for index in listed if index.links]
    else:
        listed.append(UserIndex(PYPI, default=True))  # counts if it is the first default
    listed += given["find-links"]
    listed += (index for index in filed if index.legacy and index.links)
    indexes = distinct(_ordered(listed))
    projects = {
        name: configuration.pinned.get(index.name, frozenset())
        for name, index in indexes.items()
        if index.explicit
    }
    return UsedIndexes(indexes, projects, configuration)


def _ordered(listed: Iterable[UserIndex]) -> Iterator[UserIndex]:
    """Yield the indexes by priority: names once, the default last, find-links after it."""
    names: set[str] = set()
    unique: list[UserIndex] = []
    for index in listed:
        if index.name and index.name in names:
            continue
        names.add(index.name)
        unique.append(index)
    default = next((index for index in unique if index.default), None)
    for index in unique:
        # uv ignores a second default.
        if not index.links and not index.default:
            yield index
    if default is not None:
        yield default
    for index in unique:
        if index.links and index is not default:
            yield index


def _given(name: str, invocation: Invocation, place: Place) -> Iterator[UserIndex]:
    """Yield the indexes of an option, or of its variable if the option was not given."""
    values = invocation.values(name) or [place.environ.get(VARIABLES[name], "")]
    is_one, is_links = name in _ONE, name == "find-links"
    for value in values[-1:] if is_one else values:
        parts = [value] if is_one else value.split("," if is_links else None)
        for part in filter(None, map(str.strip, parts)):
            if name in ("index", "default-index"):
                yield named_index_at(part, place.cwd, place.environ, default=is_one)
            else:
                yield index_at(
                    part, place.cwd, place.environ, default=is_one, links=is_links, legacy=True
                )
