"""What a resolution tells the user: notices about variants, and progress."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from resolvelib import BaseReporter

from pep_variants.choose.explanation import notices
from pep_variants.choose.selection import Selection
from pep_variants.model.metadata import Metadata
from variants_index.candidate import Candidate

from ..coherence import Chosen


@dataclass
class Notes:
    """`Listener` that collects what the user should know.

    Attributes:
        warnings: in order, each once.
        seen: metadata that decisions were about.
        disagreements: where coherence could not be had, by project and version.
    """

    warnings: dict[str, None] = field(default_factory=dict)
    seen: list[Metadata] = field(default_factory=list)
    disagreements: dict[tuple[str, Hashable], list[str]] = field(default_factory=dict)

    def selected(self, project: str, version: Hashable, selection: Selection[Any]) -> None:
        """Take note of problems, and of plugins that were not run."""
        for problem in selection.problems.values():
            self._add(f"The variant wheels of {project} {version} are ignored. {problem}")
        if selection.unknown:
            self._add(
                f"Variants of {project} {version} that its metadata does not list are ignored: "
                f"{', '.join(selection.unknown)}"
            )
        for ranking in selection.rankings.values():
            self.seen.append(ranking.metadata)
            for notice in notices(ranking):
                if notice.actionable:
                    self._add(notice.text)

    def failed(self, project: str, version: Hashable, error: Exception) -> None:
        """Take note of a fault of this software."""
        self._add(f"The variant wheels of {project} {version} are ignored. {error}")

    def disagreed(self, project: str, version: Hashable, namespace: str, other: Chosen) -> None:
        """Take note that coherence was asked for and could not be had."""
        text = f"No variant of {project} {version} agrees with {other} in {namespace!r}"
        if not namespace:
            text = (
                f"No variant of {project} {version} agrees with {other} in its label: --variant "
                f"{other.project}=LABEL takes one that both have, 'variants explain' lists them"
            )
        self.disagreements.setdefault((project, version), []).append(text)

    def _add(self, text: str) -> None:
        self.warnings.setdefault(text)


if TYPE_CHECKING:
    _Reporter = BaseReporter[Any, Candidate, str]
else:
    _Reporter = BaseReporter  # resolvelib 1.0 has no type parameters at run time


class ProgressReporter(_Reporter):
    """Reports each step of a resolution."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._round = 0

    def starting_round(self, index: int) -> None:
        """Remember the number of the round."""
        self._round = index

    def pinning(self, candidate: Candidate) -> None:
        """Report what is pinned."""
        self._tell(f"step {self._round + 1}: {candidate}")
