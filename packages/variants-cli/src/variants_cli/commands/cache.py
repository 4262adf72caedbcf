"""`variants cache`: shows and clears the cache of package indexes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from ..console import counted, print_json, print_table
from .arguments import json_option

if TYPE_CHECKING:
    from variants_index.cache.eviction import Usage


@click.command(short_help="Show or clear the cache of package indexes.")
@click.option("--clear", is_flag=True, help="Remove all cached data.")
@json_option
def cache(clear: bool, as_json: bool) -> None:
    """Show or clear the cache of package indexes: pages and metadata, not wheels.

    It never needs clearing: the least recently used entries make room for new ones.
    VARIANTS_CACHE_SIZE (default 1GiB) and VARIANTS_CACHE_DAYS (default 30) say how much is kept and
    for how long, VARIANTS_CACHE_DIR where.
    """
    from pep_variants.cache_directory import cache_directory
    from variants_index.cache.eviction import Bounds, Usage
    from variants_index.cache.store import Store

    store = Store(cache_directory(os.environ, "index"), Bounds.from_environ(os.environ))
    if clear:
        removed = store.clear()
        if as_json:
            print_json({"removed": _tree(removed)})
        else:
            click.echo(f"{counted(removed.records, 'record')} removed, {_megabytes(removed.size)}")
        return
    kinds = store.usage()
    if as_json:
        print_json(
            {
                "path": str(store.root),
                "size-limit": store.bounds.size,
                "days-limit": store.bounds.days,
                "kinds": {kind: _tree(usage) for kind, usage in kinds.items()},
            }
        )
        return
    total = Usage(
        sum(item.records for item in kinds.values()), sum(item.size for item in kinds.values())
    )
    rows = [
        (kind, counted(usage.records, "record"), _megabytes(usage.size))
        for kind, usage in kinds.items()
    ]
    rows.append(("all", counted(total.records, "record"), _megabytes(total.size)))
    rows.append(("at most", f"{store.bounds.days:g} days unused", _megabytes(store.bounds.size)))
    click.echo(store.root)
    print_table(("", "", ""), rows)


def _tree(usage: Usage) -> dict[str, int]:
    return {"records": usage.records, "size": usage.size}


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
