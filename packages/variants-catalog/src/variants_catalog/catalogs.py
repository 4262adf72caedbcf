"""Catalogues of existing builds, and the checks of their entries."""

from ._catalogs import (
    Catalog,
    FileCatalog,
    UserEntries,
    is_in_catalog,
    no_variants,
    not_admitted,
    open_catalog,
    preferred_catalog,
    shipped_catalog,
    write_catalog,
)
from ._entry_checks import Finding, check_entries, check_file, error, warning

__all__ = [
    "Catalog", "FileCatalog", "Finding", "UserEntries", "check_entries", "check_file", "error",
    "is_in_catalog", "no_variants", "not_admitted", "open_catalog", "preferred_catalog",
    "shipped_catalog", "warning", "write_catalog",
]  # fmt: skip
