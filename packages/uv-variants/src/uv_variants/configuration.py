"""Indexes and settings in uv's configuration files: project, user and system, as uv reads them.

Files are only read, and what is not valid is skipped: uv reports it itself.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pep_variants.files import read_text
from pep_variants.formats import toml
from pep_variants.limits import LOCK_BYTES, PYPROJECT_BYTES, REQUIREMENTS_BYTES

from .indexes import UserIndex, index_at
from .project_names import normalized

_SCRIPT = re.compile(r"(?m)^# /// script\s*$\s(?P<content>(^#(| .*)$\s)+?)^# ///\s*$")
_REQUIREMENTS_OPTION = re.compile(
    r"^\s*(-i|--index-url|--extra-index-url|-f|--find-links|-r|--requirement|-c|--constraint)"
    r"[\s=]+(\S+)"
)
_MAX_FILES = 200

PROXIES = ("http-proxy", "https-proxy")
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
    """

    indexes: tuple[UserIndex, ...] = ()
    pinned: Mapping[str, frozenset[str]] = field(default_factory=dict)
    scalars: Mapping[str, Any] = field(default_factory=dict)

    @property
    def default(self) -> UserIndex | None:
        """The index that replaces PyPI, None without one."""
        return next((index for index in self.indexes if index.default), None)


@dataclass(frozen=True)
class _Table:
    """The settings of one file, and the directory that its paths are relative to."""

    base: Path
    settings: Mapping[str, Any]


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
    if config_file is not None:
        tables += _toml_table(Path(config_file))
    elif not no_config:
        tables += _project(start) if project else []
        for path in (_user_path(environ), _system_path(environ)):
            tables += _toml_table(path) if path is not None else []
    found: list[UserIndex] = []
    scalars: dict[str, Any] = {}
    for table in tables:
        settings = table.settings
        levels = [_table(settings.get("pip")), settings] if pip else [settings]
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
    found += _requirements(requirements, environ)
    # All `index` entries of all files go before `extra-index-url`, and that before `index-url`.
    found.sort(key=lambda index: (index.links, index.legacy, index.legacy and index.default))
    return Configuration(
        tuple(found), {name: frozenset(items) for name, items in pinned.items()}, scalars
    )


def configuration_files(start: Path, environ: Mapping[str, str]) -> list[tuple[str, Path]]:
    """Return the files that uv may read settings from, with what they are; they need not exist.

    Args:
        start: directory from which the project is looked for.
        environ: environment variables.
    """
    found = []
    root = workspace_root(start)
    for folder in (start, *start.parents):
        found += [("project", folder / name) for name in ("uv.toml", "pyproject.toml")]
        if folder == root or (folder / "pyproject.toml").exists():
            break
    named = environ.get("UV_CONFIG_FILE")
    users = [("UV_CONFIG_FILE", Path(named))] if named else []
    for what, path in (("user", _user_path(environ)), ("system", _system_path(environ))):
        users += [(what, path)] if path is not None and not named else []
    return found + users


def workspace_root(start: Path) -> Path | None:
    """Return the directory of the project or workspace around *start*, None without one."""
    nearest: Path | None = None
    for folder in (start, *start.parents):
        tree = _toml(folder / "pyproject.toml")
        if tree is None:
            continue
        nearest = nearest or folder
        if "workspace" in _table(_table(tree.get("tool")).get("uv")):
            return folder
    return nearest


def project_table(root: Path) -> Mapping[str, Any]:
    """Return the table ``[project]`` of the project in *root*, empty without one."""
    tree = _toml(root / "pyproject.toml")
    return _table(tree.get("project")) if tree else {}


def _project(start: Path) -> list[_Table]:
    for folder in (start, *start.parents):
        found = _toml_table(folder / "uv.toml")
        if found:
            return found
        tree = _toml(folder / "pyproject.toml")
        settings = _table(_table(tree.get("tool")).get("uv")) if tree else {}
        if "workspace" in settings or (settings and workspace_root(folder) in (None, folder)):
            return [_Table(folder, settings)]
    return []


