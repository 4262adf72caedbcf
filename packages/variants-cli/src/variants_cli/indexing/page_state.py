"""What the owner of a project says of it and its files: yanked files, and the project's status."""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from pep_variants.errors import shortened
from pep_variants.model.label import METADATA_SUFFIX

from .update import UpdateError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from variants_index.pages import Page

STATUSES = ("active", "archived", "deprecated", "quarantined")
"""Statuses that a project can have (PEP 792)."""


def yanked(page: Page, reasons: Mapping[str, str]) -> Page:
    """Return *page* with files yanked (PEP 592): they are chosen only where pinned.

    Args:
        page: of a project.
        reasons: the reason, which may be empty, by filename or shell-style pattern.

    Raises:
        UpdateError: a name or pattern matches no distribution of the project.
    """
    files = {file.filename: file for file in page.files}
    for pattern, reason in reasons.items():
        for name in _matching(page, pattern):
            files[name] = replace(files[name], yanked=reason)
    return replace(page, files=tuple(files.values()))


def unyanked(page: Page, patterns: Iterable[str]) -> Page:
    """Return *page* with files that are not yanked any more.

    Args:
        page: of a project.
        patterns: filenames or shell-style patterns.

    Raises:
        UpdateError: one of them matches no distribution of the project.
    """
    names = {name for pattern in patterns for name in _matching(page, pattern)}
    return replace(
        page,
        files=tuple(
            replace(file, yanked=None) if file.filename in names else file for file in page.files
        ),
    )


def with_status(page: Page, status: str, reason: str | None = None) -> Page:
    """Return *page* with the status of the project (PEP 792).

    Raises:
        UpdateError: it is none of `STATUSES`.
    """
    if status not in STATUSES:
        raise UpdateError(
            f"{shortened(status)} is not the status of a project: {', '.join(STATUSES)}"
        )
    return replace(page, status=status, status_reason=reason or None)


def matches(filename: str, pattern: str) -> bool:
    """Return whether *pattern* is about this distribution: its name, or a shell-style pattern."""
    return not filename.endswith(METADATA_SUFFIX) and (
        filename == pattern or fnmatchcase(filename, pattern)
    )


def _matching(page: Page, pattern: str) -> list[str]:
    found = [file.filename for file in page.files if matches(file.filename, pattern)]
    if not found:
        raise UpdateError(f"{shortened(pattern, 200)}: no file of {page.project} has this name")
    return found
