"""The catalogue that the user's preferences name, as they leave it.

Nothing is fetched here: a client passes in what fetches a URL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from pep_variants import Preferences
from pep_variants.internal import DEFAULT_CATALOG, NON_VARIANT_LABEL, is_catalog_path

from .model import CatalogProject
from .store import Catalog, ShippedCatalog, open_catalog, read_catalog


@dataclass(frozen=True)
class PreferredCatalog:
    """A catalogue with the user's mirrors, without projects that take non-variant wheels.

    Attributes:
        catalog: the catalogue itself.
        preferences: of the user.
    """

    catalog: Catalog
    preferences: Preferences
    _read: dict[str, CatalogProject | None] = field(default_factory=dict, compare=False, repr=False)

    def names(self) -> Iterable[str]:
        """Return the normalized names of the projects, ascending."""
        return [name for name in self.catalog.names() if not self._is_left_out(name)]

    def project(self, name: str) -> CatalogProject | None:
        """Return the entry of the project *name* (normalized), None without one.

        Raises:
            CatalogError: it cannot be read.
        """
        if self._is_left_out(name):
            return None
        if name not in self._read:
            found = self.catalog.project(name)
            mirrors = self.preferences.catalog_mirrors
            self._read[name] = None if found is None else found.mirrored(mirrors)
        return self._read[name]

    def _is_left_out(self, name: str) -> bool:
        return self.preferences.forced.get(name) == NON_VARIANT_LABEL


def preferred_catalog(
    preferences: Preferences,
    fetch: Callable[[str], bytes],
    shipped: Catalog | None = None,
) -> Catalog | None:
    """Return the catalogue that *preferences* name, None for none.

    Args:
        preferences: of the user.
        fetch: returns what is at a URL, at most `CATALOG_BYTES`; its errors pass.
        shipped: the catalogue that is called `DEFAULT_CATALOG`; None for that of this package.

    Raises:
        CatalogError: it cannot be read.
    """
    name = preferences.catalog
    if name is None or not preferences.use_variants:
        return None
    if name == DEFAULT_CATALOG:
        catalog = shipped or ShippedCatalog()
    elif is_catalog_path(name):
        catalog = open_catalog(Path(name).expanduser())
    else:
        catalog = read_catalog(fetch(name), name)
    return PreferredCatalog(catalog, preferences)