def _ancestors_pyprojects(start: Path) -> list[_Table]:
    """Return ``[tool.uv]`` of the project, its workspace and all members."""
    root = workspace_root(start)
    if root is None:
        return []
    folders = dict.fromkeys((start, *start.parents))
    paths = [folder for folder in folders if folder == root or root in folder.parents]
    settings = _uv_settings(root)
    members = _table(settings.get("workspace")).get("members", [])
    for pattern in members if isinstance(members, list) else []:
        if isinstance(pattern, str) and not Path(pattern).is_absolute():
            paths += [path for path in root.glob(pattern) if path.is_dir()]
    tables = []
    for folder in list(dict.fromkeys(paths))[:_MAX_FILES]:
        found = _uv_settings(folder)
        if found:
            tables.append(_Table(folder, found))
    return tables


def _uv_settings(folder: Path) -> Mapping[str, Any]:
    tree = _toml(folder / "pyproject.toml")
    return _table(_table(tree.get("tool")).get("uv")) if tree else {}


def _script(path: Path) -> list[_Table]:
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
    return [_Table(path.absolute().parent, _table(_table(tree.get("tool")).get("uv")))]


def _receipt(path: Path) -> list[_Table]:
    tree = _toml(path)
    options = _table(_table(tree.get("tool")).get("options")) if tree else {}
    return [_Table(path.absolute().parent, options)] if options else []


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
    for project, source in _table(settings.get("sources")).items():
        for each in source if isinstance(source, list) else [source]:
            name = _table(each).get("index")
            if isinstance(name, str):
                yield name, normalized(project)


def _requirements(paths: Iterable[Path], environ: Mapping[str, str]) -> list[UserIndex]:
    """Return the indexes that requirement files name."""
    waiting = list(paths)
    seen: set[Path] = set()
    found: list[UserIndex] = []
    while waiting and len(seen) < _MAX_FILES:
        path = waiting.pop(0)
        if path in seen:
            continue
        seen.add(path)
        try:
            lines = read_text(path, REQUIREMENTS_BYTES, errors="replace").splitlines()
        except (OSError, ValueError):
            continue
        for line in lines:
            match = _REQUIREMENTS_OPTION.match(line)
            if match is None:
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
    return found


def _toml_table(path: Path) -> list[_Table]:
    tree = _toml(path)
    return [] if tree is None else [_Table(path.absolute().parent, tree)]


def _toml(path: Path) -> Mapping[str, Any] | None:
    try:
        # In a checkout it may be a device, which never ends, or a pipe, which uv has to read.
        return toml.loads(read_text(path, PYPROJECT_BYTES))
    except (OSError, ValueError, RecursionError):
        return None


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _texts(value: object) -> list[str]:
    items = value if isinstance(value, list) else [value]
    return [item for item in items if isinstance(item, str)]


def _user_path(environ: Mapping[str, str]) -> Path | None:
    if sys.platform == "win32":
        folder = environ.get("APPDATA")
        return Path(folder, "uv", "uv.toml") if folder else None
    folder = environ.get("XDG_CONFIG_HOME")
    if folder:
        return Path(folder, "uv", "uv.toml")
    home = environ.get("HOME") or os.path.expanduser("~")  # noqa: PTH111
    return Path(home, ".config", "uv", "uv.toml")


def _system_path(environ: Mapping[str, str]) -> Path | None:
    if sys.platform == "win32":
        folder = environ.get("PROGRAMDATA", environ.get("SYSTEMDRIVE", "C:") + "\\ProgramData")
        return Path(folder, "uv", "uv.toml")
    folders = [folder for folder in environ.get("XDG_CONFIG_DIRS", "").split(":") if folder]
    candidates = [Path(folder, "uv", "uv.toml") for folder in folders or ["/etc/xdg"]]
    candidates.append(Path("/etc/uv/uv.toml"))
    return next((path for path in candidates if path.is_file()), None)
