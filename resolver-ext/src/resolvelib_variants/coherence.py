"""Coherence: variants that agree, in a namespace, with what is chosen already.

Two files agree in a namespace if they list the same properties there, none at all included; or,
where one of them lists others, if their labels are equal: builds that belong together are labelled
alike, even when one is for fewer GPUs than the other. A file takes part in a namespace if the
metadata of its version prioritizes it, be it a variant or not: a CPU build of torch agrees with a
CPU build of torchvision, and numpy has no say about GPUs.

What is agreed with is the first of: projects of which the user forced a label; what the resolution
has pinned, in the order in which it was required; forced labels of projects that the resolution
has not come to yet, by their label alone; what is installed, by name. Only the order inside a
version changes: a newer version goes before an older one that agrees better.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

from pep_variants import File, Preferences, Selection

from .decision import Decision, file_of
from .interfaces import (
    CandidateFiles,
    Chosen,
    CoherenceListener,
    ExpectedLabels,
    Installed,
    Listener,
    Together,
)

CT = TypeVar("CT")

LABEL = ""
"""In place of a namespace: agreement is that of labels."""


class Agreements(Generic[CT]):
    """Sorts variants by agreement, and remembers what was agreed with."""

    def __init__(
        self,
        files: CandidateFiles[CT],
        preferences: Preferences,
        installed: Installed | None,
        listener: Listener | None,
        *,
        decisions: Mapping[tuple[str, Hashable], Decision[CT]],
        pinned: Callable[[], Iterable[tuple[str, CT]]],
        together: Together | None = None,
    ) -> None:
        """Set up.

        Args:
            files: how candidates name their files.
            preferences: in which namespaces the user wants variants to agree.
            installed: what is installed.
            listener: called where nothing agrees, if it is a `CoherenceListener`.
            decisions: all decisions so far, by project and version.
            pinned: gives project and candidate of all that the resolution has pinned.
            together: which projects should have the same label.
        """
        self._together = together
        self._files = files
        self._preferences = preferences
        self._installed = installed
        self._listener = listener
        self._decisions = decisions
        self._pinned = pinned
        self._installed_variants: tuple[Chosen, ...] | None = None
        # By project and version: namespace or `LABEL`, and what was agreed with.
        self._agreements: dict[tuple[str, Hashable], tuple[str, Chosen]] = {}
        self._disagreements: set[tuple[str, Hashable, str, str]] = set()

    def forget_installed(self) -> None:
        """Ask again what is installed."""
        self._installed_variants = None

    def concerns(self, project: str) -> bool:
        """Return whether variants of *project* are to agree with something."""
        together = self._together
        return bool(self._preferences.coherent) or bool(together and together(project, project))

    def agrees_with(self, project: str, candidate: CT) -> Chosen | None:
        """Return what *candidate* was put in front to agree with, None if it was not."""
        version = self._files.version(candidate)
        decision = self._decisions.get((project, version))
        if decision is None or (project, version) not in self._agreements:
            return None
        namespace, other = self._agreements[project, version]
        own = _as_chosen(project, file_of(self._files, candidate), decision.selection)
        agrees = own.agreement(other, namespace) if namespace else own.label == other.label
        return other if agrees else None

    def sort(
        self,
        project: str,
        version: Hashable,
        files: Sequence[File[CT]],
        kept: Sequence[tuple[int, int]],
        decision: Decision[CT],
    ) -> list[tuple[int, int]]:
        """Return *kept* with the files first that agree with those chosen already.

        Args:
            project: normalized name.
            version: of the files.
            files: of the version.
            kept: place and number of those of them that fit.
            decision: about the version.
        """
        own = {number: _as_chosen(project, files[number], decision.selection) for _, number in kept}
        self._agreements.pop((project, version), None)
        agreements = list(self._same_label(project, version, own))
        for namespace in self._preferences.coherent:
            if not any(item.takes_part(namespace) and item.metadata for item in own.values()):
                continue
            for other in self._anchors(project):
                if not other.takes_part(namespace):
                    continue
                found = {number: own[number].agreement(other, namespace) for number in own}
                if any(found.values()):
                    agreements.append(found)
                    self._agreements.setdefault((project, version), (namespace, other))
                elif other.metadata is None:
                    continue  # a forced label that nothing is known of, perhaps of something else
                else:
                    self._disagree(project, version, namespace, other)
                break
        return sorted(kept, key=lambda item: (*(-found[item[1]] for found in agreements), item))

    def _same_label(
        self, project: str, version: Hashable, own: Mapping[int, Chosen]
    ) -> Iterator[dict[int, int]]:
        """Yield which files have the label of the first project that *project* belongs to."""
        if self._together is None:
            return
        for other in self._anchors(project):
            if not self._together(project, other.project):
                continue
            found = {number: int(item.label == other.label) for number, item in own.items()}
            if any(found.values()):
                self._agreements[project, version] = LABEL, other
                yield found
            else:
                self._disagree(project, version, LABEL, other)
            return
        if isinstance(self._together, ExpectedLabels):
            for labels in self._together.expected_labels(project):
                yield {number: int(item.label in labels) for number, item in own.items()}

    def _anchors(self, project: str) -> Iterator[Chosen]:
        """Yield what *project* may have to agree with, see `coherence`."""
        forced = self._preferences.forced
        pinned: dict[str, Chosen] = {}
        for name, candidate in self._pinned():
            if self._files.filename(candidate) is None:  # installed, see below
                continue
            decision = self._decisions.get((name, self._files.version(candidate)))
            if decision is not None and decision.selection.rankings and name != project:
                pinned[name] = _as_chosen(name, file_of(self._files, candidate), decision.selection)
        unseen = []
        for name, label in forced.items():
            if name == project:
                continue
            for selection in () if name in pinned else self._judged(name):
                if selection.files:
                    yield _as_chosen(name, selection.files[0], selection)
                    break
            else:
                if name in pinned:
                    yield pinned[name]
                elif label:
                    unseen.append(Chosen(name, label, None))
        yield from (chosen for name, chosen in pinned.items() if name not in forced)
        yield from unseen
        if self._installed_variants is None:
            self._installed_variants = tuple(self._read_installed())
        decided = {project, *pinned, *forced}
        yield from (item for item in self._installed_variants if item.project not in decided)

    def _read_installed(self) -> Iterator[Chosen]:
        found = () if self._installed is None else self._installed.variants()
        for name, metadata in sorted(found, key=lambda item: item[0]):
            if len(metadata.variants) == 1:
                yield Chosen.of(name, next(iter(metadata.variants)), metadata)

    def _disagree(self, project: str, version: Hashable, namespace: str, other: Chosen) -> None:
        key = (project, version, namespace, str(other))
        if key not in self._disagreements:
            self._disagreements.add(key)
            if isinstance(self._listener, CoherenceListener):
                self._listener.disagreed(project, version, namespace, other)

    def _judged(self, project: str) -> Iterator[Selection[CT]]:
        return (
            decision.selection for (name, _), decision in self._decisions.items() if name == project
        )


def _as_chosen(project: str, file: File[CT], selection: Selection[CT]) -> Chosen:
    ranking = selection.rankings.get(file.source)
    return Chosen.of(project, file.label, ranking.metadata if ranking else None)
