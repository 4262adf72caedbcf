"""Variant filtering and ordering of a stream of candidates, version by version.

This is the part that every resolver shares, whatever its candidates are: objects of a resolvelib
provider (see `provider`) or pip's not yet built candidate infos. It asks for metadata only when a
version with variant wheels is really looked at, and decides about a version once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import is_
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from pep_variants.abi import AbiDependency, abi_dependencies, abi_projects, supporting
from pep_variants.errors import NoSuchVariant
from pep_variants.markers import NON_VARIANT, VariantContext
from pep_variants.metadata import Metadata
from pep_variants.platform import Platform
from pep_variants.preferences import Preferences
from pep_variants.selection import File, Selection, missing_variant, select

from .coherence import Chosen, Installed

logger = logging.getLogger(__name__)

CT = TypeVar("CT")
CT_contra = TypeVar("CT_contra", contravariant=True)


class CandidateFiles(Protocol[CT_contra]):
    """How candidates name their file and where metadata beside it comes from.

    All but `metadata` are asked often and must be cheap.
    """

    def version(self, candidate: CT_contra) -> Hashable:
        """Return the version; candidates of one version come one after the other."""
        ...

    def filename(self, candidate: CT_contra) -> str | None:
        """Return the filename, None for what is no file (installed, editable)."""
        ...

    def source(self, candidate: CT_contra) -> str:
        """Return the index page or directory that lists the file; only asked when there is one."""
        ...

    def metadata(self, project: str, candidate: CT_contra) -> Metadata:
        """Return the variant metadata that lies beside the file of *candidate*.

        Called at most once per version and source. The hash the index gives for the metadata is
        verified by the implementation.

        Raises:
            VariantError: there is none, it cannot be had, or it is broken.
        """
        ...


class Listener(Protocol):
    """Hears what was decided; how to tell people is the client's business."""

    def selected(self, project: str, version: Hashable, selection: Selection[Any]) -> None:
        """Take note of the selection of one version with variants.

        Once per version, and again if files of it turn up that were not offered before.
        """
        ...

    def failed(self, project: str, version: Hashable, error: Exception) -> None:
        """Take note of a fault of this software, which costs the version its variants."""
        ...


@runtime_checkable
class CoherenceListener(Protocol):
    """What a `Listener` may be besides, to hear where coherence could not be had."""

    def disagreed(self, project: str, version: Hashable, namespace: str, other: Chosen) -> None:
        """Take note that no file of a version agrees with *other*, as the user wished it to.

        Once for each of them. The resolution may still come to another version.
        """
        ...


