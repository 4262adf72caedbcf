"""Whether the installed variant is still the one that would be chosen, in words.

Nothing is decided here: the `Selection` of the installed version is compared with what is there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .explanation import why_not
from .phrases import why_chosen
from .selection import Selection


@dataclass(frozen=True)
class Advice:
    """Another file of the installed version fits this machine better.

    Attributes:
        installed: label of what is installed, None if it is not a variant.
        better: label of what would be chosen today, None for a non-variant file.
        unfit: why the installed variant does not fit any more; empty if it does.
        why: in a few words why the better one fits; empty for the null variant.
    """

    installed: str | None
    better: str | None
    unfit: tuple[str, ...]
    why: str

    def text(self, project: str, version: str, how: str = "installed") -> str:
        """Return it as a sentence about *version* of *project*.

        Args:
            project: normalized name.
            version: of the project.
            how: what was done with what is there, ``installed`` or ``locked``.
        """
        found = "without variant" if self.installed is None else f"as variant {self.installed}"
        better = "the non-variant file" if self.better is None else f"variant {self.better}"
        if self.unfit:
            unfit = "; ".join(self.unfit)
            return (
                f"{project} {version} is {how} {found}, which does not fit this machine "
                f"({unfit}); {better} does"
            )
        reason = f" ({self.why})" if self.why else ""
        return f"{project} {version} is {how} {found}; {better} fits better{reason}"


def advise(selection: Selection[Any], installed: str | None) -> Advice | None:
    """Return what is better than *installed* in the selection of its version, None for nothing.

    A label that nothing is known of any more, and a version whose metadata is broken, are no
    reason for advice.

    Args:
        selection: of all files of the version.
        installed: label of what is installed, None if it is not a variant.
    """
    chosen = selection.chosen
    if chosen is None or not selection.rankings:
        return None
    ranking = selection.rankings.get(chosen.source) or next(iter(selection.rankings.values()))
    best = None if chosen.label is None else ranking.metadata.label_of(chosen.label)
    why = "" if best is None else why_chosen(ranking.supported(best))
    if installed is None:
        return Advice(None, best, (), why) if why else None
    label = ranking.metadata.label_of(installed)
    if label == best or ranking.metadata.properties_of(label) is None:
        return None
    unfit = () if label in ranking.positions else why_not(ranking, label)
    if best is None and not unfit:
        return None
    return Advice(label, best, unfit, why)
