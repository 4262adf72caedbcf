"""Candidate infos: pip's resolver passes them around before it makes candidates of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pip._vendor.packaging.version import Version

from .catalog_links import catalog_link, label_of_link

Info = tuple[Any, Callable[[], Any]]
"""Version, and a partial of the factory's method that makes the candidate of a link."""


class VariantVersion(Version):  # type: ignore[misc] # pip's packaging is not there for mypy
    """A version that differs from the same version with another label.

    pip takes one candidate of each version and skips what compares equal to one it has. Variants
    of one version are different candidates, so that the next is tried where one conflicts. None
    of them is offered beside an installed distribution of that version. So it equals plain
    versions, but not the same version with another label.
    """

    def __init__(self, version: Any, label: str | None) -> None:
        super().__init__(str(version))
        self._label = label

    def __eq__(self, other: object) -> bool:
        if isinstance(other, VariantVersion) and other._label != self._label:
            return False
        return bool(super().__eq__(other))

    __hash__ = Version.__hash__


def link_of(info: Any) -> Any:
    """Return the link of an info or a candidate, None of an installed one."""
    if not isinstance(info, tuple):
        return info.source_link
    return info[1].keywords["link"]


def label_in(info: Any) -> str | None:
    """Return the label of the file of an info, None for a non-variant file."""
    return label_of_link(link_of(info))


def source_of(link: Any) -> str:
    """Return the URL of the page that lists *link*, or the folder of a local file.

    The entry for files that the catalogue describes.
    """
    known = catalog_link(link)
    if known is not None:
        return known.source
    page = link.comes_from
    if page is None:
        return str(link.url_without_fragment).rpartition("/")[0]
    return str(page)