class Arranger(Generic[CT]):
    """Arranges the candidates of one resolution and remembers every decision.

    Make one per resolution. What is decided about a version holds for every subset of its files:
    a resolver that leaves out what it found to conflict sees the rest in the same order.

    Attributes:
        missing: for projects of which the user forced a label: why no version offered so far had
            it. It is no error while the resolver can still backtrack; when the resolution fails
            or the project is not in its result, the client raises what is in here.
        abi_projects: projects that some variant judged so far is built against.
        abi_found: called when that is no longer empty; a provider that has to know sets it.
        chosen: gives project and candidate of all that the resolution has pinned, in the order in
            which it was required. For coherence; a provider that can tell sets it.
    """

    def __init__(
        self,
        files: CandidateFiles[CT],
        *,
        platform: Callable[[Metadata], Platform],
        preferences: Preferences,
        listener: Listener | None = None,
        installed: Installed | None = None,
    ) -> None:
        """Set up.

        Args:
            files: how candidates name their files.
            platform: supported values for metadata, e.g. `Detector.platform` of the engine.
            preferences: what the user asked for.
            listener: hears decisions and faults; may be a `CoherenceListener`, too.
            installed: what is installed; of variants that are built against different releases
                of an installed project, those for that release are preferred.
        """
        self.missing: dict[str, NoSuchVariant] = {}
        self.abi_projects: set[str] = set()
        self.abi_found: Callable[[], object] = bool
        self.chosen: Callable[[], Iterable[tuple[str, CT]]] = tuple
        self._files = files
        self._platform = platform
        self._preferences = preferences
        self._listener = listener
        self._installed = installed
        self._installed_variants: tuple[Chosen, ...] | None = None
        # By project and version: namespace, and what was agreed with.
        self._agreements: dict[tuple[str, Hashable], tuple[str, Chosen]] = {}
        self._disagreements: set[tuple[str, Hashable, str, str]] = set()
        self._decisions: dict[tuple[str, Hashable], _Decision[CT]] = {}
        # The files of a version that were offered last, and how they were arranged.
        self._arrangements: dict[tuple[str, Hashable], tuple[list[CT], list[CT]]] = {}
        # By project, version and source.
        self._metadata: dict[tuple[str, Hashable, str], Metadata | Exception] = {}

    @property
    def coherent(self) -> bool:
        """Whether variants are to agree with what is chosen, in some namespace."""
        return bool(self._preferences.coherent)

    @property
    def forces_any(self) -> bool:
        """Whether the user forced a label of some project."""
        return bool(self._preferences.forced)

    def forces(self, project: str) -> bool:
        """Return whether the user forced a label of *project*, or its non-variant wheel."""
        return project in self._preferences.forced

    def arrange(
        self, project: str, candidates: Iterable[CT], *, complete: bool = True
    ) -> Iterator[CT]:
        """Yield the candidates that fit, version by version, best variant first.

        Versions keep their order. Versions without variant wheels pass unchanged. A version is
        judged when the iterator reaches it, not before. A decision needs all files of a version,
        so *candidates* is read up to the first one of the next version.

        Args:
            project: normalized project name.
            candidates: all files of all versions, those of a version together, in the order of
                preference without variants.
            complete: False when candidates were left out because they conflict: a forced label
                that is not among the others is not `missing` then.

        Raises:
            Exception: whatever went wrong in the platform or metadata of a project of which a
                label is forced. For all other projects a fault costs the version its variants.
        """
        forced = self.forces(project)
        considered: list[tuple[str, Selection[CT], Sequence[File[CT]]]] = []
        for version, group in self._by_version(candidates):
            if not forced:
                yield from self._arranged(project, version, group)
                continue
            files = self._files_of(project, version, group)
            decision = self._decide(project, version, files)
            considered.append((str(version), decision.selection, files))
            for _, number in _kept(files, decision):
                yield group[number]
        if forced and complete:
            error = missing_variant(project, considered)
            if error is not None:
                self.missing.setdefault(project, error)

    def _arranged(self, project: str, version: Hashable, group: list[CT]) -> Iterable[CT]:
        """Return the files of *group* that fit, in order; no label of the project is forced."""
        # Resolvers go through the same matches several times before anything about them changes.
        arrangement = self._arrangements.get((project, version))
        if (
            arrangement is not None
            and len(arrangement[0]) == len(group)
            and all(map(is_, arrangement[0], group))
        ):
            return arrangement[1]
        files = self._files_of(project, version, group)
        arranged = group
        if any(file.label is not None for file in files):
            decision = self._decide(project, version, files)
            kept = _kept(files, decision)
            if self._preferences.coherent:  # follows what is pinned at the moment
                if kept:
                    kept = self._coherent(project, version, files, kept, decision)
                return [group[number] for _, number in kept]
            arranged = [group[number] for _, number in kept]
        self._arrangements[project, version] = group, arranged
        return arranged

    def context(self, project: str, candidate: CT) -> VariantContext:
        """Return what variant markers of *candidate* are evaluated against."""
        file = self._file(candidate)
        if file.label is None:
            return NON_VARIANT
        decision = self._decisions.get((project, self._files.version(candidate)))
        # Of a variant that never was among others, only what its name says is known.
        return VariantContext(file.label, {}) if decision is None else decision.context(file)

    def selection(self, project: str, candidate: CT) -> Selection[CT] | None:
        """Return the decision about the version of *candidate*, None if it has no variants."""
        decision = self._decisions.get((project, self._files.version(candidate)))
        return None if decision is None else decision.selection

    def abi_dependencies(self, project: str, candidate: CT) -> tuple[AbiDependency, ...]:
        """Return what *candidate* is built against, empty for what is no variant."""
        if not self.abi_projects:
            return ()
        decision = self._decisions.get((project, self._files.version(candidate)))
        if decision is None:
            return ()
        file = self._file(candidate)
        ranking = decision.selection.rankings.get(file.source)
        if file.label is None or ranking is None:
            return ()
        key = (file.source, file.label)
        if key not in decision.abi:
            label = ranking.metadata.label_of(file.label)
            decision.abi[key] = abi_dependencies(ranking.metadata.properties_of(label) or {})
        return decision.abi[key]

    def judged(self, project: str) -> Iterator[tuple[Hashable, Selection[CT]]]:
        """Yield version and decision of every version of *project* that was judged, in order."""
        for (name, version), decision in self._decisions.items():
            if name == project:
                yield version, decision.selection

    def agrees_with(self, project: str, candidate: CT) -> Chosen | None:
        """Return what *candidate* was put in front to agree with, None if it was not."""
        version = self._files.version(candidate)
        decision = self._decisions.get((project, version))
        if decision is None or (project, version) not in self._agreements:
            return None
        namespace, other = self._agreements[project, version]
        own = self._as_chosen(project, self._file(candidate), decision.selection)
        return other if own.agreement(other, namespace) else None

    def _coherent(
        self,
        project: str,
        version: Hashable,
        files: Sequence[File[CT]],
        kept: Sequence[tuple[int, int]],
        decision: _Decision[CT],
    ) -> list[tuple[int, int]]:
        """Return *kept* with what agrees with the files that are chosen already in front."""
        own = {
            number: self._as_chosen(project, files[number], decision.selection)
            for _, number in kept
        }
        agreements: list[dict[int, int]] = []
        self._agreements.pop((project, version), None)
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

    def _as_chosen(self, project: str, file: File[CT], selection: Selection[CT]) -> Chosen:
        ranking = selection.rankings.get(file.source)
        return Chosen.of(project, file.label, ranking.metadata if ranking else None)

    def _anchors(self, project: str) -> Iterator[Chosen]:
        """Yield what *project* may have to agree with, see `coherence`."""
        forced = self._preferences.forced
        pinned: dict[str, Chosen] = {}
        for name, candidate in self.chosen():
            if self._files.filename(candidate) is None:  # what is installed speaks for itself
                continue
            decision = self._decisions.get((name, self._files.version(candidate)))
            if decision is not None and decision.selection.rankings and name != project:
                pinned[name] = self._as_chosen(name, self._file(candidate), decision.selection)
        unseen = []
        for name, label in forced.items():
            if name == project:
                continue
            for _, selection in () if name in pinned else self.judged(name):
                if selection.files:
                    yield self._as_chosen(name, selection.files[0], selection)
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

    def _files_of(self, project: str, version: Hashable, group: Sequence[CT]) -> Sequence[File[CT]]:
        known = self._decisions.get((project, version))
        return [self._file(candidate, known) for candidate in group]

    def _file(self, candidate: CT, decision: _Decision[CT] | None = None) -> File[CT]:
        filename = self._files.filename(candidate)
        if filename is None:
            return File("", "", candidate)
        source = self._files.source(candidate)
        known = None if decision is None else decision.files.get((filename, source))
        return known or File(filename, source, candidate)

    def _by_version(self, candidates: Iterable[CT]) -> Iterator[tuple[Hashable, list[CT]]]:
        group: list[CT] = []
        current: Hashable = None
        for candidate in candidates:
            version = self._files.version(candidate)
            if group and version is not current and version != current:
                yield current, group
                group = []
            current = version
            group.append(candidate)
        if group:
            yield current, group

    def _decide(self, project: str, version: Hashable, files: Sequence[File[CT]]) -> _Decision[CT]:
        # Resolvers ask for the matches of a project again and again: with new candidate objects,
        # and without those that turned out to conflict.
        decision = self._decisions.get((project, version))
        offered = {} if decision is None else dict(decision.files)
        for file in files:
            offered.setdefault((file.filename, file.source), file)
        if decision is None or len(offered) > len(decision.files):
            selection = self._select(project, version, tuple(offered.values()))
            decision = self._decisions[project, version] = _Decision(offered, selection)
        return decision

    def _select(self, project: str, version: Hashable, files: Sequence[File[CT]]) -> Selection[CT]:
        first: dict[str, CT] = {}
        for file in files:
            if file.label is not None:
                first.setdefault(file.source, file.item)
        try:
            selection = select(
                files,
                metadata=lambda source: self._read(project, version, source, first[source]),
                platform=self._supporting,
                preferences=self._preferences,
                project=project,
            )
        except Exception as error:
            # A fault of ours must cost the variants, never the install: unless the user asked for
            # a variant of just this project.
            if self.forces(project):
                raise
            logger.debug("selecting a variant of %s %s failed", project, version, exc_info=True)
            if self._listener is not None:
                self._listener.failed(project, version, error)
            plain = tuple(file for file in files if file.label is None)
            return Selection(plain, {}, {}, (), self._preferences)
        if self._listener is not None:
            self._listener.selected(project, version, selection)
        return selection

    def _supporting(self, metadata: Metadata) -> Platform:
        """Return the platform, with what the resolution will judge taken for supported."""
        platform = self._platform(metadata)
        version = self._installed.version if self._installed is not None else None
        found = supporting(platform, metadata, version)
        projects = abi_projects(found)
        if projects and not self.abi_projects:
            self.abi_found()
        self.abi_projects |= projects
        return found

    def _read(self, project: str, version: Hashable, source: str, candidate: CT) -> Metadata:
        key = (project, version, source)
        if key not in self._metadata:
            try:
                self._metadata[key] = self._files.metadata(project, candidate)
            except Exception as error:  # also a fault would happen again
                self._metadata[key] = error
        found = self._metadata[key]
        if isinstance(found, Exception):
            raise found
        return found


