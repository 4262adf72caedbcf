"""Choosing the wheel of a version: variants are judged, ordered and selected (PEP 817)."""

from ._choose.abi import (
    AbiDependency,
    abi_dependencies,
    abi_projects,
    covers,
    is_release,
    supporting,
)
from ._choose.ranking import Ranking, Reason, rank
from ._choose.selection import File, Selection, by_tags, missing_variant, problems_of, select
from ._choose.version_order import (
    Admitted,
    NewestBuild,
    VersionNote,
    advise_over_releases,
    has_accelerator,
    is_accelerated,
    newest_build,
)

__all__ = [
    "AbiDependency", "Admitted", "File", "NewestBuild", "Ranking", "Reason", "Selection",
    "VersionNote", "abi_dependencies", "abi_projects", "advise_over_releases", "by_tags", "covers",
    "has_accelerator", "is_accelerated", "is_release", "missing_variant", "newest_build",
    "problems_of", "rank", "select", "supporting",
]  # fmt: skip
