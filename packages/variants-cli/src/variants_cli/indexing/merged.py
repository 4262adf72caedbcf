"""The index-level metadata of one version, merged from its wheels."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pep_variants.errors import MetadataError
from pep_variants.formats.merging import merge_all
from pep_variants.formats.writer import write_metadata
from pep_variants.model.generation import V0_1_1, V0_2_0
from pep_variants.model.label import NULL_LABEL, ZERO_LABEL

from ..description import lost_priorities

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .wheelhouse import VariantFile


def write_merged(files: Sequence[VariantFile]) -> bytes:
    """Return the ``*-variants.json`` of *files*.

    It is written in the newest generation that can represent it: 0.2.0 with providers,
    0.1.1 otherwise. If neither can, in the generation of the wheels: also if
    null is spelled ``00000000``, the label in the names of these wheels.

    Raises:
        InconsistentMetadata: two of them contradict each other.
        MetadataError: no generation can represent the metadata of wheels of several generations.
    """
    # Wheels for several Pythons have the same metadata: read it once.
    files = list({file.data: file for file in files}.values())
    merged = merge_all(file.metadata for file in files)
    lost = lost_priorities(merged)
    if any(map(_in_zeros, files)):
        if not _one_generation(files):
            raise MetadataError(
                merged.source,
                f"variants.{ZERO_LABEL}",
                f"wheels of several format versions cannot be merged with this label: make "
                f"its wheels again with the label {NULL_LABEL}",
            )
    elif not lost:
        try:
            return write_metadata(merged, V0_2_0 if merged.providers else V0_1_1).encode()
        except MetadataError:
            if not _one_generation(files):
                raise
    elif not _one_generation(files):
        raise MetadataError(
            merged.source,
            lost[0],
            "wheels of several format versions cannot be merged with "
            "priorities that the current format does not have",
        )
    return _joined(files)


def _in_zeros(file: VariantFile) -> bool:
    """Return whether *file* is of a null variant that is labelled in zeros."""
    return NULL_LABEL in file.metadata.variants and ZERO_LABEL in json.loads(file.data)["variants"]


def _one_generation(files: Sequence[VariantFile]) -> bool:
    return len({file.metadata.schema for file in files}) == 1


def _joined(files: Sequence[VariantFile]) -> bytes:
    # Longest list of namespaces first: existing keys are kept.
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
