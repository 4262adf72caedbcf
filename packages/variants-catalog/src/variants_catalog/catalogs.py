"""Catalogues of existing builds, checks of their entries, builds by accelerator, plain lines."""

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
from ._instructions import Instruction, Source, check_line, our_lines, plain_lines, source_of

__all__ = [
    "CPU", "Catalog", "FileCatalog", "Finding", "Instruction", "Source", "UserEntries",
    "accelerator_of", "build_for", "build_versions", "check_entries", "check_file", "check_line",
    "described", "error", "is_accelerator", "is_in_catalog", "judged", "locked_build",
    "missed_here", "no_variants", "not_admitted", "open_catalog", "our_lines", "plain_lines",
    "preferred_catalog", "shipped_catalog", "source_of", "warning", "without_catalog",
    "write_catalog",
]  # fmt: skip
