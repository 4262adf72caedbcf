"""Choosing the wheel of a version, and why (PEP 817).

Variants are judged, ordered and selected. The reasons are for people: why a choice is as it is,
what stands in the way of a better one, what it leaves behind.
"""

from ._choose.abi import (
    AbiDependency,
    AbiMismatch,
    abi_dependencies,
    abi_mismatches,
    abi_projects,
    covers,
    is_release,
    supporting,
)
from ._choose.explanation import (
    MORE,
    Verdict,
    all_needs,
    answered,
    asked,
    needs,
    notices,
    ranking_tree,
    table_lines,
    verdicts,
    why_chosen,
    why_not,
)
from ._choose.leftovers import repairs, required_by, rivals, unneeded
from ._choose.ranking import Ranking, Reason, rank
from ._choose.rejections import (
    Advice,
    choice_line,
    is_built_only,
    is_unfit,
    nothing_fits,
    passed_over,
    required_by_marker,
    why_not_better,
    why_this,
    why_unfit,
)
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
from ._decision_log import log_decisions

__all__ = [
    "MORE", "AbiDependency", "AbiMismatch", "Admitted", "Advice", "File", "NewestBuild", "Ranking",
    "Reason", "Selection", "Verdict", "VersionNote", "abi_dependencies", "abi_mismatches",
    "abi_projects", "advise_over_releases", "all_needs", "answered", "asked", "by_tags",
    "choice_line", "covers", "has_accelerator", "is_accelerated", "is_built_only", "is_release",
    "is_unfit", "log_decisions", "missing_variant", "needs", "newest_build", "nothing_fits",
    "notices", "passed_over", "problems_of", "rank", "ranking_tree", "repairs", "required_by",
    "required_by_marker", "rivals", "select", "supporting", "table_lines", "unneeded", "verdicts",
    "why_chosen", "why_not", "why_not_better", "why_this", "why_unfit",
]  # fmt: skip
