"""Indexes and settings in uv's configuration files: project, user and system, as uv reads them.

Files are only read, and what is not valid is skipped: uv reports it itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pep_variants.files import read_text
from pep_variants.formats import toml
from pep_variants.limits import LOCK_BYTES, REQUIREMENTS_BYTES
from variants_index.uv_files import (
    UvTable,
    project_settings,
    read_toml,
    settings_tables,
    table_of,
    workspace_root,
)

from .indexes import UserIndex, index_at
from .project_names import name_of, normalized

_SCRIPT = re.compile(r"(?m)^# /// script\s*$\s(?P<content>(^#(| .*)$\s)+?)^# ///\s*$")
_REQUIREMENTS_OPTION = re.compile(
    r"^\s*(-i|--index-url|--extra-index-url|-f|--find-links|-r|--requirement|-c|--constraint)"
    r"[\s=]+(\S+)"
)
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
    """

    indexes: tuple[UserIndex, ...] = ()
    pinned: Mapping[str, frozenset[str]] = field(default_factory=dict)
    scalars: Mapping[str, Any] = field(default_factory=dict)
    hashes: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def default(self) -> UserIndex | None:
        """The index that replaces PyPI, None without one."""
        return next((index for index in self.indexes if index.default), None)


def read_configuration(
    *,
    start: Path,
    environ: Mapping[str, str],
    config_file: str | None = None,
    no_config: bool = False,
    project: bool = True,
    pip: bool = False,
    script: Path | None = None,
    requirements: Iterable[Path] = (),
    receipts: Iterable[Path] = (),
) -> Configuration:
    """Return what uv would read.

    Args:
        start: directory from which the project is looked for.
        environ: environment variables.
        config_file: the only file to read, as ``--config-file`` has it.
        no_config: read no file.
        project: read the project's files, which uv does not do for tools.
        pip: the command is one of ``uv pip``, for which the ``pip`` table comes first.
        script: with inline metadata.
        requirements: requirement files, which may name indexes.
        receipts: of tools, with the options that they were installed with.
    """
    tables = [table for path in receipts for table in _receipt(path)]
    if script is not None:
        tables += _script(script)
    own = _ancestors_pyprojects(start) if project else []
    tables += settings_tables(
        start, environ, config_file=config_file, no_config=no_config, project=project
    )
    found: list[UserIndex] = []
    scalars: dict[str, Any] = {}
    for table in tables:
        settings = table.settings
        levels = [table_of(settings.get("pip")), settings] if pip else [settings]
        for level in levels:
            found += _indexes(level, table.base, environ)
        for level in reversed(levels):
            keys = SCALARS + PIP_SCALARS if level is not settings else SCALARS
            for key in keys:
                if key in level:
                    scalars.setdefault(key, level[key])
    # Indexes of workspace members, and of the project with --no-config, are used only by the
    # sources that name them.
    names = {index.name for index in found if index.name}
    pinned: dict[str, set[str]] = {}
    for table in own:
        for name, project_name in _sources(table.settings):
            pinned.setdefault(name, set()).add(project_name)
        for index in _indexes(table.settings, table.base, environ):
            if index.name and index.name not in names:
                names.add(index.name)
                found.append(
                    UserIndex(
                        index.url,
                        index.name,
                        explicit=True,
                        username=index.username,
                        password=index.password,
                    )
                )
    if script is not None:
        for table in tables[:1]:
            for name, project_name in _sources(table.settings):
                pinned.setdefault(name, set()).add(project_name)
    indexes, hashes = _requirements(requirements, environ)
    found += indexes
    # All `index` entries of all files go before `extra-index-url`, and that before `index-url`.
    found.sort(key=lambda index: (index.links, index.legacy, index.legacy and index.default))
    return Configuration(
        tuple(found),
        {name: frozenset(items) for name, items in pinned.items()},
        scalars,
        {name: frozenset(items) for name, items in hashes.items()},
    )


def _ancestors_pyprojects(start: Path) -> list[UvTable]:
    """Return ``[tool.uv]`` of the project, its workspace and all members."""
    root = workspace_root(start)
    if root is None:
        return []
    folders = dict.fromkeys((start, *start.parents))
    paths = [folder for folder in folders if folder == root or root in folder.parents]
    members = table_of(project_settings(root).settings.get("workspace")).get("members", [])
    for pattern in members if isinstance(members, list) else []:
        if isinstance(pattern, str) and not Path(pattern).is_absolute():
            paths += [path for path in root.glob(pattern) if path.is_dir()]
    tables = []
    for folder in list(dict.fromkeys(paths))[:_MAX_FILES]:
        found = project_settings(folder)
        if found.settings:
            tables.append(found)
    return tables


def _script(path: Path) -> list[UvTable]:
    try:
        text = read_text(path, LOCK_BYTES, errors="replace")
    except (OSError, ValueError):
        return []
    match = _SCRIPT.search(text.replace("\r\n", "\n"))
    if match is None:
        return []
    lines = (line[2:] if line.startswith("# ") else line[1:] for line in match[0].splitlines()[1:])
    content = "\n".join(list(lines)[:-1])
    try:
        tree = toml.loads(content)
    except (ValueError, RecursionError):
        return []
    return [UvTable(path, table_of(table_of(tree.get("tool")).get("uv")))]


def _receipt(path: Path) -> list[UvTable]:
    tree = read_toml(path)
    options = table_of(table_of(tree.get("tool")).get("options")) if tree else {}
    return [UvTable(path, options)] if options else []


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


def _sources(settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield index name and project of every source that names an index."""
    for project, source in table_of(settings.get("sources")).items():
        for each in source if isinstance(source, list) else [source]:
            name = table_of(each).get("index")
            if isinstance(name, str):
                yield name, normalized(project)


def _requirements(
    paths: Iterable[Path], environ: Mapping[str, str]
) -> tuple[list[UserIndex], dict[str, set[str]]]:
    """Return the indexes that requirement files name, and the hashes that they give by project."""
    waiting = list(paths)
    seen: set[Path] = set()
    found: list[UserIndex] = []
    hashes: dict[str, set[str]] = {}
    while waiting and len(seen) < _MAX_FILES:
        path = waiting.pop(0)
        if path in seen:
            continue
        seen.add(path)
        try:
            text = read_text(path, REQUIREMENTS_BYTES, errors="replace")
        except (OSError, ValueError):
            continue
        for line in re.sub(r"\\\r?\n", " ", text).splitlines():
            match = _REQUIREMENTS_OPTION.match(line)
            if match is None:
                name = name_of(line)
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
                        environ,
                        default=option in ("-i", "--index-url"),
                        legacy=True,
                        links=option in ("-f", "--find-links"),
                    )
                )
    return found, hashes


def _texts(value: object) -> list[str]:
    items = value if isinstance(value, list) else [value]
    return [item for item in items if isinstance(item, str)]
