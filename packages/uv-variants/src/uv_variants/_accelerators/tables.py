"""The tables in pyproject.toml that have uv lock a group for each accelerator.

Groups, the indexes of their members, and the conflicts between them are written; what a person has
written stays as it is. `TABLE` says which accelerators and indexes are ours.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, MutableMapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import tomlkit
from packaging.requirements import Requirement
from tomlkit.items import AoT, Array, Table

from variants_index import uv_files

from .._errors import AcceleratorsUnknown
from .._named_projects import normalized
from .declared import KEYS, TABLE, Declared, parsed, requirement_name, strings

if TYPE_CHECKING:
    from .plan import Plan

Tree = MutableMapping[str, Any]

_COMMENTED = re.compile(r"""("(?:[^"\\]|\\.)*"|'[^']*')[\s,]*#\s?(.*)""")
"""An item of an array with the comment behind it."""
_COMMENT = (
    "Written by 'uv-variants accelerators', like the groups of these names, their sources and",
    "their conflicts. Type it again to change them.",
)


def rewritten(text: str, plan: Plan) -> str:
    """Return the pyproject.toml *text* with the tables of *plan*; without any group, without them.

    Raises:
        AcceleratorsUnknown: it is not TOML, or has a source of its own for a member.
    """
    try:
        document = tomlkit.parse(text)
    except ValueError as error:
        raise AcceleratorsUnknown(f"pyproject.toml is not valid TOML: {error}") from None
    before = document.unwrap()
    declared = Declared.of(before)
    ours = {*map(normalized, (*declared.accelerators, *plan.groups))}
    tool = _table(document, "tool", is_super=True)
    uv = _table(tool, "uv")
    dependencies = document.get("project", {}).get("dependencies")
    written = _items(uv_files.table_of(tool.get(TABLE)).get("moved")) | _items(dependencies)
    if isinstance(dependencies, Array):
        _move(dependencies, declared.moved, plan.moved, written)
    _groups(_table(document, "dependency-groups"), declared, plan)
    indexes = _indexes(uv, declared, plan)
    _sources(_table(uv, "sources"), ours, plan, indexes)
    _defaults(uv, uv_files.table_of(before.get("dependency-groups")), ours, plan)
    _conflicts(uv, ours, plan)
    _requirers(uv, declared, plan)
    used = sorted(name for name, is_ours in indexes.values() if is_ours)
    _own_table(tool, plan, used, [written.get(each, (each, "")) for each in plan.moved])
    for parent, name in ((uv, "sources"), (tool, "uv"), (document, "dependency-groups")):
        if not parent[name]:
            del parent[name]
    if not document["tool"]:
        del document["tool"]
    return tomlkit.dumps(document)


def _table(parent: Tree, name: str, *, is_super: bool = False) -> Tree:
    if name not in parent:
        parent[name] = tomlkit.table(is_super_table=is_super)
    found: Tree = parent[name]
    return found


def _items(array: object) -> dict[str, tuple[str, str]]:
    """Return text and comment of each requirement in *array*, by its normal form."""
    lines = array.as_string().splitlines() if isinstance(array, Array) else ()
    matches = [match for line in lines if (match := _COMMENTED.search(line))]
    comments = {tomlkit.value(match[1]).unwrap(): match[2] for match in matches}
    return {
        str(item): (text, comments.get(text, ""))
        for text in strings(array)
        for item in parsed([text])
    }


def _append(array: Array, text: str, comment: str = "") -> None:
    if comment:
        indent = re.search(r"\n([ \t]+)", array.as_string())
        array.add_line(text, indent=indent[1] if indent else "    ", comment=comment)
    else:
        array.append(text)


def _move(
    listed: Array,
    before: Sequence[str],
    now: Sequence[str],
    written: Mapping[str, tuple[str, str]],
) -> None:
    """Take *now* from the dependencies of a project, and put back what was taken *before*."""
    names = set(map(requirement_name, now))
    for position in reversed(range(len(listed))):
        if requirement_name(str(listed[position])) in names:
            del listed[position]
    kept = {requirement_name(str(each)) for each in listed}
    for text in before:
        if requirement_name(text) not in names | kept:
            comment = next((each[1] for each in written.values() if each[0] == text), "")
            _append(listed, text, comment)


