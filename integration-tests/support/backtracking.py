"""An index on which a resolver has to go back through many versions, with variants and without."""

from __future__ import annotations

from collections.abc import Sequence

from .index import Index
from .wheels import NVIDIA, Release, Wheel, metadata

VERSIONS = 30
LABELS = tuple(f"v{number}" for number in range(8))
WANTED = ("app", "dep<2")
"""What to install: only the oldest of the versions of app goes with this dep."""


def backtracking_index(
    *,
    variants: bool = True,
    core_metadata: bool = True,
    versions: int = VERSIONS,
    accelerated: bool = False,
) -> Index:
    """Return the index.

    Args:
        variants: each version of app has nine wheels, all of which fit and have the same
            dependencies; otherwise one that is no variant.
        core_metadata: the page gives METADATA of each wheel, with its hash (PEP 658, 714).
        versions: how many.
        accelerated: the variants are builds for CUDA 12.
    """
    index = Index(metadata_hashes=True)
    tree = _cuda_tree(LABELS) if accelerated else _tree(LABELS)
    for number in range(1, versions + 1):
        requires = ("dep",) if number == 1 else ("dep>=2",)
        release = Release("app", f"{number}.0", tree, requires)
        if variants:
            index.add_release(release, metadata_file=core_metadata)
        else:
            wheel = Wheel("app", f"{number}.0", requires=requires)
            index.add_wheel(wheel, metadata_file=core_metadata)
    for version in ("1.0", "2.0"):
        index.add_wheel(Wheel("dep", version), metadata_file=core_metadata)
    return index


def _tree(labels: Sequence[str]) -> dict[str, object]:
    provider = {"static-properties": {"f": list(labels)}, "feature-order": ["f"]}
    variants = {"null": {}, **{label: {"n": {"f": [label]}} for label in labels}}
    return metadata(variants, namespaces=["n"], providers={"n": provider})


def _cuda_tree(labels: Sequence[str]) -> dict[str, object]:
    variants = {
        label: {"nvidia": {"cuda_version_lower_bound": [f"12.{number}"]}}
        for number, label in enumerate(labels)
    }
    return metadata({"null": {}, **variants}, namespaces=["nvidia"], providers={"nvidia": NVIDIA})
