"""Where variants of a project are to be had, if the user's sources have none."""

from __future__ import annotations

from collections.abc import Sequence

from pep_variants import Preferences, VariantError
from pep_variants.internal import DEFAULT_CATALOG, indexes_with

from .opening import preferred_catalog

_MAX_PLACES = 3


def no_variants(
    project: str,
    version: object,
    places: Sequence[str],
    *,
    older: object = None,
    other_platforms: bool = False,
    asked_catalog: bool = False,
) -> str:
    """Say that a version has no variants to choose among, and where some are.

    Args:
        project: normalized project name.
        version: that was looked at.
        places: URLs of the sources that have it.
        older: the newest version there with variants, None without one.
        other_platforms: this version has variants, but no wheel for the target.
        asked_catalog: the user's catalogue was asked already.
    """
    where = f" on {', '.join(places[:_MAX_PLACES])}" if places else ""
    if other_platforms:
        lack = f"{project} {version} has variants{where}, but no wheel of them is for the target"
    else:
        lack = f"{project} {version} has no variants{where}"
    ways = []
    if older is not None:
        ways.append(f"{project}=={older} there has some")
    if not asked_catalog and is_in_catalog(project):
        ways.append(
            f"the catalogue describes builds of it: add --variant-catalog {DEFAULT_CATALOG}"
        )
    others = [url for url in indexes_with(project) if not _has(places, url)]
    if others:
        ways.append(f"indexes with variants of it, for -i: {', '.join(others)}")
    return f"{lack}; {'; '.join(ways)}" if ways else f"{lack}, and none are known elsewhere"


def is_in_catalog(project: str) -> bool:
    """Return whether the catalogue that is called `DEFAULT_CATALOG` describes *project*."""
    try:
        catalog = preferred_catalog(Preferences(catalog=DEFAULT_CATALOG), _no_fetch)
        return catalog is not None and catalog.project(project) is not None
    except VariantError:  # it is not installed, or damaged
        return False


def _no_fetch(url: str) -> bytes:
    raise AssertionError(f"the shipped catalogue is not at a URL, such as {url}")


def _has(places: Sequence[str], index: str) -> bool:
    return any(place.startswith(index) for place in places)
