"""The index-level metadata of one version, merged from its wheels."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pep_variants.errors import MetadataError
from pep_variants.formats.merging import merge_all
from pep_variants.formats.writer import write_metadata
from pep_variants.model.generation import V0_1_1, V0_2_0
from pep_variants.model.label import NULL_LABEL, ZERO_LABEL

from ..description import lost_priorities
from .wheelhouse import VariantFile

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pep_variants.model.metadata import Metadata


def write_merged(files: Sequence[VariantFile]) -> bytes:
    """Return the ``*-variants.json`` of *files*.

    It is written in the newest generation that can represent it: 0.2.0 with providers,
    0.1.1 otherwise. If neither can, in the generation of the wheels: also if
    null is spelled ``00000000``, the label in the names of these wheels.

    Raises:
        InconsistentMetadata: two of them contradict each other.
        MetadataError: no generation can represent the metadata of wheels of several generations.
    """
    # Wheels for several Pythons have the same metadata, versions often the same variants.
    return _written(tuple(dict.fromkeys(files)))


@lru_cache(maxsize=500)
def _written(files: tuple[VariantFile, ...]) -> bytes:
    merged = merge_all(file.metadata for file in files)
    lost = lost_priorities(merged)
    if any(map(_in_zeros, files)):
        place = f"variants.{ZERO_LABEL}"
        problem = f"with this label: make its wheels again with the label {NULL_LABEL}"
    elif lost:
        place, problem = lost[0], "with priorities that the current format does not have"
    else:
        try:
            return write_metadata(merged, V0_2_0 if merged.providers else V0_1_1).encode()
        except MetadataError as error:
            place, problem = error.path, f"into the current one: {error.problem}"
    if len({file.metadata.schema for file in files}) > 1:
        message = f"wheels of several format versions cannot be merged {problem}"
        raise MetadataError(merged.source, place, message)
    return _joined(files, merged)


def _in_zeros(file: VariantFile) -> bool:
    """Return whether *file* is of a null variant that is labelled in zeros."""
    return NULL_LABEL in file.metadata.variants and ZERO_LABEL in json.loads(file.data)["variants"]


def same_meaning(first: Metadata, second: Metadata) -> bool:
    """Return whether both say the same, in the same format version."""
    if first != second or first.schema != second.schema:
        return False
    # Mappings are equal in any order; that of static properties is a preference.
    return all(
        list(provider.static or ()) == list(second.providers[namespace].static or ())
        for namespace, provider in first.providers.items()
    )


def without_labels(file: VariantFile, labels: Collection[str]) -> VariantFile | None:
    """Return the document *file* without *labels*, None if it then lists no variant.

    Args:
        file: a ``*-variants.json``.
        labels: as filenames have them.
    """
    left_out = {*labels, *map(file.metadata.label_of, labels)}
    if not left_out & file.metadata.variants.keys():
        return file
    tree = json.loads(file.data)
    tree["variants"] = {
        label: properties
        for label, properties in tree["variants"].items()
        if not {label, file.metadata.label_of(label)} & left_out
    }
    if not tree["variants"]:
        return None
    return VariantFile(json.dumps(tree).encode(), file.source)


def _joined(files: Sequence[VariantFile], merged: Metadata) -> bytes:
    """Return the JSON trees of *files* as one, the same in whatever order they are joined."""
    tree: dict[str, Any] = {}
    for file in files:
        tree = _union(tree, json.loads(file.data))
    joined = VariantFile((json.dumps(_sorted(tree), indent=2) + "\n").encode(), merged.source)
    if not same_meaning(joined.metadata, merged):
        raise MetadataError(
            merged.source,
            "",
            "metadata of this format version cannot be merged without loss: make the wheels "
            "again in the current one",
        )
    return joined.data


def _sorted(value: Any, path: tuple[str, ...] = ()) -> Any:  # noqa: ANN401 - JSON data
    """Return *value* with sorted keys, but for features the order of which is a preference."""
    if not isinstance(value, dict):
        return value
    is_preference = path[:-1] in (("static-properties",), ("default-priorities", "property"))
    keys = value if is_preference else sorted(value)
    return {key: _sorted(value[key], (*path, key)) for key in keys}


def _union(first: object, second: object) -> Any:  # noqa: ANN401 - JSON data
    """Return the union of two trees that do not contradict each other, whichever comes first."""
    if isinstance(first, dict) and isinstance(second, dict):
        longer, shorter = sorted((first, second), key=_rank, reverse=True)
        return {
            key: _union(longer[key], shorter[key]) if key in shorter and key in longer else value
            for key, value in (*longer.items(), *shorter.items())
        }
    # One list of namespaces goes on where the other ends. Equal values may have two spellings.
    return max(first, second, key=_rank)


def _rank(value: object) -> tuple[int, str]:
    return len(value) if isinstance(value, (dict, list)) else 0, json.dumps(value)
