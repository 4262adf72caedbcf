"""The order in which variant wheels are uploaded where each is visible at once: best first.

An index that shows files while they come, and has the metadata of all of them already, shows half a
release: a machine that takes the newest version gets the build for CUDA 12 until that for CUDA 13
is there. If what a machine prefers comes first, it finds nothing that fits, and so the version
before, or what it gets in the end.
"""

from __future__ import annotations

import heapq
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from pep_variants.choose.abi import supporting
from pep_variants.choose.ranking import rank
from pep_variants.model.platform import Platform, Support

from ..indexing.merged import write_merged
from ..indexing.wheelhouse import VariantFile
from ..pages.machines import read_machines

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pep_variants.model.metadata import Metadata

    from .target import Release


def upload_places(release: Release) -> dict[str, int]:
    """Return the place of each variant wheel of *release* in the order of their uploads.

    By filename; the wheels of one label, for several platforms, have one place.
    """
    wheels = {
        file.filename: file.distribution.variant
        for file in release.files
        if file.distribution.variant is not None
    }
    if not wheels:
        return {}
    document = release.document
    if document is None:  # installers read the wheels
        document = write_merged(list(wheels.values()))
    places = {label: place for place, label in enumerate(_order_of(document))}
    return {
        filename: min((places.get(label, 0) for label in variant.metadata.variants), default=0)
        for filename, variant in wheels.items()
    }


@lru_cache(maxsize=16)
def _order_of(document: bytes) -> tuple[str, ...]:
    return best_first(VariantFile(document, "*-variants.json").metadata)


def best_first(metadata: Metadata) -> tuple[str, ...]:
    """Return the labels of *metadata* so that each machine's best comes before its others.

    The known machines decide, and where they leave it open a machine that supports everything.
    Where two machines contradict each other, one of them is wrong for the time of an upload.
    """
    platforms = [machine.platform for machine in read_machines()]
    everything = Platform(
        {
            namespace: Support({name: values[::-1] for name, values in used.items()})
            for namespace in metadata.namespaces
            if (used := metadata.used_values(namespace))
        }
    )
    ranked = [
        rank(metadata, supporting(platform, metadata)).labels
        for platform in (everything, *platforms)
    ]
    names = dict.fromkeys((*ranked[0], *sorted(metadata.variants)))
    return merged_order(tuple(names), ranked[1:])


def merged_order(names: Sequence[str], sequences: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """Return *names* in the order of all *sequences*, in their own where these leave it open.

    Of names that are in a circle, the first goes ahead.

    Args:
        names: without duplicates.
        sequences: of some of them.
    """
    places = {name: place for place, name in enumerate(names)}
    before: dict[str, set[str]] = {name: set() for name in names}
    after: dict[str, set[str]] = {name: set() for name in names}
    for sequence in sequences:
        for one, other in pairwise(sequence):
            before[other].add(one)
            after[one].add(other)
    waiting = dict.fromkeys(names)
    free = [places[name] for name in names if not before[name]]  # a heap: ascending
    found: list[str] = []
    while waiting:
        name = names[heapq.heappop(free)] if free else next(iter(waiting))
        if name not in waiting:
            continue
        del waiting[name]
        found.append(name)
        for other in after[name]:
            before[other].discard(name)
            if other in waiting and not before[other]:
                heapq.heappush(free, places[other])
    return tuple(found)
