"""Chooses the variant of each version in a stream of candidates.

For every resolver, whatever its candidates are: objects of a resolvelib provider (see `provider`)
or pip's candidate infos. Metadata is read only of versions that the resolver comes to, once each.

A resolver is offered one variant of a version. PEP 825 ("Evaluating variant markers", "Installing
a package from an index") selects the wheel by variant ordering and reads its dependencies only
then. Dependencies that conflict or do not exist rule out the version, as for any package. If the
next variant were tried instead, a pin of some requirement would silently give the CPU build on a
machine with a GPU, the choice would depend on the order of resolution, and the dependencies of
every variant of every version would be read. Users choose another variant with ``--variant``.

Where the index gives one hash for METADATA of all wheels of a version (PEP 658), its dependencies
are known before its variant is. The resolver then gets a provisional candidate, and the variant
metadata is fetched only if it accepts the dependencies: backtracking costs no more requests than
without variants.

Variants built against different releases of another project (``abi_dependency``, see `abi`) are
offered one after the other, and coherence orders by what is already chosen (see `coherence`).

Versions keep their order, but where the user prefers it (``--variant-before-version``): there the
newest version whose file is a build for the accelerator of the target goes first. It has to be
judged before the first version is offered, and so have those before it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from operator import is_
from typing import Any, Generic, TypeVar

from pep_variants import File, Metadata, Platform, Preferences, Selection, VariantContext, select
from pep_variants.internal import (
    NON_VARIANT,
    NULL_LABEL,
    AbiDependency,
    Admitted,
    Advice,
    NewestBuild,
    NoSuchVariant,
    PluginFailed,
    VersionNote,
    abi_projects,
    advise_over_releases,
    has_accelerator,
    is_accelerated,
    missing_variant,
    newest_build,
    supporting,
)

from .coherence import Agreements
from .decision import Decision, ProvisionalVersion, file_of, group_by_version
from .interfaces import (
    CandidateFiles,
    Chosen,
    Installed,
    Listener,
    MetadataHashes,
    Together,
    VersionOrder,
)

logger = logging.getLogger(__name__)

CT = TypeVar("CT")


@dataclass
class Pass:
    """One way through the files of a version.

    Attributes:
        postponed: name and source of files that are offered again after the others.
        is_over: the others were offered.
    """

    postponed: set[tuple[str, str]] = field(default_factory=set)
    is_over: bool = False


class VariantOrdering(Generic[CT]):
    """Arranges the candidates of one resolution and remembers every decision.

    Make one per resolution. What is decided about a version holds for every subset of its files:
    a resolver that leaves out what it found to conflict sees the rest in the same order.

    Attributes:
        missing: for projects of which the user forced a label: why no version offered so far had
            it. It is no error while the resolver can still backtrack; when the resolution fails
            or the project is not in its result, the client raises what is in here.
        abi_projects: projects that some variant judged so far is built against.
        follow: called when that, or `displaced`, is no longer empty; a provider that has to know
            what is pinned then sets it.
        confirmed: called with the project and a provisional candidate that was confirmed.
        displaced: projects of which an older version goes before the newest, see `VersionOrder`.
        coherent: whether variants of some project are to agree with what is chosen.
        excluded: labels that are not offered, by project; set before anything is.
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
        together: Together | None = None,
        version_order: VersionOrder | None = None,
    ) -> None:
        """Set up.

        Args:
            files: how candidates name their files.
            platform: supported values for metadata, e.g. `Detector.platform` of the engine.
            preferences: what the user asked for.
            listener: hears decisions and faults; may be a `CoherenceListener`, too.
            installed: what is installed; of variants that are built against different releases
                of an installed project, those for that release are preferred; the others come
                last where the project is not part of the resolution.
            together: which projects should have the same label, see `Together`.
            version_order: which version goes first where the preferences leave it open.
        """
        self.missing: dict[str, NoSuchVariant] = {}
        self.abi_projects: set[str] = set()
        self.follow: Callable[[], object] = bool
        self.confirmed: Callable[[str, CT], object] = lambda *_: None
        self.displaced: dict[str, NewestBuild] = {}
        self.chosen: Callable[[], Iterable[tuple[str, CT]]] = tuple
        self.excluded: Mapping[str, Collection[str]] = {}
        self._files = files
        self._platform = platform
        self._preferences = preferences
        self._listener = listener
        self._installed = installed
        self._version_order = version_order or VersionOrder()
        # By project: what was found where no version has a build for the accelerator.
        self._unfound: dict[str, NewestBuild] = {}
        self._accelerator: bool | None = None
        self._looked_at: dict[tuple[str, Hashable], Selection[CT] | None] = {}
        self._decisions: dict[tuple[str, Hashable], Decision[CT]] = {}
        self._agreements: Agreements[CT] = Agreements(
            files,
            preferences,
            installed,
            listener,
            decisions=self._decisions,
            pinned=lambda: self.chosen(),
            together=together,
        )
        self.coherent = bool(preferences.coherent) or together is not None
        # The last files of a version, refused ones at the end; how many are not; their order.
        self._arrangements: dict[tuple[str, Hashable], tuple[list[CT], int, list[CT]]] = {}
        self._hashes = files if isinstance(files, MetadataHashes) else None
        # By project: the label that was chosen last, None for files that are no variants.
        self._latest: dict[str, str | None] = {}
        # The latest of each project and version.
        self._passes: dict[tuple[str, Hashable], Pass] = {}
        self._provisional: dict[tuple[str, Hashable], ProvisionalVersion[CT]] = {}
        # By project, version and source: what was read, or the error of that.
        self._metadata: dict[tuple[str, Hashable, str], Metadata | Exception] = {}

    def forces(self, project: str) -> bool:
        """Return whether the user forced a label of *project*, or its non-variant wheel."""
        return project in self._preferences.forced

    def arrange(
        self,
        project: str,
        candidates: Iterable[CT],
        *,
        refused: Iterable[CT] = (),
        complete: bool = True,
    ) -> Iterator[CT]:
        """Yield the files of the chosen variant of each version.

        That is every file with its label, or every non-variant file where no variant fits.
        After them come those of variants that are built against other releases of some project,
        best first, down to the first one that goes with any release.

        If all wheels of a version have the same METADATA, the file that comes first may be
        `provisional`: of the variant that another version had. What is chosen follows if it is
        not confirmed. It does not if the resolver attempted that file and refused its
        dependencies, which are those of all, without having it confirmed.

        Versions keep their order, but for the one that goes first by the user's preference.
        Versions without variant wheels pass unchanged. Else a version is judged when the iterator
        reaches it, not before. A decision needs all files of a version,
        so *candidates* is read up to the first one of the next version.

        Args:
            project: normalized project name.
            candidates: all files of all versions, those of a version together, in the order of
                preference without variants.
            refused: candidates that are not among the others because the resolver found them to
                conflict. They take part in the choice: if the chosen variant of a version is one
                of them, no other one takes its place.
            complete: False when other candidates were left out: a forced label that is not among
                the rest is not `missing` then. Neither is it when some were refused.

        Raises:
            Exception: whatever went wrong in the platform or metadata of a project of which a
                label is forced. For all other projects a fault costs the version its variants.
            PluginFailed: a plugin that the user allowed gives no answer.
        """
        forced = self.forces(project)
        considered: list[tuple[str, Selection[CT], Sequence[File[CT]]]] = []
        refusals: dict[Hashable, list[CT]] = {}
        for candidate in refused:
            refusals.setdefault(self._files.version(candidate), []).append(candidate)
        excluded = self.excluded.get(project)
        if excluded:
            candidates = (each for each in candidates if self._file(each).label not in excluded)
        groups = group_by_version(self._files, candidates)
        if self.puts_first(project):
            groups = self._build_first(project, groups, refusals)
        for version, group in groups:
            offered = len(group)
            group += refusals.get(version, ())
            if not forced:
                provisional = self._provisional_candidate(project, version, group)
                if provisional is None:
                    yield from self._with_postponed(project, version, group, offered)
                    continue
                found = self._provisional[project, version]
                found.attempted = False
                yield provisional
                if found.attempted and (project, version) not in self._decisions:
                    continue
                for candidate in self._with_postponed(project, version, group, offered):
                    if not (found.confirmed and candidate is provisional):
                        yield candidate
                continue
            files = self._files_of(project, version, group)
            decision = self._decide(project, version, files)
            considered.append((str(version), decision.selection, files))
            for number in decision.choice(files, decision.fitting(files)):
                if number < offered:
                    yield group[number]
        if forced and complete and not refusals:
            error = missing_variant(project, considered)
            if error is not None:
                self.missing.setdefault(project, error)

    def _with_postponed(
        self, project: str, version: Hashable, group: list[CT], offered: int
    ) -> Iterator[CT]:
        """Yield what is chosen, then again what was postponed meanwhile, see `postpones`."""
        arranged = self._arranged(project, version, group, offered)
        if not self.abi_projects:
            yield from arranged
            return
        passing = self._passes[project, version] = Pass()
        yield from arranged
        passing.is_over = True
        for candidate in arranged if passing.postponed else ():
            file = self._file(candidate)
            if (file.filename, file.source) in passing.postponed:
                yield candidate

    def _arranged(
        self, project: str, version: Hashable, group: list[CT], offered: int
    ) -> Sequence[CT]:
        """Return what of the first *offered* files of *group* is chosen, no label being forced.

        The other files of the group are those that were refused.
        """
        # Resolvers go through the same matches several times before anything about them changes.
        arrangement = self._arrangements.get((project, version))
        if (
            arrangement is not None
            and arrangement[1] == offered
            and len(arrangement[0]) == len(group)
            and all(map(is_, arrangement[0], group))
        ):
            return arrangement[2]
        files = self._files_of(project, version, group)
        arranged = group[:offered]
        if any(file.label is not None for file in files):
            decision = self._decide(project, version, files)
            kept = decision.fitting(files)
            agreeing = self._agreements.concerns(project)
            if kept and agreeing:
                kept = self._agreements.sort(project, version, files, kept, decision)
            chosen = decision.choice(files, kept)
            arranged = [group[number] for number in chosen if number < offered]
            if agreeing:  # follows what is pinned at the moment
                return arranged
        self._arrangements[project, version] = group, offered, arranged
        return arranged

    @property
    def has_provisional(self) -> bool:
        """Whether any candidate so far was provisional."""
        return bool(self._provisional)

    def provisional(self, project: str, candidate: CT) -> bool:
        """Return whether *candidate* stands for a version whose variant is not known to be it."""
        found = self._provisional.get((project, self._files.version(candidate)))
        if found is None or found.confirmed:
            return False
        file = self._file(candidate)
        if (file.filename, file.source) != (found.file.filename, found.file.source):
            return False
        # One that is built against another project may be offered once more, in its place.
        decision = self._decisions.get((project, found.version))
        return decision is None or not decision.built_against(file)

    def attempt(self, project: str, candidate: CT) -> bool:
        """Take note that the resolver attempts a provisional candidate.

        Returns:
            False if its version was judged meanwhile, and another variant is chosen.
        """
        found = self._provisional[project, self._files.version(candidate)]
        found.attempted = True
        judged = (project, found.version) in self._decisions
        return not judged or self.confirm(project, candidate)

    def confirm(self, project: str, candidate: CT) -> bool:
        """Judge the version of a provisional candidate; return whether it is what is chosen."""
        found = self._provisional[project, self._files.version(candidate)]
        if not found.confirmed:
            decision = self._decide(project, found.version, found.files)
            chosen = next(decision.choice(found.files, decision.fitting(found.files)), None)
            found.confirmed = chosen is not None and found.files[chosen] is found.file
            if found.confirmed:
                self.confirmed(project, candidate)
        return found.confirmed

    def _provisional_candidate(
        self, project: str, version: Hashable, group: Sequence[CT]
    ) -> CT | None:
        """Return what to offer of a version before it is judged, None to judge it now."""
        if (
            self._hashes is None
            or project not in self._latest
            or (project, version) in self._decisions
            # Both ask more of a candidate than its own dependencies do.
            or self.abi_projects
            or self._agreements.concerns(project)
        ):
            return None
        files = self._files_of(project, version, group)
        wheels = [
            (candidate, file)
            for candidate, file in zip(group, files, strict=True)
            if file.filename.endswith(".whl")
        ]
        labels = {file.label for _, file in wheels}
        if labels <= {None} or not labels & {None, NULL_LABEL}:  # perhaps nothing fits
            return None
        hashes = {self._hashes.metadata_hash(candidate) for candidate, _ in wheels}
        if len(hashes) > 1 or None in hashes:
            return None
        for candidate, file in wheels:
            if file.label == self._latest[project]:
                self._provisional[project, version] = ProvisionalVersion(version, file, files)
                return candidate
        return None

    def context(self, project: str, candidate: CT) -> VariantContext:
        """Return what variant markers of *candidate* are evaluated against.

        Its dependencies have such markers, so those of the other files of the version differ: if
        it is provisional, its version is judged.
        """
        if self._provisional and self.provisional(project, candidate):
            self.confirm(project, candidate)
        file = self._file(candidate)
        if file.label is None:
            return NON_VARIANT
        decision = self._decisions.get((project, self._files.version(candidate)))
        # Of a variant that never was among others, only what its name says is known.
        if decision is None:
            return VariantContext(file.label, {})
        return decision.selection.context(file)

    def selection(self, project: str, candidate: CT) -> Selection[CT] | None:
        """Return the decision about the version of *candidate*, None if it has no variants."""
        decision = self._decisions.get((project, self._files.version(candidate)))
        return None if decision is None else decision.selection

    def is_accelerated(self, project: str, candidate: CT) -> bool:
        """Return whether *candidate* is a build for the accelerator that is here."""
        return is_accelerated(self.selection(project, candidate), self._file(candidate))

    def abi_dependencies(self, project: str, candidate: CT) -> tuple[AbiDependency, ...]:
        """Return what *candidate* is built against, empty for a non-variant file."""
        if not self.abi_projects:
            return ()
        decision = self._decisions.get((project, self._files.version(candidate)))
        return () if decision is None else decision.built_against(self._file(candidate))

    def postpones(
        self, project: str, candidate: CT, takes_part: Callable[[str], bool], *, is_again: bool
    ) -> bool:
        """Return whether other files of its version come before *candidate*.

        They do if it breaks with an installed project, and one of them does not. It is offered
        again after them.

        Args:
            project: normalized project name.
            candidate: a file of a version that was judged.
            takes_part: whether a project is part of the resolution, which may change its version.
            is_again: whether the others were tried before.
        """
        key = (project, self._files.version(candidate))
        decision, passing = self._decisions.get(key), self._passes.get(key)
        if is_again or decision is None or passing is None or self._installed is None:
            return False
        present = self._installed.present

        def breaks(file: File[CT]) -> bool:
            return any(
                version is not None and not item.allows(version) and not takes_part(item.project)
                for item in decision.built_against(file)
                for version in (present(item.project),)
            )

        file = self._file(candidate)
        if not breaks(file) or all(map(breaks, decision.selection.files)):
            return False
        name = (file.filename, file.source)
        if passing.is_over:  # offered again only if it was postponed in time
            return name in passing.postponed
        passing.postponed.add(name)
        return True

    def advice(
        self,
        project: str,
        version: Hashable,
        installed: str | None,
        candidates: Iterable[CT],
        *,
        over_releases: bool = True,
    ) -> Advice | None:
        """Return what is better than the installed build, see `advise_over_releases`.

        Args:
            project: normalized project name.
            version: that is installed.
            installed: label that is installed, None for what is no variant.
            candidates: files of all versions to choose among, newest version first.
            over_releases: whether another version may be better, by the user's preferences.
        """
        anew = over_releases and self._preferences.puts_first(project, by_default=True)
        admitted = [
            self._admitted(project, found, group)
            for found, group in group_by_version(self._files, candidates)
            if anew or found == version
        ]
        return advise_over_releases(project, version, installed, admitted, self.has_accelerator)

    def forget_installed(self) -> None:
        """Ask again what is installed: in another resolution other distributions may count."""
        self._agreements.forget_installed()

    def judged(self, project: str) -> Iterator[tuple[Hashable, Selection[CT]]]:
        """Yield version and decision of every version of *project* that was judged, in order."""
        for (name, version), decision in self._decisions.items():
            if name == project:
                yield version, decision.selection

    def agrees_with(self, project: str, candidate: CT) -> Chosen | None:
        """Return what *candidate* was put in front to agree with, None if it was not."""
        return self._agreements.agrees_with(project, candidate)

    def puts_first(self, project: str) -> bool:
        """Return whether the newest version with a build for the accelerator goes first."""
        by_default = self._version_order.by_default
        return self._preferences.puts_first(project, by_default=by_default(project))

    def _build_first(
        self,
        project: str,
        groups: Iterator[tuple[Hashable, list[CT]]],
        refusals: Mapping[Hashable, Sequence[CT]],
    ) -> Iterator[tuple[Hashable, list[CT]]]:
        """Yield *groups*, that of the newest version with a build for the accelerator first.

        It stays where it is if that build, or one of a newer version, was refused: a conflict is
        answered by the order of versions. Likewise if another variant of that version is taken, to
        agree with what is installed or chosen.
        """
        self.displaced.pop(project, None)
        self._unfound.pop(project, None)
        read: list[tuple[Hashable, list[CT]]] = []
        refused: list[Any] = [
            version
            for version in refusals
            for decision in (self._decisions.get((project, version)),)
            if decision and is_accelerated(decision.selection, decision.selection.chosen)
        ]

        def admitted() -> Iterator[Admitted]:
            for version, group in groups:
                read.append((version, group))
                if any(each > version for each in refused):
                    return
                yield self._admitted(project, version, [*group, *refusals.get(version, ())])

        found = newest_build(project, admitted(), self.has_accelerator)
        rest = chain(read, groups)
        if found is None or found.version is None:
            if found is not None:
                self._unfound[project] = found
            return rest
        floor: Any = self._version_order.floor(project)
        if floor is not None and found.version < floor:
            return rest
        first = next(item for item in read if item[0] == found.version)
        if not self._stays_accelerated(project, found, first[1]):
            return rest
        self.displaced[project] = found
        self.follow()
        read.remove(first)
        return chain([first], rest)

    def _stays_accelerated(self, project: str, found: NewestBuild, group: Sequence[CT]) -> bool:
        """Return whether the build is taken of its version, after all that it should agree with."""
        if found.build is None or not self._agreements.concerns(project):
            return True
        files = self._files_of(project, found.version, group)
        decision = Decision({(each.filename, each.source): each for each in files}, found.build)
        kept = decision.fitting(files)
        kept = self._agreements.sort(project, found.version, files, kept, decision)
        return bool(kept) and is_accelerated(found.build, files[kept[0][1]])

    def version_note(self, project: str, chosen: CT, offered: Iterable[CT]) -> VersionNote | None:
        """Return what to say of the order of versions; None where nothing else was to be had.

        That is: which newer version was passed over for a build for the target's accelerator; or
        which older version has one, where *chosen* is none. Metadata is read as by `newest_build`.

        Args:
            project: normalized project name.
            chosen: what the resolution, which is finished, took of it.
            offered: files that the requirements admit, newest version first.
        """
        version: Any = self._files.version(chosen)
        displaced = self.displaced.get(project)
        if displaced is not None and displaced.version == version:
            return displaced.preferred()
        selection = self.selection(project, chosen)
        if (
            self.forces(project)
            or not self._preferences.use_variants
            or self.is_accelerated(project, chosen)
        ):
            return None
        if project in self._unfound:
            return self._unfound[project].preferred()
        groups = group_by_version(self._files, offered)
        found = newest_build(
            project,
            chain(
                [Admitted(version, ("",) if selection else (), lambda: selection)],
                (self._admitted(project, *each) for each in groups if each[0] < version),
            ),
            self.has_accelerator,
        )
        if found is None or found.version is None:
            return None
        return found.excluded() if self.puts_first(project) else found.missed()

    def _admitted(self, project: str, version: Any, group: Sequence[CT]) -> Admitted:  # noqa: ANN401 - as clients have it
        files = self._files_of(project, version, group)
        labels = {file.label for file in files if file.label is not None}
        return Admitted(version, labels, partial(self._look_at, project, version, files))

    def has_accelerator(self) -> bool:
        """Return whether the target has an accelerator, of any kind."""
        if self._accelerator is None:
            self._accelerator = has_accelerator(self._platform)
        return self._accelerator

    def _look_at(
        self, project: str, version: Hashable, files: Sequence[File[CT]]
    ) -> Selection[CT] | None:
        """Return the decision about a version that may never be offered; None if it fails."""
        known = self._decisions.get((project, version))
        if known is not None:
            return known.selection
        key = (project, version)
        if key not in self._looked_at:
            try:
                self._looked_at[key] = self._chosen_of(project, version, files, self._platform)
            except Exception:  # it is reported if the version is offered
                logger.debug("a version of %s cannot be judged", project, exc_info=True)
                self._looked_at[key] = None
        return self._looked_at[key]

    def _files_of(self, project: str, version: Hashable, group: Sequence[CT]) -> Sequence[File[CT]]:
        known = self._decisions.get((project, version))
        return [file_of(self._files, candidate, known) for candidate in group]

    def _file(self, candidate: CT) -> File[CT]:
        return file_of(self._files, candidate)

    def _decide(self, project: str, version: Hashable, files: Sequence[File[CT]]) -> Decision[CT]:
        # Resolvers ask again, with new objects and without what turned out to conflict.
        decision = self._decisions.get((project, version))
        offered = {} if decision is None else dict(decision.files)
        for file in files:
            offered.setdefault((file.filename, file.source), file)
        if decision is None or len(offered) > len(decision.files):
            selection = self._select(project, version, tuple(offered.values()))
            decision = self._decisions[project, version] = Decision(offered, selection)
            if selection.rankings and selection.chosen is not None:
                self._latest[project] = selection.chosen.label
        return decision

    def _select(self, project: str, version: Hashable, files: Sequence[File[CT]]) -> Selection[CT]:
        try:
            selection = self._chosen_of(project, version, files, self._supporting)
        except PluginFailed:
            raise  # the user allowed that plugin, and wants to know
        except Exception as error:
            # An internal error costs the variants, not the install, unless a label is forced.
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

    def _chosen_of(
        self,
        project: str,
        version: Hashable,
        files: Sequence[File[CT]],
        platform: Callable[[Metadata], Platform],
    ) -> Selection[CT]:
        first: dict[str, CT] = {}
        for file in files:
            if file.label is not None:
                first.setdefault(file.source, file.item)

        def metadata(source: str) -> Metadata:
            key = (project, version, source)
            if key not in self._metadata:
                try:
                    self._metadata[key] = self._files.metadata(project, first[source])
                except Exception as error:  # an internal error would happen again, too
                    self._metadata[key] = error
            found = self._metadata[key]
            if isinstance(found, Exception):
                raise found
            return found

        return select(
            files,
            metadata=metadata,
            platform=platform,
            preferences=self._preferences,
            project=project,
        )

    def _supporting(self, metadata: Metadata) -> Platform:
        """Return the platform, with what the resolution will judge taken for supported."""
        platform = self._platform(metadata)
        version = self._installed.version if self._installed is not None else None
        found = supporting(platform, metadata, version)
        projects = abi_projects(found)
        if projects and not self.abi_projects:
            self.follow()
        self.abi_projects |= projects
        return found
