"""Options that name indexes and the catalogue, and what commands say of the catalogue."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce, wraps
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

from pep_variants import Preferences, preferences_from_options
from pep_variants.internal import cache_directory
from variants_catalog.internal import Unavailable, by_host, same_files

from ..index_urls import read_upstreams
from ..settings import Settings

if TYPE_CHECKING:
    from packaging.version import Version

    from variants_catalog.internal import Catalog


def named_machine(text: str) -> tuple[str, Path | str]:
    """Return name and machine of *text*, ``NAME=MACHINE``, as in `Settings.platforms`.

    Raises:
        click.UsageError: it has no name.
        PlatformFileError: there is no such file or machine.
    """
    from pep_variants import load_machine
    from pep_variants.internal import names_file

    name, equals, machine = text.partition("=")
    if not equals:
        raise click.UsageError(
            f"--platform {text}: expected NAME=MACHINE; known machines need no option"
        )
    load_machine(machine)
    return name, Path(machine).absolute() if names_file(machine) else machine


def settings_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options for indexes, catalogue and cache to a command, which gets `Settings`."""
    options = (
        click.option(
            "--index",
            multiple=True,
            metavar="[NAME=]URL",
            help="Upstream index, in order of priority; repeatable.  [default: PyPI]",
        ),
        click.option(
            "--find-links",
            multiple=True,
            metavar="[NAME=]URL",
            help="Upstream page or directory with links to files; repeatable.",
        ),
        click.option(
            "--variant-catalog",
            "catalog",
            metavar="NAME|FILE|URL",
            envvar="VARIANTS_PROXY_CATALOG",
            help="Take existing builds as variants, as this catalogue describes them; 'default' is "
            "the one of variants-catalog.",
        ),
        click.option(
            "--variant-catalog-mirror",
            "mirrors",
            multiple=True,
            metavar="FROM=TO",
            envvar="VARIANTS_PROXY_CATALOG_MIRROR",
            help="Take what the catalogue has at URLs that begin with FROM from TO; repeatable.",
        ),
        click.option(
            "--allow-missing-sources",
            is_flag=True,
            envvar="VARIANTS_PROXY_ALLOW_MISSING_SOURCES",
            help="Go on without what upstreams and the catalogue's places do not give for now.",
        ),
        click.option(
            "--cache", type=click.Path(path_type=Path, file_okay=False), help="Cache directory."
        ),
    )

    @wraps(command)
    def with_settings(
        index: Sequence[str],
        find_links: Sequence[str],
        catalog: str | None,
        mirrors: Sequence[str],
        allow_missing_sources: bool,
        cache: Path | None,
        **others: object,
    ) -> None:
        here = Path.cwd()
        values = {"variant-catalog": catalog or None, "variant-catalog-mirror": list(mirrors)}
        preferences = preferences_from_options(values)
        settings = Settings(
            read_upstreams(index, find_links, here),
            cache or cache_directory(os.environ, "proxy"),
            catalog=checked_catalog(preferences, here),
            catalog_mirrors=preferences.catalog_mirrors,
            allow_missing_sources=allow_missing_sources,
        )
        command(settings=settings, **others)

    return reduce(lambda added, option: option(added), reversed(options), with_settings)


def checked_catalog(preferences: Preferences, base: Path) -> str | None:
    """Return the catalogue of *preferences*, a path made absolute; None without one.

    What is on this machine is looked at, so that a mistake in its name ends the command.

    Args:
        preferences: of the user.
        base: directory that a path is relative to.

    Raises:
        CatalogError: it cannot be read.
    """
    name = preferences.catalog
    if name is None or not preferences.use_variants:
        return None
    found = local_catalog(preferences, base)
    return name if found is None else found[0]


def local_catalog(preferences: Preferences, base: Path) -> tuple[str, Catalog] | None:
    """Return the catalogue of *preferences* and its name as `checked_catalog` returns it.

    None without one, and for one at a URL.

    Raises:
        CatalogError: it cannot be read.
    """
    from pep_variants.internal import DEFAULT_CATALOG, is_catalog_path
    from variants_catalog.internal import preferred_catalog

    name = preferences.catalog
    if name is not None and is_catalog_path(name):
        name = str((base / Path(name).expanduser()).absolute())
    elif name != DEFAULT_CATALOG:
        return None
    found = preferred_catalog(replace(preferences, catalog=name), lambda _: b"")
    return None if found is None else (name, found)


def failures(
    reports: Iterable[Mapping[str, Any]],
    asked: Mapping[str, Iterable[Version]] = MappingProxyType({}),
) -> list[str]:
    """Return what cannot be had, one line for each host and reason.

    Args:
        reports: of projects, `Service.decisions`.
        asked: see `by_host`.
    """
    catalogs = [tree for report in reports if (tree := report.get("catalog"))]
    problems = dict.fromkeys(tree["problem"] for tree in catalogs if tree["problem"])
    items = [Unavailable(**item) for tree in catalogs for item in tree["unavailable"]]
    return [*problems, *map(str, by_host(items, asked))]


def excluded(reports: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the projects of which builds are not taken because hashes are given."""
    return [tree["project"] for tree in reports if (tree.get("catalog") or {}).get("excluded")]


def two_names(
    names: Iterable[str], preferences: Preferences, base: Path
) -> Iterator[tuple[str, str]]:
    """Yield projects and publishers' names for their builds that are both among *names*.

    Of a catalogue at a URL nothing is known here.

    Args:
        names: normalized ones.
        preferences: of the user.
        base: directory that the path of a catalogue is relative to.

    Raises:
        CatalogError: the catalogue cannot be read.
    """
    found = local_catalog(preferences, base)
    if found is None:
        return
    catalog, known = found[1], frozenset(names)
    for name, builds in same_files(known.intersection(catalog.names()), known, catalog.project):
        yield from ((name, build) for build in builds)
