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

from ..upstream.releases import Release
from .offers import Decision, Offer

_Shape: TypeAlias = "tuple[int, tuple[str, ...], tuple[int, ...]]"
"""Identity of the metadata; of each wheel the name after the version; which ones are yanked."""


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
        self._known: dict[_Shape, _Model] = {}

    def decision(self, release: Release) -> Decision:
        """Return the decision on *release*."""
        if not release.has_variants:
            return self._decide(release)
        try:
            metadata = self._metadata(release)
        except VariantError:
            return self._decide(release)
        wheels = release.wheels
        shape = (
            id(metadata),
            tuple([file.filename.split("-", 2)[2] for file in wheels]),
            tuple([place for place, file in enumerate(wheels) if file.yanked is not None]),
        )
        known = self._known.get(shape)
        if known is not None:
            return known.transferred(release)
        found = self._decide(release)
        self._known[shape] = _Model(found, metadata)
        return found


class _Model:
    """The decision on one version, for others of its shape."""

    def __init__(self, decision: Decision, metadata: Metadata) -> None:
        self._decision = decision
        # Its identity is in the shape: it has to live as long.
        self._metadata = metadata
        places = {id(file): place for place, file in enumerate(decision.release.wheels)}
        self._offers = [
            (places[id(offer.file)], plain.split("-", 2)[2], offer)
            for plain, offer in decision.offers.items()
        ]
        self._files = [(places[id(file.item)], file) for file in decision.selection.files]
        self._rejected = [(places[id(file.item)], file) for file in decision.selection.rejected]

    def transferred(self, release: Release) -> Decision:
        """Return the decision on another version of the same shape, with the files of *release*."""
        wheels = release.wheels
        offers = {}
        for place, tail, offer in self._offers:
            ours = wheels[place]
            name, version, _ = ours.filename.split("-", 2)
            own = f"{name}-{version}-{tail}"
            offers[own] = Offer(ours, own, offer.label, offer.context)

        def files(given: list[tuple[int, File[PageFile]]]) -> tuple[File[PageFile], ...]:
            return tuple(
                [File(wheels[place].filename, file.source, wheels[place]) for place, file in given]
            )

        selection = replace(
            self._decision.selection, files=files(self._files), rejected=files(self._rejected)
        )
        return Decision(release, selection, offers, agrees=self._decision.agrees)
