"""The indexes that uv uses for a command: those of options, variables and files, in uv's order.

uv gets its own arguments, variables and files, so this has to agree with what uv reads: uv uses an
index that is missing here as it is, without variants. Files are only read, and what is not valid is
skipped: uv reports it itself.

uv reads local find-links directories itself, so a lock has their paths. One with variants, which uv
cannot read, has a URL of its own: below `HOST`, which stands for this machine wherever it is asked
for (RFC 6761), and with the path relative to the lock file, if it is inside the project, so that a
lock is the same in every checkout. Files of the lock have hashes, as always.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, unquote

from pep_variants import labels as wheel_labels
from pep_variants import limits, safe_files
from pep_variants import preferences as user_preferences
from pep_variants.preferences import Sources
from variants_index import uv_files
from variants_index.uv_files import UvTable
from variants_proxy import urls as proxy_urls

from ._command_line import Scope
from ._environments import tool_directory
from ._named_projects import (
    local_projects,
    members,
    name_of,
    named_folders,
    normalized,
    sources_of_table,
)

if TYPE_CHECKING:
    from ._command_line import Invocation
    from ._named_projects import CommandPlace


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
        return proxy_urls.upstream_name(
            self.url, self.name, "find-links" if self.links else "simple"
        )

    @property
    def with_login(self) -> str:
        """The URL, with user name and password of the variables."""
        scheme, _, rest = self.url.partition("://")
        if not (self.username or self.password) or "@" in rest.partition("/")[0]:
            return self.url
        return f"{scheme}://{quote(self.username, '')}:{quote(self.password, '')}@{rest}"


def index_at(
    place: str, base: Path, environ: Mapping[str, str], **attributes: str | bool
) -> UserIndex:
    """Return the index at *place*, a URL or a path relative to *base*, with its credentials."""
    url = proxy_urls.absolute_url(place, base)
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


_MAX_FILES = 200

PROXY_VARIABLES = (
    *("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"),
    *("ALL_PROXY", "all_proxy"),
)
PROXIES = ("http-proxy", "https-proxy", "no-proxy")
"""Settings that uv prefers to the variables of the same name."""

SCALARS = ("cache-dir", "no-index", "offline", "keyring-provider", "allow-insecure-host", *PROXIES)
"""Settings other than indexes that are read."""

PIP_SCALARS = ("python", "system", "target", "prefix", "torch-backend", "verify-hashes")
"""Settings of the ``pip`` table that say where ``uv pip`` installs, from where, and what."""


@dataclass(frozen=True)
class Configuration:
    """Settings of configuration files.

    Attributes:
        indexes: in the order in which uv asks them, find-links included.
        pinned: projects with a source that names an index, by the index's name.
        scalars: other settings that are needed here, by key.
        hashes: SHA-256 that requirement files give, by normalized name of the project.
        requirements: lines of requirement and constraint files, without options and comments.
        labels: values of ``--variant`` in their comments.
    """

    indexes: tuple[UserIndex, ...] = ()
    pinned: Mapping[str, frozenset[str]] = field(default_factory=dict)
    scalars: Mapping[str, Any] = field(default_factory=dict)
    hashes: Mapping[str, frozenset[str]] = field(default_factory=dict)
    requirements: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()


def read_configuration(invocation: Invocation, scope: Scope, place: CommandPlace) -> Configuration:
    """Return uv's configuration for *invocation*, which works on *scope* in *place*."""
    environ, start = place.environ, place.project.absolute()
    tables = [UvTable(path, options) for path, options in _receipts(invocation, place)]
    if place.script is not None:
        tree = uv_files.script_tree(place.script) or {}
        tables.append(
            UvTable(place.script, uv_files.table_of(uv_files.table_of(tree.get("tool")).get("uv")))
        )
    folders = [*_workspace(start, scope), *named_folders(invocation, place)]
    own = [*tables, *(each for _, each in local_projects(folders) if each.settings)]
    tables += uv_files.settings_tables(
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
        of_pip = (
            uv_files.table_of(table.settings.get("pip"))
            if invocation.command[:1] == ("pip",)
            else {}
        )
        for level, keys in ((of_pip, SCALARS + PIP_SCALARS), (table.settings, SCALARS)):
            found += _indexes(level, table.base, environ)
            for key in level.keys() & {*keys}:
                scalars.setdefault(key, level[key])
    # Indexes of workspace members and other local projects, and of the project with --no-config,
    # are used only by the sources that name them.
    names = {index.name for index in found}
    pinned: dict[str, set[str]] = {}
    for table in own:
        for project, source in sources_of_table(table.settings):
            if isinstance(name := source.get("index"), str):
                pinned.setdefault(name, set()).add(normalized(project))
        for index in _indexes(table.settings, table.base, environ):
            if index.name and index.name not in names:
                names.add(index.name)
                found.append(replace(index, default=False, explicit=True))
    indexes, hashes, requirements, labels = _requirements(invocation, place)
    found += indexes
    # All `index` entries of all files go before `extra-index-url`, and that before `index-url`.
    found.sort(key=lambda index: (index.links, index.legacy, index.legacy and index.default))
    return Configuration(
        tuple(found),
        {name: frozenset(items) for name, items in pinned.items()},
        scalars,
        {name: frozenset(items) for name, items in hashes.items()},
        tuple(requirements),
        tuple(labels),
    )


def _receipts(
    invocation: Invocation, place: CommandPlace
) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Yield the receipts of tools to upgrade, with the options that they were installed with."""
    if invocation.command != ("tool", "upgrade"):
        return
    folder = tool_directory(place.environ)
    for name in invocation.operands or [path.name for path in folder.glob("*")]:
        path = folder / name / "uv-receipt.toml"
        options = uv_files.table_of(
            uv_files.table_of((uv_files.read_toml(path) or {}).get("tool")).get("options")
        )
        if options:
            yield path, options


def _workspace(start: Path, scope: Scope) -> list[Path]:
    """Return the folders of the project, its workspace and all members; uv has none for tools."""
    root = uv_files.workspace_root(start) if scope is not Scope.TOOL else None
    if root is None:
        return []
    folders = dict.fromkeys((start, *start.parents))
    return [each for each in folders if each == root or root in each.parents] + [*members(root)]


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


def _requirements(
    invocation: Invocation, place: CommandPlace
) -> tuple[list[UserIndex], dict[str, set[str]], list[str], list[str]]:
    """Return the indexes and hashes (by project) that requirement files give, lines and labels."""
    texts = invocation.values("requirements", "constraints", "overrides", "with-requirements")
    texts += invocation.values("build-constraints")
    if invocation.command[:1] in (("pip",), ("tool",)):
        for variable in ("UV_CONSTRAINT", "UV_OVERRIDE", "UV_BUILD_CONSTRAINT"):
            texts += place.environ.get(variable, "").split()
    if invocation.command in (("pip", "compile"), ("pip", "sync")):
        texts += invocation.operands
    if not texts:
        return [], {}, [], []
    option_of = re.compile(
        r"^\s*(-i|--index-url|--extra-index-url|-f|--find-links|-r|--requirement|-c|--constraint)"
        r"[\s=]+(\S+)"
    )
    waiting = [place.cwd / text for text in texts if text != "-"]
    seen: set[Path] = set()
    found: list[UserIndex] = []
    hashes: dict[str, set[str]] = {}
    lines: list[str] = []
    labels: list[str] = []
    while waiting and len(seen) < _MAX_FILES:
        path = waiting.pop(0)
        if path in seen:
            continue
        seen.add(path)
        if path.name == "pyproject.toml":
            listed = uv_files.project_table(path.parent).get("dependencies")
            lines += _texts(listed) if isinstance(listed, list) else []
            continue
        try:
            text = safe_files.read_text(path, limits.REQUIREMENTS_BYTES, errors="replace")
        except (OSError, ValueError):
            continue
        labels += user_preferences.listed_labels(text)
        for line in re.sub(r"\\\r?\n", " ", text).splitlines():
            match = option_of.match(line)
            if match is None:
                name = name_of(line)
                if name is not None:
                    # What may follow on the line: a comment, or options.
                    lines.append(re.split(r"\s(?:#|--)", line, maxsplit=1)[0])
                if name is not None and (
                    given := re.findall(r"\s--hash[=\s]sha256:([0-9a-f]{64})", line)
                ):
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
    return found, hashes, lines, labels


def _texts(value: object) -> list[str]:
    items = value if isinstance(value, list) else [value]
    return [item for item in items if isinstance(item, str)]


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


def sources_of(
    indexes: Iterable[UserIndex],
    strategy: str | None,
    *,
    trusted_hosts: Iterable[str] = (),
    timeout: float | None = None,
) -> Sources:
    """Return *indexes*, the default one last, as settings for getting packages.

    Args:
        indexes: in the order in which uv asks them.
        strategy: uv's index strategy, None for its default.
        trusted_hosts, timeout: see `Sources`.
    """
    indexes = list(indexes)
    urls = [index.with_login for index in indexes if not index.links]
    return Sources(
        urls[-1] if urls else None,
        tuple(urls[:-1]),
        tuple(index.with_login for index in indexes if index.links),
        no_index=not urls,
        index_strategy=strategy or user_preferences.FIRST_INDEX,
        trusted_hosts=tuple(trusted_hosts),
        timeout=timeout,
    )


def used_indexes(invocation: Invocation, scope: Scope, place: CommandPlace) -> UsedIndexes:
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
        listed.append(UserIndex(proxy_urls.PYPI, default=True))  # counts if it is the first default
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


def _given(name: str, invocation: Invocation, place: CommandPlace) -> Iterator[UserIndex]:
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


HOST = "http://find-links.localhost"


def shown_directories(used: UsedIndexes, lock: Path) -> dict[str, UserIndex]:
    """Return the local directories with variants, by `UserIndex.proxy_name`, with their URLs.

    Args:
        used: the indexes of a command.
        lock: path of its lock file.
    """
    return {
        name: replace(index, shown=_url(safe_files.local_path(index.url), lock.absolute().parent))
        for name, index in used.indexes.items()
        if index.links and safe_files.is_local(index.url) and has_variants(index)
    }


def has_variants(index: UserIndex) -> bool:
    """Return whether a local find-links directory has files with a label."""
    try:
        names = [path.name for path in safe_files.local_path(index.url).iterdir()]
    except OSError:
        return False
    return any(
        wheel_labels.split_label(unquote(name))[1] for name in names if name.endswith(".whl")
    )


def link_options(
    invocation: Invocation, place: CommandPlace, shown: Mapping[str, UserIndex]
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
    invocation: Invocation, place: CommandPlace, shown: Mapping[str, UserIndex]
) -> dict[str, str]:
    """Return the variables that change; see `link_options`, which goes before them."""
    if not shown or invocation.values("find-links"):
        return {}
    text = _replaced(place.environ.get("UV_FIND_LINKS", ""), place, shown)
    added = [index.shown for index in shown.values() if index.shown not in text]
    return {"UV_FIND_LINKS": ",".join(filter(None, (text, *added)))}


def _replaced(value: str, place: CommandPlace, shown: Mapping[str, UserIndex]) -> str:
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
    return f"{HOST}/" if text == "." else f"{HOST}/{quote(text)}/"