def _groups(table: Tree, declared: Declared, plan: Plan) -> None:
    by_name = {normalized(name): name for name in table}
    names = plan.names.union(declared.members)
    for old in declared.accelerators:
        if old not in plan.groups and (name := by_name.get(normalized(old))):
            _replace(table[name], names, ())
            if not table[name]:
                del table[name]
    for accelerator, members in plan.groups.items():
        name = by_name.get(normalized(accelerator), accelerator)
        if name not in table:
            table[name] = tomlkit.array()
        _replace(table[name], names, [item.requirement for item in members])


def _replace(array: Array, names: Collection[str], wanted: Sequence[str]) -> None:
    """Have *wanted* in *array* in place of what else there is of *names*."""
    present = [str(each) for each in array if requirement_name(str(each)) in names]
    if present == list(wanted):
        return
    comments = dict(_items(array).values())
    for position in reversed(range(len(array))):
        if str(array[position]) in present:
            del array[position]
    for text in wanted:
        _append(array, text, comments.get(text, ""))


def _indexes(uv: Tree, declared: Declared, plan: Plan) -> dict[str, tuple[str, bool]]:
    """Write the indexes of *plan*; return their names by URL, and whether we wrote them."""
    urls = dict.fromkeys(
        item.index for members in plan.groups.values() for item in members if item.index
    )
    listed = uv.get("index")
    listed = listed if isinstance(listed, AoT) else []
    found: dict[str, tuple[str, bool]] = {}
    for position in reversed(range(len(listed))):
        row = listed[position]
        name, url = str(row.get("name", "")), str(row.get("url", "")).rstrip("/")
        is_ours = name in declared.indexes
        if url in urls and row.get("explicit") is True and name:
            found[url] = (name, is_ours)
        elif is_ours:
            del listed[position]
    names = {str(row.get("name", "")) for row in listed}
    for url in urls:
        if url in found:
            continue
        name = unused = _index_name(url)
        number = 2
        while unused in names:
            unused, number = f"{name}-{number}", number + 1
        names.add(unused)
        row = tomlkit.table()
        row.update({"name": unused, "url": url, "explicit": True})
        row.add(tomlkit.nl())
        if not isinstance(uv.get("index"), AoT):
            uv["index"] = tomlkit.aot()
        uv["index"].append(row)
        found[url] = (unused, True)
    if isinstance(uv.get("index"), AoT) and not uv["index"]:
        del uv["index"]
    return found


def _index_name(url: str) -> str:
    """Return a name for the index at *url*: ``pytorch-cu126``."""
    parts = urlsplit(url)
    host = (parts.hostname or "index").split(".")
    return f"{host[-2] if len(host) > 1 else host[0]}-{parts.path.rstrip('/').rsplit('/', 1)[-1]}"


def _sources(
    table: Tree, ours: set[str], plan: Plan, indexes: Mapping[str, tuple[str, bool]]
) -> None:
    wanted: dict[str, list[dict[str, str]]] = {}
    for accelerator, members in plan.groups.items():
        places = Counter(name for name, _ in {(item.name, item.index) for item in members})
        for item in members:
            if item.index:
                row = {"index": indexes[item.index][0], "group": accelerator}
                if places[item.name] > 1:  # elsewhere it is from another one
                    row["marker"] = str(Requirement(item.requirement).marker).replace('"', "'")
                if row not in wanted.setdefault(item.name, []):
                    wanted[item.name].append(row)
    by_name = {normalized(name): name for name in table}
    for name in dict.fromkeys((*by_name, *wanted)):
        written = by_name.get(name, name)
        present = table.get(written, [])
        rows = [present] if isinstance(present, Mapping) else list(present)
        is_ours = [normalized(str(row.get("group", ""))) in ours for row in rows]
        if name in wanted and not all(is_ours):
            raise AcceleratorsUnknown(
                f"tool.uv.sources.{written} in pyproject.toml has a source of its own: remove it, "
                "each accelerator gets one"
            )
        if name not in wanted and any(is_ours) and all(is_ours):
            del table[written]
        elif name in wanted and rows != wanted[name]:
            array = tomlkit.array().multiline(True)
            for each in wanted[name]:
                source = tomlkit.inline_table()
                source.update(each)
                array.append(source)
            table[written] = array


