"""Options that name indexes and the catalogue."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import reduce, wraps
from pathlib import Path

import click

from pep_variants import machines, safe_files
from pep_variants import preferences as user_preferences
from variants_catalog import setting

from .._index_urls import read_upstreams
from ..settings import Settings


def named_machine(text: str) -> tuple[str, Path | str]:
    """Return name and machine of *text*, ``NAME=MACHINE``, as in `Settings.platforms`.

    Raises:
        click.UsageError: it has no name.
        PlatformFileError: there is no such file or machine.
    """
    name, equals, machine = text.partition("=")
    if not equals:
        raise click.UsageError(
            f"--platform {text}: expected NAME=MACHINE; known machines need no option"
        )
    machines.load_machine(machine)
    return name, Path(machine).absolute() if machines.names_file(machine) else machine


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
        preferences = user_preferences.preferences_from_options(values)
        settings = Settings(
            read_upstreams(index, find_links, here),
            cache or safe_files.cache_directory(os.environ, "proxy"),
            catalog=setting.checked_catalog(preferences, here),
            catalog_mirrors=preferences.catalog_mirrors,
            allow_missing_sources=allow_missing_sources,
        )
        command(settings=settings, **others)

    return reduce(lambda added, option: option(added), reversed(options), with_settings)
