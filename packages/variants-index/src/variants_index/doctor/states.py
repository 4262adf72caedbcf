"""What is installed or locked of a project, against what would be chosen now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pep_variants.internal import Advice

from .findings import Problem

_MAX_VERDICTS = 12

UNKNOWN = "not known, no index has this version"
WITHOUT = "the index has no variants of this version"
BEST = "what would be chosen now"


@dataclass(frozen=True)
class State:
    """The state of one project.

    Attributes:
        project: normalized name.
        version: as it is installed or locked.
        label: of its variant, None for none.
        now: label of what would be chosen now, None for a non-variant file or nothing.
        verdict: on what is there, in words.
        fits: whether it fits this machine, None if that is not known.
        advice: what would be better, None for nothing.
        verdicts: on every variant, by source: ``label``, ``verdict`` and ``why``.
        missed: the reason against the variant that is missed most, empty for none.
    """

    project: str
    version: str
    label: str | None
    now: str | None
    verdict: str
    fits: bool | None
    advice: Advice | None = None
    verdicts: Mapping[str, Sequence[Mapping[str, str]]] = field(default_factory=dict)
    missed: str = ""

    @property
    def name(self) -> str:
        """Project and version."""
        return f"{self.project} {self.version}"

    def rows(self) -> Iterator[tuple[str, str]]:
        """Yield it for people, the verdict on every variant after it."""
        text = f"{self.label or '(no variant)'}: {self.verdict}"
        if self.advice is not None:
            text += f"; now {self.advice.better or 'the non-variant file'}"
        yield self.name, text
        for source, rows in self.verdicts.items():
            place = f" on {source}" if len(self.verdicts) > 1 else ""
            for row in rows[:_MAX_VERDICTS]:
                label = row["label"] or "(no variant)"
                yield self.name, f"{label} {row['verdict']}{place}: {row['why']}"
            if len(rows) > _MAX_VERDICTS:
                yield self.name, f"… and {len(rows) - _MAX_VERDICTS} more"

    def as_tree(self, what: str = "installed") -> dict[str, Any]:
        """Return it for JSON, the label under the key *what*."""
        return {
            "project": self.project,
            "version": self.version,
            what: self.label,
            "now": self.now,
            "fits": self.fits,
            "verdict": self.verdict,
            "verdicts": {
                source: [dict(row) for row in rows] for source, rows in self.verdicts.items()
            },
        }


def state_of(
    project: str,
    version: str,
    label: str | None,
    advice: Advice | None,
    now: str | None,
    verdicts: Mapping[str, Sequence[Mapping[str, str]]],
    missed: str = "",
) -> State:
    """Return the state of a version that an index has.

    Args:
        project: normalized name.
        version: of the project.
        label: of what is there, None without a variant.
        advice: what would be better, None for nothing.
        now: label of what would be chosen now.
        verdicts, missed: see `State`; no verdicts if the index has no variants of the version.
    """
    if not verdicts:
        return State(project, version, label, now, WITHOUT, None)
    if advice is None:
        return State(project, version, label, now, BEST, True, None, verdicts, missed)
    verdict = f"another fits better: {advice.why}"
    if advice.unfit:
        verdict = f"does not fit: {'; '.join(advice.unfit)}"
    return State(
        project, version, label, advice.better, verdict, not advice.unfit, advice, verdicts
    )


def state_problem(
    state: State, switch: str, explain: str = "", how: str = "installed"
) -> Problem | None:
    """Return that something else fits better, or a hint why nothing does; None for neither.

    Args:
        state: of the project.
        switch: command that installs or locks what fits.
        explain: command that shows all reasons; without one there is no hint.
        how: what was done with what is there.
    """
    if state.advice is None:
        if not (state.missed and explain):
            return None
        best = f"variant {state.now}" if state.now else "the non-variant file"
        text = f"{state.name}: {best} is the best that fits this machine: {state.missed}"
        return Problem("unfit-variants", text, explain, fails=False)
    text = state.advice.text(state.project, state.version, how)
    if state.advice.unfit:
        return Problem("stale-variant", text, switch)
    # What is locked is a decision, of a team perhaps.
    return Problem("better-variant", text, switch, fails=how == "installed")
