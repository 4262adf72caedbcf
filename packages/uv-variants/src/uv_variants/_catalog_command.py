"""`uv-variants catalog`: turns the catalogue of existing builds on and off, and lists it."""

from __future__ import annotations

import os

import click

from pep_variants import limits
from pep_variants import preferences as user_preferences
from pep_variants.preferences import Sources
from variants_catalog import setting
from variants_index import uv_files
from variants_index.finder import Session
from variants_index.http import PackageIndexError

from ._errors import warn

_HELP = {"help_option_names": ["-h", "--help"]}


@click.group(context_settings=_HELP)
def catalog() -> None:
    """Turn the catalogue of existing builds on or off, or list it.

    It says which build of a project is for which machine: of other indexes, under other names, or
    as extras. None is used before you enable one, as it changes where packages come from.
    """


@catalog.command(context_settings=_HELP)
@click.argument("name", metavar="[FILE|DIR|URL]", default=user_preferences.DEFAULT_CATALOG)
def enable(name: str) -> None:
    """Use a catalogue from now on, by default the one that comes with uv-variants.

    Writes your own variants.toml, which pip with the shim and `variants` read as well.
    """
    for line in setting.enable_catalog(name, fetch_catalog, warn):
        warn(line)


@catalog.command(context_settings=_HELP)
def disable() -> None:
    """Use no catalogue from now on."""
    for line in setting.disable_catalog(warn):
        warn(line)


@catalog.command("list", context_settings=_HELP)
def list_projects() -> None:
    """List the projects of the catalogue that is enabled, else of the default one."""
    found = setting.open_preferred(
        user_preferences.load_preferences({}, os.environ, warn=warn), fetch_catalog
    )
    entries = (entry for name in found.names() if (entry := found.project(name)) is not None)
    rows = [("project", "from", "variants"), *setting.catalog_rows(entries)]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    for name, places, labels in rows:
        click.echo(f"{name:{widths[0]}}  {places:{widths[1]}}  {labels}")


def fetch_catalog(url: str) -> bytes:
    """Return the catalogue at *url*.

    Raises:
        ClickException: it cannot be read.
    """
    try:
        offline = uv_files.is_on(os.environ.get("UV_OFFLINE", ""))
        with Session(Sources.from_environ(os.environ), offline=offline) as session:
            return session.fetch(session.add_index(url), limit=limits.CATALOG_BYTES).body
    except PackageIndexError as problem:
        raise click.ClickException(str(problem)) from None
