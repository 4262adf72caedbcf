"""Names of variants_catalog that only the distributions of this project import.

They may change in any release. `make lint` refuses imports from any other inner module by another
distribution. They are imported on first access, as the public names are.
"""

# ruff: noqa: F403 - for type checkers; __getattr__ gives the names of _NAMES alone

from typing import TYPE_CHECKING

from pep_variants.internal import lazy_name

if TYPE_CHECKING:
    from .catalogs import *
    from .entries import *
    from .entry_checks import *
    from .installed_builds import *
    from .listings import *
    from .missed_builds import *
    from .recognition import *
    from .setting import *
    from .unfit_builds import *

_NAMES = {
    "catalogs": (
        "Catalog FileCatalog UserEntries is_in_catalog no_variants not_admitted open_catalog "
        "preferred_catalog shipped_catalog write_catalog"
    ),
    "entries": "CatalogProject CatalogVariant PublishedFile filled platform_kind same_files",
    "entry_checks": "Finding check_entries check_file error warning",
    "installed_builds": "Origin added_files installed_metadata read_origin rewritten",
    "listings": "FUTURE Found Listed PlacePage PlaceReader Unavailable by_host own_place pages_of",
    "missed_builds": "MissedBuild Taken line_of_day missed_build missed_builds platform_tags",
    "recognition": "installed_build",
    "setting": (
        "OWN_INDEX catalog_rows checked_catalog disable_catalog enable_catalog local_catalog "
        "open_preferred"
    ),
    "unfit_builds": "unfit_builds",
}


def __getattr__(name: str) -> object:
    return lazy_name(__name__, _NAMES, name)