def _defaults(uv: Tree, groups: Mapping[str, Any], ours: set[str], plan: Plan) -> None:
    present = uv.get("default-groups")
    if isinstance(present, str):
        return  # all
    has_dev = "dev" in groups or "dev-dependencies" in uv  # which are uv's own default
    kept = ["dev"] if present is None and has_dev else strings(present)
    kept = [name for name in kept if normalized(name) not in ours]
    wanted = [*kept, *plan.groups]
    if not plan.groups and kept in ([], ["dev"]):
        uv.pop("default-groups", None)
    elif list(strings(present)) != wanted:
        uv["default-groups"] = wanted


def _conflicts(uv: Tree, ours: set[str], plan: Plan) -> None:
    wanted = [[{"group": name} for name in plan.groups]] if len(plan.groups) > 1 else []
    wanted += conflicts_of(plan.apart, tuple(plan.groups)) if plan.apart else []
    rows = uv.get("conflicts")
    if not isinstance(rows, Array):
        rows = tomlkit.array().multiline(True)
    places = [place for place, row in enumerate(rows) if _is_among(row, ours)]
    if [list(map(dict, rows[place])) for place in places] == wanted:
        return
    for place in reversed(places):
        del rows[place]
    for row in wanted:
        inner = tomlkit.array()
        for each in row:
            item = tomlkit.inline_table()
            item.update(each)
            inner.append(item)
        rows.append(inner)
    if rows:
        uv["conflicts"] = rows
    else:
        uv.pop("conflicts", None)


def conflicts_of(members: Sequence[str], groups: Sequence[str]) -> Iterator[list[dict[str, str]]]:
    """Yield sets in which each group of a member meets all others of each member.

    Each set has all groups, as the lines of a Latin square have: uv's time grows with their number.
    """
    size = len(members)
    while math.gcd(size, math.factorial(max(len(groups) - 2, 1))) > 1:
        size += 1
    for start, step in product(range(size), repeat=2):
        places = [step, *((start + number * step) % size for number in range(len(groups) - 1))]
        found = [
            {"package": members[place], "group": group}
            for place, group in zip(places, groups, strict=True)
            if place < len(members)
        ]
        if len(found) > 1:
            yield found


def _requirers(uv: Tree, declared: Declared, plan: Plan) -> None:
    """Tell uv what the requirers of *plan* require besides members of groups."""
    rows = uv.get("dependency-metadata")
    rows = rows if isinstance(rows, AoT) else tomlkit.aot()
    wanted = {
        item.name: {
            "name": item.name,
            "version": item.version,
            "requires-dist": list(item.requires),
            **({"provides-extra": list(item.extras)} if item.extras else {}),
        }
        for item in plan.requirers
    }
    for position in reversed(range(len(rows))):
        name = normalized(str(rows[position].get("name", "")))
        if name in wanted and rows[position].unwrap() == wanted[name]:
            del wanted[name]
        elif name in declared.requirers:
            del rows[position]
    for tree in wanted.values():
        row = tomlkit.table()
        row.update(tree)
        row.add(tomlkit.nl())
        rows.append(row)
    if rows:
        uv["dependency-metadata"] = rows
    else:
        uv.pop("dependency-metadata", None)


def _is_among(row: object, ours: set[str]) -> bool:
    """Return whether a set of conflicts is about groups of *ours* alone."""
    items = list(row) if isinstance(row, list) else []
    names = [normalized(str(uv_files.table_of(item).get("group", ""))) for item in items]
    return bool(names) and all(name in ours for name in names)


def _own_table(
    tool: Tree, plan: Plan, indexes: Iterable[str], moved: Sequence[tuple[str, str]]
) -> None:
    members = sorted({item.name for group in plan.groups.values() for item in group})
    requirers = (item.name for item in plan.requirers)
    texts = [text for text, _ in moved]
    values = (plan.groups, indexes, texts, requirers, members)
    listed = {name: list(each) for name, each in zip(KEYS, values, strict=True)}
    wanted = {name: each for name, each in listed.items() if each}
    present = tool.get(TABLE)
    if isinstance(present, Table) and present.unwrap() == wanted:
        return
    if not plan.groups:
        tool.pop(TABLE, None)
        return
    table = tomlkit.table()
    for line in _COMMENT:
        table.add(tomlkit.comment(line))
    table.update(wanted)
    if any(comment for _, comment in moved):
        table["moved"] = tomlkit.array()
        for text, comment in moved:
            _append(table["moved"], text, comment)
    tool[TABLE] = table
