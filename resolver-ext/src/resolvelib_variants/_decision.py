"""The decision about one version."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import Generic, TypeVar

from pep_variants import selection as wheel_selection
from pep_variants.selection import AbiDependency, File, Selection

from .interfaces import CandidateFiles

CT = TypeVar("CT")


def file_of(
    files: CandidateFiles[CT], candidate: CT, decision: Decision[CT] | None = None
) -> File[CT]:
    """Return the file of *candidate*, the very object of *decision* if that has it."""
    filename = files.filename(candidate)
    if filename is None:
        return File("", "", candidate)
    source = files.source(candidate)
    file = None if decision is None else decision.files.get((filename, source))
    return file or File(filename, source, candidate)


def group_by_version(
    files: CandidateFiles[CT], candidates: Iterable[CT]
) -> Iterator[tuple[Hashable, list[CT]]]:
    """Yield each version with its candidates, reading no further than the first of the next."""
    group: list[CT] = []
    current: Hashable = None
    for candidate in candidates:
        version = files.version(candidate)
        if group and version is not current and version != current:
            yield current, group
            group = []
        current = version
        group.append(candidate)
    if group:
        yield current, group


@dataclass(frozen=True)
class Decision(Generic[CT]):
    """The decision about one version.

    Attributes:
        files: every file that was offered so far, by filename and source.
        selection: the decision about them.
        abi: what was worked out of variants that are built against others, by source and label.
    """

    files: Mapping[tuple[str, str], File[CT]]
    selection: Selection[CT]
    abi: dict[tuple[str, str], tuple[AbiDependency, ...]] = field(default_factory=dict)

    @cached_property
    def places(self) -> Mapping[tuple[str, str | None], int]:
        """Place of the files of a source and label, 0 is the most preferred.

        Equal for what only the client's order of preference tells apart: a label whose sources
        agree, and all non-variant files, as long as nothing comes between them. Files
        that do not fit have none.
        """
        groups: dict[Hashable, int] = {}
        places = {}
        runs = groupby(self.selection.files, key=lambda file: file.label is None)
        for run, (_, files) in enumerate(runs):
            for file in files:
                group: Hashable = run
                if file.label is not None:
                    ranking = self.selection.rankings[file.source]
                    label = ranking.metadata.label_of(file.label)
                    # Null variants are ordered by source, see `select`.
                    who = id(ranking) if ranking.metadata.properties_of(label) else file.source
                    group = (run, who, file.label)
                places[file.source, file.label] = groups.setdefault(group, len(groups))
        return places

    def choice(self, files: Sequence[File[CT]], kept: Iterable[tuple[int, int]]) -> Iterator[int]:
        """Yield the numbers of those of *files* that may be chosen, see `VariantOrdering.arrange`.

        Args:
            files: some files of the version.
            kept: place and number of those that fit, in order of preference.
        """
        chosen: dict[int, tuple[AbiDependency, ...]] = {}
        anything_goes = False  # with one of those that are chosen: all others are covered
        for place, number in kept:
            if place not in chosen:
                if anything_goes:
                    continue
                built_against = self.built_against(files[number])
                if any(
                    wheel_selection.covers(earlier, built_against) for earlier in chosen.values()
                ):
                    continue
                chosen[place] = built_against
                anything_goes = not built_against
            yield number

    def built_against(self, file: File[CT]) -> tuple[AbiDependency, ...]:
        """Return the releases that *file* is built against, empty for a non-variant file."""
        ranking = self.selection.rankings.get(file.source)
        if file.label is None or ranking is None:
            return ()
        key = (file.source, file.label)
        if key not in self.abi:
            label = ranking.metadata.label_of(file.label)
            self.abi[key] = wheel_selection.abi_dependencies(
                ranking.metadata.properties_of(label) or {}
            )
        return self.abi[key]

    def fitting(self, files: Sequence[File[CT]]) -> list[tuple[int, int]]:
        """Return place and number of those of *files* that fit, ordered by place.

        Files that share a place stay in the order in which they came.
        """
        return sorted(
            (place, number)
            for number, file in enumerate(files)
            if (place := self.places.get((file.source, file.label))) is not None
        )
