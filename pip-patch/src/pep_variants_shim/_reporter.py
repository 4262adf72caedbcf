"""The lines about variants that pip prints while it resolves.

The sentences are the engine's (`pep_variants._choose`), the same in every client.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from pip._internal.utils.logging import indent_log

from pep_variants import metadata as variant_metadata
from pep_variants import selection as wheel_selection
from pep_variants.metadata import Metadata
from pep_variants.selection import File, Ranking, Selection
from resolvelib_variants.interfaces import Chosen
from resolvelib_variants.ordering import VariantOrdering

from ._errors import logger
from ._links import Info, catalog_link, filename_of, label_of_link, link_of, source_of

if TYPE_CHECKING:
    from pep_variants.lock_entries import GroupChoice, LockChoice

VERBOSE = 15
"""pip's own level between INFO and DEBUG, shown with ``-v``."""


class VariantReporter:
    """Prints each line once, although pip asks for the same candidates again and again.

    Attributes:
        seen: metadata of all versions that were considered.
        lacking: lines about what cannot be had for now.
        is_muted: choices are not printed, as they may be given up.
    """

    def __init__(self) -> None:
        self.seen: list[Metadata] = []
        self.lacking: list[str] = []
        self.is_muted = False
        self._printed: set[str] = set()
        self._hinted = False
        self._told: dict[str, str] = {}

    # `resolvelib_variants.interfaces.Listener` and `CoherenceListener`.

    def selected(self, project: str, version: Hashable, selection: Selection[Any]) -> None:
        """Print problems as warnings, notices once, and the table of variants with ``-v``."""
        for problem in wheel_selection.problems_of(project, version, selection):
            self._print(logging.WARNING, problem)
            if any(each.may_pass for each in selection.problems.values()):
                self.lacking.append(problem)
        self.seen += (ranking.metadata for ranking in selection.rankings.values())
        for ranking in selection.distinct_rankings.values():
            with indent_log():
                self._ranking(project, version, ranking, selection)

    def disagreed(self, project: str, version: Hashable, namespace: str, other: Chosen) -> None:
        """Warn that no variant has the values of *other* in *namespace*, or its label."""
        where = f"in {namespace!r}" if namespace else "in its label"
        line = f"No variant of {project} {version} agrees with {other} {where}"
        self._print(logging.WARNING, line)

    def failed(self, project: str, version: Hashable, error: Exception) -> None:  # noqa: ARG002
        """Raise *error*: `guard` decides what an internal error costs.

        Raises:
            Exception: always.
        """
        raise error

    def chosen(self, ordering: VariantOrdering[Info], project: str, info: Info) -> None:
        """Print which variant was chosen and why, and the better one that does not fit."""
        selection = ordering.selection(project, info)
        if selection is None or self.is_muted:
            return
        link = link_of(info)
        self._told[project] = link.url
        name, source = filename_of(link), source_of(link)
        found = (item for item in selection.files if (item.filename, item.source) == (name, source))
        file = next(found, File(name, source, info))
        known, version = catalog_link(link), str(info[0])
        if known is not None and known.file.origin:
            version += f" (published as {known.file.origin})"
        line = wheel_selection.choice_line(
            selection, file, project, version, ordering.agrees_with(project, info)
        )
        missed = (
            bool(line)
            and not ordering.forces(project)
            and bool(wheel_selection.why_not_better(selection, file))
        )
        if missed and line not in self._printed and not self._hinted:
            self._hinted = True
            self._printed.add(line)
            line += wheel_selection.MORE.format(project)
        with indent_log():
            self._print(logging.INFO, line)
            if known is not None:
                where = f"{known.place} (catalogue: {known.entry.documentation})"
                self._print(VERBOSE, f"Variant {known.file.label} of {project} is from {where}")

    def tell_taken(self, project: str, version: object, link: Any) -> None:
        """Print which file is taken in place of what was chosen: one that is asked for by URL."""
        if link is not None and self._told.get(project, link.url) != link.url:
            label = label_of_link(link)
            taken = f"Variant {label} for {project} {version}" if label else f"{project} {version}"
            self._print(logging.INFO, f"{taken}: the file that is asked for, {link.filename}")

    def grouped(self, choice: GroupChoice) -> None:
        """Print which dependency group of a lock file was chosen and why."""
        level = logging.WARNING if choice.unfit else logging.INFO
        self._print(level, f"From the lock file: {choice}")

    def locked(self, choice: LockChoice) -> None:
        """Print which variant of a lock file was chosen and why."""
        self.selected(choice.name, choice.version, choice.selection)
        if choice.wheel is not None and choice.metadata is not None:
            why = choice.selection.why(choice.selection.files[0])
            line = f"Variant {choice.label} for {choice.name} {choice.version}"
            self._print(logging.INFO, f"{line}: {why}" if why else line)

    def _ranking(
        self, project: str, version: Hashable, ranking: Ranking, selection: Selection[Any]
    ) -> None:
        for notice in wheel_selection.notices(ranking):
            self._print(logging.INFO if notice.actionable else VERBOSE, notice.text)
        if not logger.isEnabledFor(VERBOSE):
            return
        chosen = selection.chosen.label if selection.chosen else None
        logger.log(VERBOSE, "Variants of %s %s:", project, version)
        with indent_log():
            rows = wheel_selection.verdicts(ranking, chosen)
            needs = ranking.metadata.properties_of(chosen or "") or {}
            for line in wheel_selection.table_lines(rows, variant_metadata.iter_properties(needs)):
                logger.log(VERBOSE, "%s", line)

    def _print(self, level: int, line: str) -> None:
        if line and line not in self._printed:
            self._printed.add(line)
            logger.log(level, "%s", line)
