"""Options of the commands that read package indexes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from rich.console import Console
from rich.markup import escape

from pep_variants import preferences as user_preferences
from pep_variants import safe_files
from pep_variants.errors import redacted
from pep_variants.options import OPTIONS
from pep_variants.preferences import Sources
from resolvelib_variants.resolution import IndexResolver, NoSolution, RequirementSet, ResolverError
from variants_index import target as target_machines
from variants_index.finder import Store
from variants_index.http import PackageIndexError, TargetError

from .._console import note, one_line, warn
from .arguments import SharedOption, platform_option, preference_options

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pep_variants.preferences import Preferences
    from variants_index.target import Target

_option = partial(click.option, cls=SharedOption, section="Index options")

_OPTIONS = (
    _option("-i", "--index-url", metavar="URL", help="Base URL of the index. Default: PyPI."),
    _option(
        "--extra-index-url", "extra_index_urls", metavar="URL", multiple=True,
        help="Additional index, searched before the main one; repeatable.",
    ),
    _option(
        "-f", "--find-links", metavar="PLACE", multiple=True,
        help="Additional directory or page with links; repeatable.",
    ),
    _option("--no-index", is_flag=True, help="Ignore indexes, use --find-links only."),
    _option(
        "--index-strategy", default=None,
        type=click.Choice([user_preferences.FIRST_INDEX, user_preferences.BEST_MATCH]),
        help="Use only the first index that has a project, or all indexes together. Default: "
        f"{user_preferences.FIRST_INDEX}; {user_preferences.BEST_MATCH}, as pip does, with indexes "
        "of pip's settings.",
    ),
    _option("--pre", is_flag=True, help="Allow pre-releases."),
    platform_option(
        "targets", several=True,
        help="Machine to choose for instead of this one: a name such as h100-zen4, facts such as "
        "cuda=12.8,sm=9.0,cpu=zen4, or a platform or target file",
    ),
    _option("--python-version", metavar="X.Y", help="Python version to resolve for."),
    _option(
        "--python-platform", "platforms", metavar="TAG", multiple=True,
        help="Platform to resolve for: linux, macos, windows or a platform tag; repeatable.",
    ),
    _option("--no-cache", is_flag=True, help="Disable the cache of package indexes."),
)  # fmt: skip


class Places(NamedTuple):
    """Values of the options of `index_options`.

    Attributes:
        sources: where files come from.
        targets: machines to resolve for, at least one.
        pre: take pre-releases.
        cached: use the cache.
    """

    sources: Sources
    targets: tuple[Target, ...]
    pre: bool
    cached: bool


def index_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for indexes and targets, and all those about variants, to *command*."""
    names = [item.name for item in OPTIONS if not item.installs and item.name != "variant-platform"]
    command = preference_options(*names)(command)
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def places(
    options: dict[str, Any],
    requirement_set: RequirementSet | None = None,
    configured: Mapping[str, str] | None = None,
) -> Places:
    """Remove the options about indexes and targets from *options*; return their values.

    Options replace pip's settings, and those replace what requirements files say.

    Args:
        options: of the command.
        requirement_set: of requirements files.
        configured: pip's settings by name; None for those of ``PIP_...`` variables alone.
    """
    requirement_set = requirement_set or RequirementSet()
    variables = {f"PIP_{name.upper().replace('-', '_')}": text
                 for name, text in (configured or {}).items()}  # fmt: skip
    environment = Sources.from_environ({**os.environ, **variables})
    strategy = (
        user_preferences.BEST_MATCH
        if environment.extra_index_urls
        else user_preferences.FIRST_INDEX
    )

    def first(name: str) -> Any:  # noqa: ANN401
        return options.pop(name) or getattr(environment, name) or getattr(requirement_set, name)

    def together(name: str) -> tuple[str, ...]:
        found = (getattr(environment, name), getattr(requirement_set, name))
        return tuple(chain(options.pop(name), *found))

    sources = replace(
        environment,
        index_url=first("index_url"),
        extra_index_urls=together("extra_index_urls"),
        find_links=together("find_links"),
        no_index=first("no_index"),
        index_strategy=options.pop("index_strategy") or strategy,
    )
    return Places(
        sources,
        _targets(options.pop("targets"), options.pop("python_version"), options.pop("platforms")),
        options.pop("pre") or requirement_set.pre,
        not options.pop("no_cache"),
    )


def repeated_options(options: Mapping[str, Any]) -> list[str]:
    """Return those *options* as pip's, for a command line that finds and chooses the same.

    Passwords in URLs are not shown. Options about another Python are left out.
    """
    names = {"index_url": "--index-url", "extra_index_urls": "--extra-index-url"}
    names |= {"no_index": "--no-index", "find_links": "--find-links", "pre": "--pre"}
    names |= {"targets": "--variant-platform"}
    names |= {
        item.name.replace("-", "_"): f"--{item.name}" for item in OPTIONS if not item.installs
    }
    words = []
    for name, option in names.items():
        value = options.get(name)
        if value is True:
            words.append(option)
        elif value:
            for each in value if isinstance(value, (list, tuple)) else [value]:
                words += [option, redacted(str(each))]
    return words


def _targets(
    machines: Sequence[str], python_version: str | None, platforms: Sequence[str]
) -> tuple[Target, ...]:
    try:
        if not machines:
            return (
                target_machines.make_target(python_version=python_version, platforms=platforms),
            )
        targets = tuple(
            target_machines.read_target(text, python_version=python_version, platforms=platforms)
            for text in machines
        )
    except TargetError as error:
        raise click.ClickException(str(error)) from None
    names = [target.name for target in targets]
    if len(set(names)) < len(names):
        raise click.ClickException(f"two targets have the same name: {', '.join(names)}")
    return targets


@contextmanager
def resolving(
    places: Places, values: Mapping[str, Any], preferences: Preferences | None = None
) -> Iterator[IndexResolver]:
    """Yield a resolver for *places*; errors of indexes become messages.

    Args:
        places: from `places`.
        values: option values about variants, by name.
        preferences: in place of those that *values* and files have.
    """
    preferences = preferences or user_preferences.load_preferences(values, os.environ, warn=warn)
    store = None
    if places.cached:
        store = Store(safe_files.cache_directory(os.environ, "index"))
    try:
        with IndexResolver(places.sources, preferences=preferences, store=store) as resolver:
            yield resolver
    except NoSolution as error:
        raise Unsolved(str(error), error.details) from None
    except (PackageIndexError, ResolverError) as error:
        raise click.ClickException(str(error)) from None
    finally:
        if store is not None and store.problem:
            note(f"{store.problem}; continuing without a cache")


class Unsolved(click.ClickException):
    """No solution; the details follow the message, a line each."""

    def __init__(self, message: str, details: Sequence[str]) -> None:
        super().__init__(message)
        self.details = tuple(details)


@contextmanager
def progress(first: str = "looking at indexes") -> Iterator[Callable[[str], None] | None]:
    """Yield a function that shows a status text on the terminal, replacing the last one."""
    if not sys.stderr.isatty():
        yield None
        return
    with Console(stderr=True).status(first) as status:
        yield lambda text: status.update(escape(one_line(text)))
