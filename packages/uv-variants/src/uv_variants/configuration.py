"""Indexes and settings in uv's configuration files: project, user and system, as uv reads them.

Files are only read, and what is not valid is skipped: uv reports it itself.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pep_variants.internal import REQUIREMENTS_BYTES, read_text
from variants_index.internal import (
    UvTable,
    project_settings,
    project_table,
    read_toml,
    script_tree,
    settings_tables,
    table_of,
    workspace_root,
)

from .command_scope import Scope
from .indexes import UserIndex, index_at
from .named_projects import name_of, normalized
from .uv_directories import tool_directory

if TYPE_CHECKING:
    from .invocation import Invocation
    from .place import Place

_REQUIREMENTS_OPTION = re.compile(
    r"^\s*(-i|--index-url|--extra-index-url|-f|--find-links|-r|--requirement|-c|--constraint)"
    r"[\s=]+(\S+)"
)
_AFTER = re.compile(r"\s(?:#|--)")
"""Begins what may follow a requirement on its line: a comment, or options."""
_HASH = re.compile(r"\s--hash[=\s]sha256:([0-9a-f]{64})")
_MAX_FILES = 200

PROXIES = ("http-proxy", "https-proxy", "no-proxy")
"""Settings that uv prefers to the variables of the same name."""

SCALARS = ("cache-dir", "no-index", "keyring-provider", "allow-insecure-host", *PROXIES)
"""Settings other than indexes that are read."""

PIP_SCALARS = ("python", "system", "target", "prefix", "torch-backend")
"""Settings of the ``pip`` table that say where ``uv pip`` installs, and from where."""


@dataclass(frozen=True)
class Configuration:
    """Settings of configuration files.

    Attributes:
        indexes: in the order in which uv asks them, find-links included.
        pinned: projects with a source that names an index, by the index's name.
        scalars: other settings that are needed here, by key.
        hashes: SHA-256 that requirement files give, by normalized name of the project.
        requirements: lines of requirement and constraint files, without options and comments.
    """

    indexes: tuple[UserIndex, ...] = ()
    pinned: Mapping[str, frozenset[str]] = field(default_factory=dict)
    scalars: Mapping[str, Any] = field(default_factory=dict)
    hashes: Mapping[str, frozenset[str]] = field(default_factory=dict)
    requirements: tuple[str, ...] = ()


def read_configuration(invocation: Invocation, scope: Scope, place: Place) -> Configuration:
    """Return what uv reads for *invocation*, which works on *scope* in *place*."""
    environ, start = place.environ, place.project.absolute()
    tables = [UvTable(path, options) for path, options in _receipts(invocation, place)]
    if place.script is not None:
        tree = script_tree(place.script) or {}
        tables.append(UvTable(place.script, table_of(table_of(tree.get("tool")).get("uv"))))
    own = [*tables, *_local_projects([*_workspace(start, scope), *_folders(invocation, place)])]
    tables += settings_tables(
        start,
        environ,
        config_file=invocation.last("config-file") or environ.get("UV_CONFIG_FILE") or None,
        no_config=invocation.has("no-config") or place.is_on("UV_NO_CONFIG"),
        project=scope is not Scope.TOOL,
    )
    found: list[UserIndex] = []
    scalars: dict[str, Any] = {}
    for table in tables:
        # For `uv pip` its table goes first.
        of_pip = table_of(table.settings.get("pip")) if invocation.command[:1] == ("pip",) else {}
        for level, keys in ((of_pip, SCALARS + PIP_SCALARS), (table.settings, SCALARS)):
            found += _indexes(level, table.base, environ)
            for key in level.keys() & {*keys}:
                scalars.setdefault(key, level[key])
    # Indexes of workspace members and other local projects, and of the project with --no-config,
    # are used only by the sources that name them.
    names = {index.name for index in found}
    pinned: dict[str, set[str]] = {}
    for table in own:
        for project, source in _sources(table.settings):
            if isinstance(name := source.get("index"), str):
                pinned.setdefault(name, set()).add(normalized(project))
        for index in _indexes(table.settings, table.base, environ):
            if index.name and index.name not in names:
                names.add(index.name)
                found.append(replace(index, default=False, explicit=True))
    indexes, hashes, requirements = _requirements(invocation, place)
    found += indexes
    # All `index` entries of all files go before `extra-index-url`, and that before `index-url`.
    found.sort(key=lambda index: (index.links, index.legacy, index.legacy and index.default))
    return Configuration(
        tuple(found),
        {name: frozenset(items) for name, items in pinned.items()},
        scalars,
        {name: frozenset(items) for name, items in hashes.items()},
        tuple(requirements),
    )


def _receipts(invocation: Invocation, place: Place) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Yield the receipts of tools to upgrade, with the options that they were installed with."""
    if invocation.command != ("tool", "upgrade"):
        return
    folder = tool_directory(place.environ)
    for name in invocation.operands or [path.name for path in folder.glob("*")]:
        path = folder / name / "uv-receipt.toml"
        options = table_of(table_of((read_toml(path) or {}).get("tool")).get("options"))
        if options:
            yield path, options


