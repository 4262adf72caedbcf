"""Names of variants_catalog that only the distributions of this project import.

They may change in any release. `make lint` refuses imports from any other inner module by another
distribution. They are imported on first access, as the public names are.
"""

# ruff: noqa: F403 - for type checkers; __getattr__ gives the names of _NAMES alone

from typing import TYPE_CHECKING

from pep_variants.internal import lazy_name

if TYPE_CHECKING:
    from .checks import *
    from .elsewhere import *
    from .model import *
    from .opening import *
    from .places import *
    from .rewriting import *
    from .same_files import *
    from .store import *

_NAMES = {
    "checks": "Finding check_entries check_file error warning",
    "elsewhere": "is_in_catalog no_variants",
    "model": "CatalogProject CatalogVariant PublishedFile filled platform_kind target",
    "opening": "preferred_catalog",
    "places": "Found Listed PlacePage PlaceReader Unavailable by_host own_place pages_of",
    "rewriting": "Origin added_files installed_metadata read_origin rewritten",
    "same_files": "same_files",
    "store": "Catalog DirectoryCatalog open_catalog write_catalog",
}


def __getattr__(name: str) -> object:
    return lazy_name(__name__, _NAMES, name)
