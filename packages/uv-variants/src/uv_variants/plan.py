"""The arguments and variables with which uv reads its indexes through the proxy.

Options and variables that name indexes are rewritten in place, and a variable overrides the indexes
of configuration files. So the order of the indexes, their names and the default index are the
user's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import unquote

from pep_variants.urls import is_local, local_path
from variants_proxy.upstream_options import PYPI

from .command_scope import Scope
from .configuration import Configuration, read_configuration
from .indexes import UserIndex, distinct, index_at, named_index_at

if TYPE_CHECKING:
    from .invocation import Given, Invocation
    from .place import Place

_VARIABLES = {
    "default-index": "UV_DEFAULT_INDEX",
    "index": "UV_INDEX",
    "index-url": "UV_INDEX_URL",
    "extra-index-url": "UV_EXTRA_INDEX_URL",
    "find-links": "UV_FIND_LINKS",
}
_SEPARATORS = {"find-links": ","}
_KEPT = ("default-index", "index")
_ONE = ("default-index", "index-url")


@dataclass(frozen=True)
class Plan:
    """The indexes of one command.

    Attributes:
        indexes: all that the proxy serves, by their names in its URLs.
        projects: of the explicit ones among them, by that name.
        configuration: the indexes and settings of files.
    """

    indexes: Mapping[str, UserIndex]
    projects: Mapping[str, frozenset[str]]
    configuration: Configuration
    _given: tuple[tuple[Given, tuple[UserIndex | str, ...]], ...] = ()
    _variables: Mapping[str, tuple[UserIndex | str, ...]] = field(default_factory=dict)
    _added: Mapping[str, tuple[UserIndex, ...]] = field(default_factory=dict)

    @property
    def order(self) -> tuple[str, ...]:
        """The names of the indexes in the order in which uv asks them."""
        indexes = sorted(self.indexes.items(), key=lambda item: (item[1].links, item[1].default))
        return tuple(name for name, _ in indexes)

    @property
    def persistent(self) -> tuple[UserIndex, ...]:
        """The indexes of options and variables that `uv add` writes into the project."""
        values = [items for item, items in self._given if item.name in _KEPT]
        values += [items for name, items in self._variables.items() if name in _KEPT]
        found = (item for items in values for item in items if isinstance(item, UserIndex))
        return tuple(sorted(found, key=lambda index: not index.default))

    def rewritten(
        self,
        invocation: Invocation,
        url: Callable[[UserIndex], str],
        more: Sequence[str] = (),
    ) -> tuple[list[str], dict[str, str]]:
        """Return uv's new arguments, and the variables that change.

        Args:
            invocation: from which the plan was made.
            url: returns the proxy's URL of an index.
            more: further options.
        """

        def text(name: str, items: Iterable[UserIndex | str]) -> str:
            return _SEPARATORS.get(name, " ").join(_spelled(item, name, url) for item in items)

        values = {item.start: text(item.name, items) for item, items in self._given}
        variables = {_VARIABLES[name]: text(name, items) for name, items in self._variables.items()}
        added = list(more)
        used = {item.name for item, _ in self._given}
        for name, items in self._added.items():
            if name in used:
                for item in items:
                    added += [f"--{name}", _spelled(item, name, url)]
            else:
                variable = _VARIABLES[name]
                before = variables.get(variable, "")
                variables[variable] = _SEPARATORS.get(name, " ").join(
                    filter(None, (before, text(name, items)))
                )
        return invocation.rewritten(values, added), variables


def make_plan(invocation: Invocation, scope: Scope, place: Place) -> Plan:
    """Return the plan for *invocation* in *place*."""
    environ = place.environ
    configuration = _configuration(invocation, scope, place)
    given = tuple(
        (item, _read(item.name, item.value, place))
        for item in invocation.given
        if item.name in _VARIABLES
    )
    names = {item.name for item, _ in given}
    variables = {
        name: _read(name, environ[variable], place)
        for name, variable in _VARIABLES.items()
        if name not in names and environ.get(variable, "").strip()
    }
    known = [
        item
        for items in (*(items for _, items in given), *variables.values())
        for item in items
        if isinstance(item, UserIndex)
    ]
    added = _added(configuration, known, names | set(variables), _no_index(invocation, place))
    indexes = distinct([*known, *(index for items in added.values() for index in items)])
    projects = {
        name: configuration.pinned.get(index.name, frozenset())
        for name, index in indexes.items()
        if index.explicit
    }
    return Plan(indexes, projects, configuration, given, variables, added)


def _configuration(invocation: Invocation, scope: Scope, place: Place) -> Configuration:
    script = invocation.last("script")
    if invocation.command == ("run",) and invocation.operands:
        operand = invocation.operands[0]
        script = operand if operand.endswith(".py") or invocation.has("script", "s") else None
    requirements = invocation.values("requirements", "constraints", "overrides")
    requirements += invocation.values("with-requirements", "build-constraints")
    if invocation.command in (("pip", "compile"), ("pip", "sync")):
        requirements += invocation.operands
    return read_configuration(
        start=place.project.absolute(),
        environ=place.environ,
        config_file=invocation.last("config-file") or place.environ.get("UV_CONFIG_FILE") or None,
        no_config=invocation.has("no-config") or place.is_on("UV_NO_CONFIG"),
        project=scope is not Scope.TOOL,
        pip=invocation.command[:1] == ("pip",),
        script=place.cwd / script if script else None,
        requirements=[place.cwd / path for path in requirements if path != "-"],
    )


def _no_index(invocation: Invocation, place: Place) -> bool:
    return invocation.has("no-index") or place.is_on("UV_NO_INDEX")


def _added(
    configuration: Configuration,
    known: Iterable[UserIndex],
    given: Iterable[str],
    no_index: bool,
) -> dict[str, tuple[UserIndex, ...]]:
    """Return the indexes of files, by the option with which uv gets them."""
    names = {index.name for index in known if index.name}
    rest = [
        index
        for index in configuration.indexes
        if (not index.name or index.name not in names) and (not index.links or _may_vary(index))
    ]
    default = configuration.default
    added: dict[str, tuple[UserIndex, ...]] = {}
    given = set(given)
    without = no_index or configuration.scalars.get("no-index") is True
    # In files, `index` takes precedence over `--index-url`, and that over `index-url`.
    overridden = "index-url" in given and (default is None or default.legacy)
    shadowed = default is not None and default.name in names
    if not (without or overridden or shadowed or "default-index" in given):
        added["default-index"] = (default or UserIndex(PYPI, default=True),)
    added["index"] = tuple(
        index for index in rest if not index.links and not index.legacy and index is not default
    )
    added["extra-index-url"] = tuple(
        index for index in rest if not index.links and index.legacy and not index.default
    )
    added["find-links"] = tuple(index for index in rest if index.links)
    return {name: items for name, items in added.items() if items}


def _read(name: str, value: str, place: Place) -> tuple[UserIndex | str, ...]:
    """Return the indexes in the value of an option, and as texts what is left to uv."""
    environ = place.environ
    if name == "find-links":
        found = (index_at(text, place.cwd, environ, links=True) for text in value.split(","))
        texts = value.split(",")
        return tuple(
            index if _may_vary(index) else text for index, text in zip(found, texts, strict=True)
        )
    parts = [value] if name in _ONE else value.split()
    default = name in _ONE
    if name in ("index-url", "extra-index-url"):
        return tuple(
            index_at(part, place.cwd, environ, default=default, legacy=True) for part in parts
        )
    return tuple(named_index_at(part, place.cwd, environ, default=default) for part in parts)


def _may_vary(index: UserIndex) -> bool:
    """Return whether a find-links place may have variants.

    A local one without is left to uv, so that the lock file keeps its path.
    """
    if not is_local(index.url):
        return True
    from pep_variants.model.label import split_label

    try:
        names = [path.name for path in local_path(index.url).iterdir()]
    except OSError:
        return False
    return any(split_label(unquote(name))[1] for name in names if name.endswith(".whl"))


def _spelled(item: UserIndex | str, option: str, url: Callable[[UserIndex], str]) -> str:
    if isinstance(item, str):
        return item
    if item.name and option in ("index", "default-index"):
        return f"{item.name}={url(item)}"
    return url(item)
