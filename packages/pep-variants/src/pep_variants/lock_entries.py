"""Variants in lock files: their tables, and the packages that a machine installs."""

from ._lock.groups import GroupChoice, choose_group, write_groups
from ._lock.lock_selection import (
    REQUIREMENTS,
    REQUIRES_DIST,
    LockChoice,
    LockSelection,
    Machine,
    build_table,
    select_packages,
    write_table,
)
from ._lock.wheels import (
    KEY,
    TOOL,
    filename_of,
    has_groups,
    labels_of,
    lists_variants,
    without_labels,
)

__all__ = [
    "KEY", "REQUIREMENTS", "REQUIRES_DIST", "TOOL", "GroupChoice", "LockChoice", "LockSelection",
    "Machine", "build_table", "choose_group", "filename_of", "has_groups", "labels_of",
    "lists_variants", "select_packages", "without_labels", "write_groups", "write_table",
]  # fmt: skip