def _folders(invocation: Invocation, place: Place) -> Iterator[Path]:
    """Yield the directories that a command names, whose projects may have sources."""
    texts = invocation.values("editable", "with-editable", "with", "from")
    if invocation.command != ("run",):
        texts += invocation.operands
    for text in texts:
        path = place.cwd / text.removeprefix("file://").partition("[")[0]
        if ("/" in text or text.startswith(".")) and path.is_dir():
            yield path


def _workspace(start: Path, scope: Scope) -> list[Path]:
    """Return the folders of the project, its workspace and all members; uv has none for tools."""
    root = workspace_root(start) if scope is not Scope.TOOL else None
    if root is None:
        return []
    folders = dict.fromkeys((start, *start.parents))
    paths = [folder for folder in folders if folder == root or root in folder.parents]
    members = table_of(project_settings(root).settings.get("workspace")).get("members", [])
    for pattern in members if isinstance(members, list) else []:
        if isinstance(pattern, str) and not Path(pattern).is_absolute():
            paths += [path for path in root.glob(pattern) if path.is_dir()]
    return paths


def _local_projects(folders: Iterable[Path]) -> list[UvTable]:
    """Return ``[tool.uv]`` of the projects in *folders*, and of those that their sources name."""
    waiting = list(folders)
    seen: set[str] = set()
    tables = []
    while waiting and len(seen) < _MAX_FILES:
        folder = waiting.pop(0)
        path = os.path.abspath(folder)  # noqa: PTH100 - `absolute` keeps the ".." of sources
        if path in seen:
            continue
        seen.add(path)
        found = project_settings(folder)
        if found.settings:
            tables.append(found)
            named = (table_of(source).get("path") for _, source in _sources(found.settings))
            waiting += [folder / text for text in named if isinstance(text, str)]
    return tables


def _indexes(
    settings: Mapping[str, Any], base: Path, environ: Mapping[str, str]
) -> Iterator[UserIndex]:
    listed = settings.get("index")
    for entry in listed if isinstance(listed, list) else []:
        if isinstance(entry, dict) and isinstance(entry.get("url"), str):
            name = entry.get("name")
            yield index_at(
                entry["url"],
                base,
                environ,
                name=name if isinstance(name, str) else "",
                default=entry.get("default") is True,
                explicit=entry.get("explicit") is True,
                links=entry.get("format") == "flat",
            )
    for url in _texts(settings.get("extra-index-url")):
        yield index_at(url, base, environ, legacy=True)
    for url in _texts(settings.get("index-url")):
        yield index_at(url, base, environ, default=True, legacy=True)
    for url in _texts(settings.get("find-links")):
        yield index_at(url, base, environ, links=True, legacy=True)


def _sources(settings: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield project and table of every source."""
    for project, source in table_of(settings.get("sources")).items():
        for each in source if isinstance(source, list) else [source]:
            yield project, table_of(each)


def _requirements(
    invocation: Invocation, place: Place
) -> tuple[list[UserIndex], dict[str, set[str]], list[str]]:
    """Return the indexes and hashes (by project) that requirement files give, and their lines."""
    texts = invocation.values("requirements", "constraints", "overrides", "with-requirements")
    texts += invocation.values("build-constraints")
    if invocation.command in (("pip", "compile"), ("pip", "sync")):
        texts += invocation.operands
    waiting = [place.cwd / text for text in texts if text != "-"]
    seen: set[Path] = set()
    found: list[UserIndex] = []
    hashes: dict[str, set[str]] = {}
    lines: list[str] = []
    while waiting and len(seen) < _MAX_FILES:
        path = waiting.pop(0)
        if path in seen:
            continue
        seen.add(path)
        if path.name == "pyproject.toml":
            listed = project_table(path.parent).get("dependencies")
            lines += _texts(listed) if isinstance(listed, list) else []
            continue
        try:
            text = read_text(path, REQUIREMENTS_BYTES, errors="replace")
        except (OSError, ValueError):
            continue
        for line in re.sub(r"\\\r?\n", " ", text).splitlines():
            match = _REQUIREMENTS_OPTION.match(line)
            if match is None:
                name = name_of(line)
                if name is not None:
                    lines.append(_AFTER.split(line, maxsplit=1)[0])
                if name is not None and (given := _HASH.findall(line)):
                    hashes.setdefault(normalized(name), set()).update(given)
                continue
            option, value = match[1], match[2].strip("'\"")
            if option in ("-r", "--requirement", "-c", "--constraint"):
                waiting.append(path.parent / value)
            else:
                found.append(
                    index_at(
                        value,
                        path.parent,
                        place.environ,
                        default=option in ("-i", "--index-url"),
                        legacy=True,
                        links=option in ("-f", "--find-links"),
                    )
                )
    return found, hashes, lines


def _texts(value: object) -> list[str]:
    items = value if isinstance(value, list) else [value]
    return [item for item in items if isinstance(item, str)]
