"""Catalogues of existing builds, the checks of their entries, builds by accelerator."""

from ._accelerators import (
    CPU,
    accelerator_of,
    build_for,
    build_versions,
    described,
    is_accelerator,
    judged,
    locked_build,
    missed_here,
)
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
    without_catalog,
    write_catalog,
)
from ._entry_checks import Finding, check_entries, check_file, error, warning

__all__ = [
    "CPU", "Catalog", "FileCatalog", "Finding", "UserEntries", "accelerator_of", "build_for",
    "build_versions", "check_entries", "check_file", "described", "error", "is_accelerator",
    "is_in_catalog", "judged", "locked_build", "missed_here", "no_variants", "not_admitted",
    "open_catalog", "preferred_catalog", "shipped_catalog", "warning", "without_catalog",
    "write_catalog",
]  # fmt: skip
