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
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from pep_variants.selection import File, Selection

from ._decision import Decision, file_of
from ._judging import VersionJudge, logger
from .interfaces import Chosen, CoherenceListener, ExpectedLabels, Together

CT = TypeVar("CT")

LABEL = ""
"""In place of a namespace: agreement is that of labels."""


@dataclass(eq=False)
class Agreements(Generic[CT]):
    """Sorts variants by agreement, and remembers what was agreed with.

    Attributes:
        judge: of the resolution; its preferences say in which namespaces variants should agree.
        together: which projects should have the same label.
        pinned: gives project and candidate of all that the resolution has pinned.
        installed: the installed variants, None before they are asked for.
        agreed: namespace or `LABEL`, and what was agreed with, by project and version.
        disagreed: what the listener was told.
    """

    judge: VersionJudge[CT]
    together: Together | None
    pinned: Callable[[], Iterable[tuple[str, CT]]]
    installed: Sequence[Chosen] | None = None
    agreed: dict[tuple[str, Hashable], tuple[str, Chosen]] = field(default_factory=dict)
    disagreed: set[tuple[str, Hashable, str, str]] = field(default_factory=set)

    def forget_installed(self) -> None:
        """Ask again what is installed."""
        self.installed = None

    def concerns(self, project: str) -> bool:
        """Return whether variants of *project* are to agree with something."""
        together = self.together
        return bool(self.judge.preferences.coherent) or bool(
            together and together(project, project)
        )

    def agrees_with(self, project: str, candidate: CT) -> Chosen | None:
        """Return the file that *candidate* was put in front to agree with, None if it was not."""
        key = (project, self.judge.files.version(candidate))
        decision = self.judge.decisions.get(key)
        if decision is None or key not in self.agreed:
            return None
        namespace, other = self.agreed[key]
        own = _as_chosen(project, file_of(self.judge.files, candidate), decision.selection)
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
        self.agreed.pop((project, version), None)
        agreements = list(self._same_label(project, version, own))
        for namespace in self.judge.preferences.coherent:
            if not any(item.takes_part(namespace) and item.metadata for item in own.values()):
                continue
            for other in self._anchors(project):
                if not other.takes_part(namespace):
                    continue
                scores = {number: own[number].agreement(other, namespace) for number in own}
                if any(scores.values()):
                    agreements.append(scores)
                    self.agreed.setdefault((project, version), (namespace, other))
                elif other.metadata is None:
                    continue  # a forced label that nothing is known of, perhaps of something else
                else:
                    self._disagree(project, version, namespace, other)
                break
        return sorted(kept, key=lambda item: (*(-scores[item[1]] for scores in agreements), item))

    def _same_label(
        self, project: str, version: Hashable, own: Mapping[int, Chosen]
    ) -> Iterator[dict[int, int]]:
        """Yield which files have the label of the first project that *project* belongs to."""
        if self.together is None:
            return
        for other in self._anchors(project):
            if not self.together(project, other.project):
                continue
            scores = {number: int(item.label == other.label) for number, item in own.items()}
            if any(scores.values()):
                self.agreed[project, version] = LABEL, other
                yield scores
            else:
                self._disagree(project, version, LABEL, other)
            return
        if isinstance(self.together, ExpectedLabels):
            for labels in self.together.expected_labels(project):
                yield {number: int(item.label in labels) for number, item in own.items()}

    def _anchors(self, project: str) -> Iterator[Chosen]:
        """Yield what *project* may have to agree with, see `coherence`."""
        files, forced = self.judge.files, self.judge.preferences.forced
        pinned: dict[str, Chosen] = {}
        for name, candidate in self.pinned():
            if files.filename(candidate) is None:  # installed, see below
                continue
            decision = self.judge.decision(name, candidate)
            if decision is not None and decision.selection.rankings and name != project:
                pinned[name] = _as_chosen(name, file_of(files, candidate), decision.selection)
        unseen = []
        for name, label in forced.items():
            if name == project:
                continue
            for _, selection in () if name in pinned else self.judge.selections(name):
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
        if self.installed is None:
            self.installed = tuple(self._read_installed())
        decided = {project, *pinned, *forced}
        yield from (item for item in self.installed if item.project not in decided)

    def _read_installed(self) -> Iterator[Chosen]:
        installed = self.judge.installed
        variants = () if installed is None else installed.variants()
        for name, metadata in sorted(variants, key=lambda item: item[0]):
            if len(metadata.variants) == 1:
                yield Chosen.of(name, next(iter(metadata.variants)), metadata)

    def _disagree(self, project: str, version: Hashable, namespace: str, other: Chosen) -> None:
        key = (project, version, namespace, str(other))
        if key not in self.disagreed:
            self.disagreed.add(key)
            logger.debug("no variant of %s %s agrees with %s", project, version, other)
            if isinstance(self.judge.listener, CoherenceListener):
                self.judge.listener.disagreed(project, version, namespace, other)


def _as_chosen(project: str, file: File[CT], selection: Selection[CT]) -> Chosen:
    ranking = selection.rankings.get(file.source)
    return Chosen.of(project, file.label, ranking.metadata if ranking else None)
