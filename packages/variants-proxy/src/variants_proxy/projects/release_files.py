"""The files of one version with variants, as JSON data: what a lock or export lists of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from functools import partial
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement

from pep_variants import Metadata, VariantError, split_label
from pep_variants.internal import iter_fields, metadata_terms, read_version, reduce_metadata
from variants_index import PageFile

from ..choice.choice import own_context
from ..choice.offers import Offer
from ..choice.views import ProjectView
from ..errors import UpstreamError
from ..settings import Limits
from ..upstream.catalog_files import CatalogFile, is_rewritten, published
from ..upstream.release_metadata import ReleaseMetadata
from ..upstream.releases import Release, wheel_version
from ..upstream.single_flight import gather_limited
from ..upstream.upstreams import Upstreams
from ..upstream.wheel_metadata import CoreMetadata
from ..wheels.wheel_preparation import WheelPreparation


class ReleaseFiles:
    """Describes the files of versions."""

    def __init__(
        self,
        upstreams: Upstreams,
        metadata: ReleaseMetadata,
        core_metadata: CoreMetadata,
        preparation: WheelPreparation,
        limits: Limits,
    ) -> None:
        self._upstreams = upstreams
        self._metadata = metadata
        self._core_metadata = core_metadata
        self._preparation = preparation
        self._limits = limits

    async def of(
        self, shown: ProjectView, version: str, tags: Collection[str], *, served: bool
    ) -> dict[str, Any]:
        """Return the wheels of a version with variants, and its variant metadata, as JSON data.

        ``documents`` is the metadata as the index has it (see `write_table`), ``wheels`` a list
        of ``filename``, ``label``, ``url``, ``hashes``, ``size``, ``upload-time`` and:

        - ``requires``: digest of what it depends on, null if its metadata cannot be read;
        - ``marked``: whether it has variant markers, or dependencies or a name that the catalogue
          gives it, so that this proxy rewrites it;
        - ``served``: the SHA-256 of it as this proxy rewrites it, null if that is not known;
        - ``published``: its own name where the label is the catalogue's, else null.

        A version without variants has no documents, and only its wheels with variant markers.
        Publishers' files of another version (``2.9.0+cu128``) are not listed.

        Args:
            shown: one project.
            version: any spelling.
            tags: python and ABI tags (``cp313-cp313``) of the wheels that are listed; empty for
                all.
            served: compute the hashes of rewritten wheels, which may take downloading them.

        Raises:
            VariantError: the variant metadata is broken, or cannot be fetched.
            UpstreamError: the same of wheels.
        """
        release = _release(shown, version)
        metadata = Metadata()
        documents: tuple[bytes, ...] = ()
        if release is not None:
            metadata, documents = await self._metadata.documents(shown.upstream, release)
        wheels = [
            file
            for file in (_wheels(shown, version) if release is None else release.wheels)
            if _is_of(file, version) and (not tags or _python_tags(file.filename) in tags)
        ]
        entries = await gather_limited(
            [partial(self._entry, shown, file, metadata, served=served) for file in wheels],
            self._limits.parallel,
        )
        return {"documents": [json.loads(text) for text in documents], "wheels": entries}

    async def _entry(
        self, shown: ProjectView, file: PageFile, metadata: Metadata, *, served: bool
    ) -> dict[str, Any]:
        plain, label = split_label(file.filename)
        context = own_context(label or "", metadata)
        entry: dict[str, Any] = {
            "filename": file.filename,
            "plain": plain,
            "label": label,
            "url": file.url,
            "hashes": dict(file.hashes),
            "size": file.size,
            "upload-time": file.upload_time,
            "requires": None,
            "marked": False,
            "served": None,
            "published": file.original.filename
            if isinstance(file, CatalogFile) and file.known is not None
            else None,
        }
        try:
            core = await self._core_metadata.read(shown.upstream, file)
            reduced, is_marked = await self._upstreams.budget(shown.upstream).compute(
                lambda: (
                    reduce_metadata(core, context),
                    is_rewritten(file) or bool(metadata_terms(core)),
                )
            )
        except (UpstreamError, VariantError):
            return entry
        entry["requires"] = hashlib.sha256("\n".join(_requires(reduced)).encode()).hexdigest()
        entry["marked"] = is_marked
        if is_marked:
            offer = Offer(file, plain, label, context)
            digest = await self._preparation.announced(shown.upstream, offer, reduced, ahead=served)
            entry["served"] = None if digest is None else digest.sha256
        return entry


def _release(shown: ProjectView, version: str) -> Release | None:
    wanted = read_version(version)
    decisions = shown.choice.decisions if shown.choice is not None else ()
    for decision in decisions:
        if decision.release.version == wanted and decision.release.has_variants:
            return decision.release
    return None


def _wheels(shown: ProjectView, version: str) -> list[PageFile]:
    """Return the wheels with variant markers of a version without variants."""
    wanted = read_version(version)
    offers = shown.choice.offers if shown.choice is not None else ()
    return [
        offer.file
        for offer in offers
        if offer.context is not None and wheel_version(offer.filename) == wanted
    ]


def _is_of(file: PageFile, version: str) -> bool:
    """Return whether a file of a release can be had as a file of *version*."""
    own = published(file)
    return own is None or wheel_version(own.original.filename) == read_version(version)


def _requires(metadata: bytes) -> list[str]:
    """Return the dependencies in *metadata*, the same for the same ones however spelled."""
    found = []
    for field in iter_fields(metadata):
        if field.name == "requires-dist":
            try:
                found.append(str(Requirement(field.value)))
            except (InvalidRequirement, ValueError):  # an installer will report it
                found.append(field.value)
    return sorted(found)


def _python_tags(filename: str) -> str:
    """Return python and ABI tag of a wheel."""
    plain, _ = split_label(filename)
    return "-".join(plain.removesuffix(".whl").split("-")[-3:-1])
