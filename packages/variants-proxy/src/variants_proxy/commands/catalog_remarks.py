"""What a client of the proxy says of the catalogue: builds that cannot be had, or are not taken."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pep_variants import Preferences
from variants_catalog.internal import Unavailable, by_host, same_files

from .source_options import local_catalog


def failures(reports: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return what cannot be had, one line for each host and reason.

    Args:
        reports: of projects, `DecisionReport.decisions`.
    """
    catalogs = [tree for report in reports if (tree := report.get("catalog"))]
    problems = dict.fromkeys(tree["problem"] for tree in catalogs if tree["problem"])
    items = [Unavailable(**item) for tree in catalogs for item in tree["unavailable"]]
    return [*problems, *map(str, by_host(items))]


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
