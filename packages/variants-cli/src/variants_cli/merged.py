"""The index-level metadata of one version, put together from its wheels."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pep_variants.errors import MetadataError
from pep_variants.generation import V0_1_1, V0_2_0
from pep_variants.merging import merge_all
from pep_variants.writer import write_metadata

from .description import lost_priorities

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .wheelhouse import VariantFile


def write_merged(files: Sequence[VariantFile]) -> bytes:
    """Return the ``*-variants.json`` of *files*.

    It is written in the newest generation that can say the same: 0.2.0 if there are providers,
    0.1.1 otherwise. Where neither can, it is of the generation that the wheels have.

    Raises:
        InconsistentMetadata: two of them contradict each other.
        MetadataError: no generation can say the same as the wheels of several together.
    """
    # The same wheel for other Pythons says the same: read it once.
    files = list({file.data: file for file in files}.values())
    merged = merge_all(file.metadata for file in files)
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
