"""Variants in lock files: their tables, and the packages that a machine installs."""

from ._lock.lock_selection import (
    REQUIREMENTS,
    REQUIRES_DIST,
    TOOL,
    LockChoice,
    Machine,
    select_packages,
    write_table,
)
from ._lock.wheels import KEY, filename_of, labels_of, lists_variants, without_labels

__all__ = [
    "KEY", "REQUIREMENTS", "REQUIRES_DIST", "TOOL", "LockChoice", "Machine", "filename_of",
    "labels_of", "lists_variants", "select_packages", "without_labels", "write_table",
]  # fmt: skip
