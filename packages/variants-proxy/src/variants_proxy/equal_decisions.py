"""Versions that differ in their number only: one decision is made for all of them.

Projects have hundreds of versions with the same tags, labels and variant metadata. What is decided
for one holds for the others, with their own files.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from pep_variants.choose.selection import File
from pep_variants.errors import VariantError
from pep_variants.model.metadata import Metadata
from variants_index.pages import PageFile

from .offers import Decision, Offer
from .releases import Release

_Shape: TypeAlias = "tuple[int, tuple[tuple[str, bool], ...]]"
"""Identity of the metadata; of each wheel the name after the version, and whether it is yanked."""


class EqualDecisions:
    """Decides once for versions of the same shape."""

    def __init__(
        self, decide: Callable[[Release], Decision], metadata: Callable[[Release], Metadata]
    ) -> None:
        """Set up.

        Args:
            decide: makes the decision on one version from its own files alone.
            metadata: returns the variant metadata of a version, the same object for equal ones.
        """
        self._decide = decide
        self._metadata = metadata
        # With the metadata, whose identity is in the shape: it has to live as long.
        self._known: dict[_Shape, tuple[Decision, Metadata]] = {}

    def decision(self, release: Release) -> Decision:
        """Return the decision on *release*."""
        if not release.has_variants:
            return self._decide(release)
        try:
            metadata = self._metadata(release)
        except VariantError:
            return self._decide(release)
        shape = (
            id(metadata),
            tuple((file.filename.split("-", 2)[2], file.yanked is None) for file in release.wheels),
        )
        known = self._known.get(shape)
        if known is not None:
            return _transferred(known[0], release)
        found = self._decide(release)
        self._known[shape] = found, metadata
        return found


def _transferred(decision: Decision, release: Release) -> Decision:
    """Return *decision*, on another version of the same shape, with the files of *release*."""
    wheels = {
        id(theirs): ours
        for theirs, ours in zip(decision.release.wheels, release.wheels, strict=True)
    }

    def file(theirs: File[PageFile]) -> File[PageFile]:
        ours = wheels[id(theirs.item)]
        return File(ours.filename, theirs.source, ours)

    selection = decision.selection
    offers = {}
    for plain, offer in decision.offers.items():
        ours = wheels[id(offer.file)]
        name, version, _ = ours.filename.split("-", 2)
        own = f"{name}-{version}-{plain.split('-', 2)[2]}"
        offers[own] = Offer(ours, own, offer.label, offer.context)
    return Decision(
        release,
        replace(
            selection,
            files=tuple(map(file, selection.files)),
            rejected=tuple(map(file, selection.rejected)),
        ),
        offers,
        agrees=decision.agrees,
    )
