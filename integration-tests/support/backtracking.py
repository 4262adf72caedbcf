"""An index on which a resolver has to go back through many versions, with variants and without."""

from __future__ import annotations

from .index import Index
from .wheels import NVIDIA, Release, Wheel, metadata

VERSIONS = 30
WANTED = ("app", "dep<2")
"""What to install: only the oldest of the versions of app goes with this dep."""


def backtracking_index(
    *,
    variants: bool = True,
    core_metadata: bool = True,
) -> Index:
    """Return the index.

    Args:
        variants: each version of app has nine wheels, builds for CUDA 12 and the null variant, with
            the same dependencies; otherwise one that is no variant.
        core_metadata: the page gives METADATA of each wheel, with its hash (PEP 658, 714).
    """
    index = Index(metadata_hashes=True)
    variants_of = {
        f"v{number}": {"nvidia": {"cuda_version_lower_bound": [f"12.{number}"]}}
        for number in range(8)
    }
    tree = metadata(
        {"null": {}, **variants_of}, namespaces=["nvidia"], providers={"nvidia": NVIDIA}
    )
    for number in range(1, VERSIONS + 1):
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
