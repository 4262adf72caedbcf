"""Options of the commands that look at indexes, and what they mean."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from pep_variants.options import OPTIONS
from pep_variants.plugins.sources import BEST_MATCH, FIRST_INDEX

from .arguments import preference_options

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pep_variants.plugins.sources import Sources
    from resolvelib_variants.resolution.requirements import Wishes
    from resolvelib_variants.resolution.resolver import IndexResolver
    from resolvelib_variants.resolution.target import Target

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)

_OPTIONS = (
    click.option("-i", "--index-url", metavar="URL", help="The index. Default: PyPI."),
    click.option(
        "--extra-index-url", "extra_index_urls", metavar="URL", multiple=True,
        help="Another index, asked before the main one; repeatable.",
    ),
    click.option(
        "-f", "--find-links", metavar="PLACE", multiple=True,
        help="Also look at this directory, or page with links; repeatable.",
    ),
    click.option("--no-index", is_flag=True, help="Look at --find-links only."),
    click.option(
        "--index-strategy", type=click.Choice([FIRST_INDEX, BEST_MATCH]), default=FIRST_INDEX,
        show_default=True,
        help="Whether the first index that has a project counts, or all of them together.",
    ),
    click.option("--pre", is_flag=True, help="Take pre-releases as readily as final versions."),
    click.option(
        "--target", "targets", metavar="FILE", type=_FILE, multiple=True,
        help="For the machine in this target or platform file, not this one; repeatable.",
    ),
    click.option("--python-version", metavar="X.Y", help="For this version of Python."),
    click.option(
        "--python-platform", "platforms", metavar="TAG", multiple=True,
        help="For this platform, e.g. linux, macos, windows, manylinux_2_28_x86_64; repeatable.",
    ),
    click.option("--no-cache", is_flag=True, help="Neither read nor write the cache of indexes."),
)  # fmt: skip


class Places(NamedTuple):
    """What the options of `index_options` say.

    Attributes:
        sources: where files come from.
        targets: for which machines, one at least.
        pre: take pre-releases.
        cached: use the cache.
    """

    sources: Sources
    targets: tuple[Target, ...]
    pre: bool
    cached: bool


def index_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for indexes and targets, and all those about variants, to *command*."""
    command = preference_options(*(option.name for option in OPTIONS))(command)
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def places(options: dict[str, Any], wishes: Wishes | None = None) -> Places:
    """Return what the options say, and take them out of *options*.

    Options replace pip's ``PIP_...`` variables, and those replace what requirements files say.
    """
    from pep_variants.plugins.sources import Sources
    from resolvelib_variants.resolution.requirements import Wishes

    wishes = wishes or Wishes()
    environment = Sources.from_environ(os.environ)
    no_index = options.pop("no_index") or environment.no_index or wishes.no_index
    index_url = options.pop("index_url") or environment.index_url or wishes.index_url
    sources = replace(
        environment,
        index_url=index_url,
        extra_index_urls=(
            *options.pop("extra_index_urls"),
            *environment.extra_index_urls,
            *wishes.extra_index_urls,
        ),
        find_links=(
            *options.pop("find_links"),
            *environment.find_links,
            *wishes.find_links,
        ),
        no_index=no_index,
        index_strategy=options.pop("index_strategy"),
    )
    return Places(
        sources,
        _targets(options.pop("targets"), options.pop("python_version"), options.pop("platforms")),
        options.pop("pre") or wishes.pre,
        not options.pop("no_cache"),
    )


def _targets(
    files: Sequence[Path], python_version: str | None, platforms: Sequence[str]
) -> tuple[Target, ...]:
    from resolvelib_variants.resolution.errors import TargetError
    from resolvelib_variants.resolution.target import load_target, make_target

    try:
        if not files:
            return (make_target(python_version=python_version, platforms=platforms),)
        targets = tuple(
            load_target(path, python_version=python_version, platforms=platforms) for path in files
        )
    except TargetError as error:
        raise click.ClickException(str(error)) from None
    names = [target.name for target in targets]
    if len(set(names)) < len(names):
        raise click.ClickException(f"two targets have the same name: {', '.join(names)}")
    return targets


@contextmanager
def resolving(places: Places, values: Mapping[str, Any]) -> Iterator[IndexResolver]:
    """Yield a resolver for *places*; what goes wrong with indexes becomes a message.

    Args:
        places: from `places`.
        values: option values about variants, by name.
    """
    from pep_variants.preferences import load_preferences
    from resolvelib_variants.index.errors import IndexProblem
    from resolvelib_variants.index.eviction import Bounds
    from resolvelib_variants.index.store import Store, default_directory
    from resolvelib_variants.resolution.errors import NoSolution, ResolverError
    from resolvelib_variants.resolution.resolver import IndexResolver

    from ..console import note

    store = None
    if places.cached:
        store = Store(default_directory(os.environ), Bounds.from_environ(os.environ))
    try:
        with IndexResolver(
            places.sources, preferences=load_preferences(values, os.environ), store=store
        ) as resolver:
            yield resolver
    except NoSolution as error:
        raise Unsolved(str(error), error.details) from None
    except (IndexProblem, ResolverError) as error:
        raise click.ClickException(str(error)) from None
    finally:
        if store is not None and store.problem:
            note(f"{store.problem}; going on without it")


class Unsolved(click.ClickException):
    """No solution; the details follow the message, a line each."""

    def __init__(self, message: str, details: Sequence[str]) -> None:
        super().__init__(message)
        self.details = tuple(details)


@contextmanager
def progress() -> Iterator[Callable[[str], None] | None]:
    """Yield what shows a few words on the terminal, each in place of those before."""
    import sys

    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.markup import escape

    from ..console import one_line

    with Console(stderr=True).status("looking at indexes") as status:
        yield lambda text: status.update(escape(one_line(text)))
