"""Why a choice is as it is, what stands in the way of a better one, what it leaves behind."""

from ._choose.explanation import (
    MORE,
    Verdict,
    answered,
    asked,
    notices,
    ranking_tree,
    table_lines,
    verdicts,
    why_chosen,
    why_not,
)
from ._choose.leftovers import repairs, required_by, rivals, unneeded
from ._choose.rejections import (
    Advice,
    choice_line,
    is_unfit,
    nothing_fits,
    passed_over,
    required_by_marker,
    why_not_better,
    why_this,
    why_unfit,
)
from ._decision_log import log_decisions

__all__ = [
    "MORE", "Advice", "Verdict", "answered", "asked", "choice_line", "is_unfit", "log_decisions",
    "nothing_fits", "notices", "passed_over", "ranking_tree", "repairs", "required_by",
    "required_by_marker", "rivals", "table_lines", "unneeded", "verdicts", "why_chosen", "why_not",
    "why_not_better", "why_this", "why_unfit",
]  # fmt: skip
