"""Local find-links directories with variants, which uv cannot read: it gets them from the session.

uv reads other directories itself, so a lock has their paths. A directory with variants has a URL of
its own: below `HOST`, which stands for this machine wherever it is asked for (RFC 6761), and with
the path relative to the lock file, if it is inside the project, so that a lock is the same in every
checkout. Files of the lock have hashes, as always.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from pep_variants.internal import is_local, local_path

from .indexes import UserIndex, index_at

if TYPE_CHECKING:
    from .invocation import Invocation
    from .place import Place
    from .used_indexes import UsedIndexes

HOST = "http://find-links.localhost"


def shown_directories(used: UsedIndexes, lock: Path) -> dict[str, UserIndex]:
    """Return the local directories with variants, by `UserIndex.proxy_name`, with their URLs.

    Args:
        used: the indexes of a command.
        lock: path of its lock file.
    """
    return {
        name: replace(index, shown=_url(local_path(index.url), lock.absolute().parent))
        for name, index in used.indexes.items()
        if index.links and is_local(index.url) and has_variants(index)
    }


def has_variants(index: UserIndex) -> bool:
    """Return whether a local find-links directory has files with a label."""
    from pep_variants import split_label

    try:
        names = [path.name for path in local_path(index.url).iterdir()]
    except OSError:
        return False
    return any(split_label(unquote(name))[1] for name in names if name.endswith(".whl"))


def link_options(
    invocation: Invocation, place: Place, shown: Mapping[str, UserIndex]
) -> tuple[dict[int, str], list[str]]:
    """Return new values of options by `Given.start`, and further options.

    Args:
        invocation: uv's command line.
        place: where it runs.
        shown: the directories that have a URL, see `shown_directories`.
    """
    if not shown:
        return {}, []
    given = [item for item in invocation.given if item.name == "find-links"]
    values = {item.start: _replaced(item.value, place, shown) for item in given}
    if not given:
        return {}, []
    texts = ",".join(values.values())
    added = [index.shown for index in shown.values() if index.shown not in texts]
    return values, [part for url in added for part in ("--find-links", url)]


def link_variables(
    invocation: Invocation, place: Place, shown: Mapping[str, UserIndex]
) -> dict[str, str]:
    """Return the variables that change; see `link_options`, which goes before them."""
    if not shown or invocation.values("find-links"):
        return {}
    text = _replaced(place.environ.get("UV_FIND_LINKS", ""), place, shown)
    added = [index.shown for index in shown.values() if index.shown not in text]
    return {"UV_FIND_LINKS": ",".join(filter(None, (text, *added)))}


def _replaced(value: str, place: Place, shown: Mapping[str, UserIndex]) -> str:
    parts = []
    for part in value.split(","):
        index = index_at(part, place.cwd, place.environ, links=True, legacy=True)
        found = shown.get(index.proxy_name) if part.strip() else None
        parts.append(found.shown if found is not None else part)
    return ",".join(parts)


def _url(path: Path, base: Path) -> str:
    try:
        text = path.relative_to(base).as_posix()
    except ValueError:
        text = path.as_posix().lstrip("/")
    return f"{HOST}/{quote(text)}/"
