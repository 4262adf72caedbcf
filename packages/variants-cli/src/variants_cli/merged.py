"""The index-level metadata of one version, put together from its wheels."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pep_variants.errors import InconsistentMetadata, MetadataError
from pep_variants.generation import V0_1_1, V0_2_0
from pep_variants.merging import merge
from pep_variants.writer import write_metadata

from .description import lost_priorities

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pep_variants.metadata import Metadata

    from .wheelhouse import VariantFile


def merge_files(files: Sequence[VariantFile]) -> Metadata:
    """Return the union of *files*, of which there must be one at least.

    Raises:
        InconsistentMetadata: two of them contradict each other; the message names these two.
    """
    merged = files[0].metadata
    for number, file in enumerate(files):
        try:
            merged = merge(merged, file.metadata)
        except InconsistentMetadata:
            # What is merged already has one name for many files: find the one that is meant.
            for earlier in files[:number]:
                merge(earlier.metadata, file.metadata)
            raise
    return merged


def write_merged(files: Sequence[VariantFile]) -> bytes:
    """Return the ``*-variants.json`` of *files*.

    It is written in the newest generation that can say the same: 0.2.0 if there are providers,
    0.1.1 otherwise. Where neither can, it is of the generation that the wheels have.

    Raises:
        InconsistentMetadata: two of them contradict each other.
        MetadataError: no generation can say the same as the wheels of several together.
    """
    merged = merge_files(files)
    lost = lost_priorities(merged)
    if not lost:
        try:
            return write_metadata(merged, V0_2_0 if merged.providers else V0_1_1).encode()
        except MetadataError:
            if not _one_generation(files):
                raise
    elif not _one_generation(files):
        raise MetadataError(
            merged.source,
            lost[0],
            "wheels of several format versions cannot be put together with such priorities",
        )
    return _joined(files)


def _one_generation(files: Sequence[VariantFile]) -> bool:
    return len({file.metadata.schema for file in files}) == 1


def _joined(files: Sequence[VariantFile]) -> bytes:
    # Longest list of namespaces first: what is there already stays.
    ordered = sorted(files, key=lambda file: -len(file.metadata.namespaces))
    tree: dict[str, Any] = {}
    for file in ordered:
        _add(tree, json.loads(file.data))
    tree["variants"] = dict(sorted(tree["variants"].items()))
    return (json.dumps(tree, indent=2) + "\n").encode()


def _add(tree: dict[str, Any], other: dict[str, Any]) -> None:
    for key, value in other.items():
        if isinstance(value, dict) and isinstance(tree.get(key), dict):
            _add(tree[key], value)
        else:
            tree.setdefault(key, value)
