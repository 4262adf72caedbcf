"""Indexes of a project file after ``uv add``: those of the user in place of those of the proxy.

``uv add`` writes the indexes that it is given into ``pyproject.toml`` or the metadata of a script
(PEP 723), and those are the proxy's. The restored file is the file as it was before, with all other
changes of uv; so comments, layout and the order of tables are the user's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any, NamedTuple

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AoT, Array, Table

from variants_proxy.upstream_options import bare_url

from .daemon.address import RESERVED_URL

_INDEXES = ("tool", "uv", "index")
_SCRIPT = re.compile(r"(?m)^# /// script\n(?P<content>(?:#(?: .*)?\n)*?)# ///$")
_PROXY_URL = re.compile(rf"{re.escape(RESERVED_URL)}/p/[^/\"]+/i/([^/\"]+)/(?:simple|links)/?")


def restored(before: str, after: str, given: Sequence[Mapping[str, Any]]) -> str:
    """Return *before* with uv's changes, except those of its indexes, and with *given* ones.

    Args:
        before: text of the file before uv changed it.
        after: text now.
        given: indexes of the command line, first one first, as tables of ``tool.uv.index``.

    Raises:
        ValueError: a text is not valid TOML.
    """
    try:
        return _restored(before, after, given)
    except TOMLKitError as error:  # of which only some are ValueErrors
        raise ValueError(str(error)) from error


def _restored(before: str, after: str, given: Sequence[Mapping[str, Any]]) -> str:
    newline = "\r\n" if "\r\n" in after else "\n"
    old, new = (_split(text.replace("\r\n", "\n")) for text in (before, after))
    if new.is_script and not old.is_script:
        old = new._replace(toml="")
    document = tomlkit.parse(old.toml)
    _copy_changes(tomlkit.parse(new.toml), document)
    _add_indexes(document, given)
    toml = re.sub(r"\n+\Z", "\n", tomlkit.dumps(document))
    return old.with_toml(toml).replace("\n", newline)


def real_urls(text: str, urls: Mapping[str, str]) -> str:
    """Return *text* with *urls*, by name of index, in place of the proxy's URLs."""
    return _PROXY_URL.sub(lambda match: urls.get(match[1], match[0]), text)


class _Parts(NamedTuple):
    """The text of a project file.

    Attributes:
        toml: the TOML document, without comments at its end: they stay behind new tables.
        head, tail: the text around it.
        is_script: it is the metadata of a script, in comments.
    """

    toml: str
    head: str
    tail: str
    is_script: bool

    def with_toml(self, toml: str) -> str:
        """Return the text with another TOML document."""
        if self.is_script:
            toml = "".join(f"# {line}".rstrip() + "\n" for line in toml.splitlines())
        return f"{self.head}{toml}{self.tail}"


def _split(text: str) -> _Parts:
    match = _SCRIPT.search(text)
    if match is not None:
        toml = re.sub(r"(?m)^# ?", "", match["content"])
        return _Parts(toml, text[: match.start("content")], text[match.end("content") :], True)
    lines = text.splitlines(keepends=True)
    end = len(lines)
    while end and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
        end -= 1
    return _Parts("".join(lines[:end]), "", "".join(lines[end:]), False)


def _copy_changes(
    source: MutableMapping[str, Any],
    target: MutableMapping[str, Any],
    path: tuple[str, ...] = (),
) -> None:
    """Make the values of *target* those of *source*, except for the indexes."""
    for key, value in source.items():
        place = (*path, key)
        existing = target.get(key)
        if place == _INDEXES:
            continue
        if isinstance(value, MutableMapping) and isinstance(existing, MutableMapping):
            _copy_changes(value, existing, place)
        elif isinstance(value, Table):
            # Without the comments of the file, which are behind the table if it is the last one.
            table = tomlkit.table(value.is_super_table())
            _copy_changes(value, table, place)
            if table or not _leads_to_indexes(place):
                target[key] = table
        elif existing is None or _plain(value) != _plain(existing):
            target[key] = value
    for key in set(target) - set(source):
        if not _leads_to_indexes((*path, key)):
            del target[key]


def _leads_to_indexes(path: tuple[str, ...]) -> bool:
    return path == _INDEXES[: len(path)]


def _add_indexes(document: tomlkit.TOMLDocument, given: Sequence[Mapping[str, Any]]) -> None:
    """Add *given* before the indexes of *document*; one with a known name changes its URL."""
    if not given:
        return
    tool: Any = document.get("tool")
    settings: Any = tool.get("uv") if tool is not None else None
    indexes = settings.get("index", []) if settings is not None else []
    by_name = {each["name"]: each for each in indexes if "name" in each}
    urls = {bare_url(str(each.get("url", ""))) for each in indexes}
    new = []
    for index in given:
        known = by_name.get(index.get("name"))
        if known is None and index["url"] not in urls:
            new.append(index)
        elif known is not None and bare_url(str(known["url"])) != index["url"]:
            known["url"] = index["url"]
    if not new:
        return
    if isinstance(indexes, Array):
        for place, index in enumerate(new):
            indexes.insert(place, dict(index))
        return
    tables = indexes if isinstance(indexes, AoT) else tomlkit.aot()
    for place, index in enumerate(new):
        table = tomlkit.item(dict(index))
        table.add(tomlkit.nl())
        tables.insert(place, table)
    if isinstance(indexes, AoT):
        return
    # From the inside out: tomlkit writes an empty line before a table that it appends when filled.
    if settings is not None:
        settings["index"] = tables
        return
    settings = tomlkit.table(is_super_table=True)
    settings["index"] = tables
    if tool is not None:
        tool["uv"] = settings
        return
    tool = tomlkit.table(is_super_table=True)
    tool["uv"] = settings
    document["tool"] = tool


def _plain(value: Any) -> Any:  # noqa: ANN401
    return value.unwrap() if hasattr(value, "unwrap") else value
