"""Packages of an export whose files their publisher has under another name: cupy is cupy-cuda13x.

uv-variants installs these files under the name of the project. Other installers get them under the
publisher's name, which has the same modules. Where the lock has files of both names, for different
platforms, each name has the marker of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pep_variants.choose.markers import Term, all_of
from variants_proxy.projects.merged_metadata import group_markers

if TYPE_CHECKING:
    from .release import IndexRelease, IndexWheel


@dataclass(frozen=True)
class Part:
    """The files of a package that have one name.

    Attributes:
        name: normalized, that of the publisher; empty for the package's own files.
        version: as published.
        where: environments that they are for.
        wheels: as the publisher has them; none of the package's own files.
    """

    name: str
    version: str
    where: Term | bool
    wheels: Sequence[IndexWheel] = ()

    def marker(self, given: str) -> str:
        """Return the marker in the export, where the package has the marker *given*."""
        both = all_of((Term(given, loose=" or " in given) if given else True, self.where))
        return both.text if isinstance(both, Term) else ""


def parts(
    release: IndexRelease,
    shown: Iterable[tuple[str | None, str]],
    *,
    has_others: bool = False,
    label: str | None = None,
) -> list[Part]:
    """Return the parts of a package, its own files last; none if they all are its own.

    Args:
        release: its version.
        shown: label and plain filename of the wheels that the export has.
        has_others: whether it has files besides, such as a source distribution.
        label: the only one that counts, for an export for one machine; None for all.
    """
    known = {(wheel.label, wheel.plain): wheel for wheel in release.wheels}
    pairs = [(label_, plain) for label_, plain in shown if label is None or label_ == label]
    wheels = [known.get(pair) for pair in pairs]
    origins = [wheel.origin if wheel is not None else "" for wheel in wheels]
    names = list(dict.fromkeys(filter(None, origins)))
    if not names:
        return []
    has_own = has_others or "" in origins
    where: Mapping[str, Term | bool] = {}
    if has_own or len(names) > 1:
        where = group_markers([plain for _, plain in pairs], origins, "") or {}
    found = []
    for name in names:
        own = [wheel for wheel in wheels if wheel is not None and wheel.origin == name]
        version = str(own[0].published).split("-", 2)[1].replace("_", "-")
        found.append(Part(name, version, where.get(name, True), own))
    if has_own and where.get("") is not False:
        found.append(Part("", release.version, where.get("", True)))
    return found