def _kept(files: Sequence[File[CT]], decision: _Decision[CT]) -> list[tuple[int, int]]:
    """Return place and number of those of *files* that fit, ordered by place.

    Files that share a place stay in the order in which they came.
    """
    return sorted(
        (place, number)
        for number, file in enumerate(files)
        if (place := decision.places.get((file.source, file.label))) is not None
    )


@dataclass(frozen=True)
class _Decision(Generic[CT]):
    """What was decided about one version.

    Attributes:
        files: every file that was offered so far, by filename and source.
        selection: the decision about them.
        contexts: what was worked out for markers, by source and label.
        abi: what was worked out of variants that are built against others, by source and label.
    """

    files: Mapping[tuple[str, str], File[CT]]
    selection: Selection[CT]
    contexts: dict[tuple[str, str | None], VariantContext] = field(default_factory=dict)
    abi: dict[tuple[str, str], tuple[AbiDependency, ...]] = field(default_factory=dict)

    @cached_property
    def places(self) -> Mapping[tuple[str, str | None], int]:
        """Place of the files of a source and label, 0 is the most preferred.

        Equal for what only the client's order of preference tells apart: a label whose sources
        agree, and everything that is no variant. Files that do not fit have none.
        """
        groups: dict[Hashable, int] = {}
        places = {}
        for file in self.selection.files:
            ranking = self.selection.rankings.get(file.source)
            group = None if file.label is None else (id(ranking), file.label)
            places[file.source, file.label] = groups.setdefault(group, len(groups))
        return places

    def context(self, file: File[CT]) -> VariantContext:
        """Return what variant markers of *file* are evaluated against."""
        key = (file.source, file.label)
        if key not in self.contexts:
            self.contexts[key] = self.selection.context(file)
        return self.contexts[key]
