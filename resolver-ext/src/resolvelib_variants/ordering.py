"""The variant of each version in a stream of candidates.

For every resolver, whatever its candidates are: objects of a resolvelib provider (see `provider`)
or pip's candidate infos. Metadata is read only of versions that the resolver comes to, once each.

A resolver is offered one variant of a version. PEP 825 ("Evaluating variant markers", "Installing
a package from an index") selects the wheel by variant ordering and reads its dependencies only
then. Dependencies that conflict or do not exist rule out the version, as for any package. If the
next variant were tried instead, a pin of some requirement would silently give the CPU build on a
machine with a GPU, the choice would depend on the order of resolution, and the dependencies of
every variant of every version would be read. Users choose another variant with ``--variant``.

`judging` decides about a version, once; `provisional` is for what is offered before that. Variants
built against different releases of another project (``abi_dependency``, see `abi_requirements`) are
offered one after the other, and coherence orders by what is already chosen (see `coherence`).
Versions keep their order, but where the user prefers it (see `build_order`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import is_
from typing import Any, Generic, TypeVar

from pep_variants import markers
from pep_variants import selection as wheel_selection
from pep_variants.errors import NoSuchVariant
from pep_variants.machines import Platform
from pep_variants.markers import VariantContext
from pep_variants.metadata import Metadata
from pep_variants.preferences import Preferences
from pep_variants.selection import AbiDependency, Advice, File, NewestBuild, Selection, VersionNote

from ._build_order import BuildOrder
from ._coherence import Agreements
from ._decision import file_of, group_by_version
from ._judging import VersionJudge
from ._pins import Pins
from ._provisional import ProvisionalCandidates
from .interfaces import (
    CandidateFiles,
    Chosen,
    InstalledDistributions,
    Listener,
    Together,
    VersionOrder,
)

__all__ = ["VariantOrdering"]

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


@dataclass(frozen=True)
class Arrangement(Generic[CT]):
    """The order of the files of a version.

    Attributes:
        group: its files, those that were refused at the end.
        offered: how many were not refused.
        order: those of them that are chosen.
    """

    group: Sequence[CT]
    offered: int
    order: Sequence[CT]

    def is_of(self, group: Sequence[CT], offered: int) -> bool:
        """Return whether it is that of the very same files."""
        is_like = len(self.group) == len(group) and self.offered == offered
        return is_like and all(map(is_, self.group, group))


class VariantOrdering(Generic[CT]):
    """Arranges the candidates of one resolution and remembers every decision.

    Make one per resolution. What is decided about a version holds for every subset of its files:
    a resolver that leaves out what it found to conflict sees the rest in the same order.

    Attributes:
        missing: for projects of which the user forced a label: why no version offered so far had
            it. It is no error while the resolver can still backtrack; when the resolution fails
            or the project is not in its result, the client raises what is in here.
        excluded: labels that are not offered, by project; set before anything is.
        abi_projects: projects that some variant judged so far is built against.
        displaced: projects of which an older version goes before the newest, see `VersionOrder`.
        provisionals: what is offered before its version is judged.
        pins: what the resolution has pinned, of which a `VariantProvider` takes note.
        coherent: whether variants of some project are to agree with what is chosen.

    >>> from pep_variants.machines import load_machine
    >>> from pep_variants.metadata import Metadata
    >>> from pep_variants.preferences import Preferences
    >>> from pep_variants.wheel_files import parse_filename
    >>> from resolvelib_variants.ordering import VariantOrdering
    >>> class Filenames:
    ...     def version(self, candidate):
    ...         return parse_filename(candidate).version
    ...     def filename(self, candidate):
    ...         return candidate
    ...     def source(self, candidate):
    ...         return "https://index.example/tool/"
    ...     def metadata(self, project, candidate):
    ...         cuda = {"nvidia": {"cuda_version_lower_bound": ("12.8",)}}
    ...         return Metadata(("nvidia",), {"cu128": cuda})
    >>> here = load_machine("cuda=12.9")
    >>> ordering = VariantOrdering(Filenames(), platform=lambda _: here, preferences=Preferences())
    >>> wheels = ["tool-1.0-py3-none-any.whl", "tool-1.0-py3-none-any-cu128.whl"]
    >>> list(ordering.arrange("tool", wheels))
    ['tool-1.0-py3-none-any-cu128.whl']
    """

    def __init__(
        self,
        files: CandidateFiles[CT],
        *,
        platform: Callable[[Metadata], Platform],
        preferences: Preferences,
        listener: Listener | None = None,
        installed: InstalledDistributions | None = None,
        together: Together | None = None,
        version_order: VersionOrder | None = None,
        confirmed: Callable[[str, CT], object] | None = None,
        pinned: Callable[[], Iterable[tuple[str, CT]]] | None = None,
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
            confirmed: called with the project and a provisional candidate that was confirmed.
            pinned: gives project and candidate of all that the resolution has pinned, in the order
                in which it was required; for resolvers without a `VariantProvider`.
        """
        self.missing: dict[str, NoSuchVariant] = {}
        self.excluded: Mapping[str, Collection[str]] = {}
        self.pins: Pins[CT] = Pins()
        self.coherent = self.pins.are_watched = bool(preferences.coherent) or together is not None
        self._files = files
        judge = VersionJudge(files, platform, preferences, listener, installed, self.pins)
        self._judge = judge
        self._agreements = Agreements(judge, together, pinned or self.pins.by_project)
        self._builds = BuildOrder(judge, self._agreements, version_order or VersionOrder())
        self.provisionals = ProvisionalCandidates(judge, confirmed)
        self.abi_projects: Collection[str] = judge.abi_projects
        self.displaced: Mapping[str, NewestBuild] = self._builds.displaced
        # The latest ones of each project and version.
        self._arrangements: dict[tuple[str, Hashable], Arrangement[CT]] = {}
        self._passes: dict[tuple[str, Hashable], Pass] = {}

    def forces(self, project: str) -> bool:
        """Return whether the user forced a label of *project*, or its non-variant wheel."""
        return self._judge.forces(project)

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
        considered: list[tuple[str, Selection[CT], Sequence[File[CT]]]] = []
        forced = self.forces(project)
        refusals: dict[Hashable, list[CT]] = {}
        for candidate in refused:
            refusals.setdefault(self._files.version(candidate), []).append(candidate)
        excluded = self.excluded.get(project)
        if excluded:
            candidates = (item for item in candidates if self._file(item).label not in excluded)
        groups = group_by_version(self._files, candidates)
        if self._builds.puts_first(project):
            groups = self._builds.sort(project, groups, refusals)
        for version, group in groups:
            offered = len(group)
            group += refusals.get(version, ())
            yield from self._of_version(project, version, group, offered)
            if forced:
                decision = self._judge.decisions[project, version]
                files = [*decision.files.values()]
                considered.append((str(version), decision.selection, files))
        if forced and complete and not refusals:
            error = wheel_selection.missing_variant(project, considered)
            if error is not None:
                self.missing.setdefault(project, error)

    def _of_version(
        self, project: str, version: Hashable, group: list[CT], offered: int
    ) -> Iterator[CT]:
        """Yield what is offered of a version.

        Args:
            project: normalized name.
            version: of the files.
            group: its files, those that were refused at the end.
            offered: how many were not refused.
        """
        provisional = None
        # All three ask more of a candidate than its own dependencies do.
        if not (self.forces(project) or self.abi_projects or self._agreements.concerns(project)):
            provisional = self.provisionals.offer(project, version, group)
        if provisional is not None:
            yield provisional.candidate
            if provisional.attempted and (project, version) not in self._judge.decisions:
                return
        for item in self._with_postponed(project, version, group, offered):
            if provisional is None or not provisional.is_taken(item):
                yield item

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
        """Return the chosen files among the first *offered* of *group*."""
        # Resolvers go through the same matches several times before anything about them changes.
        last = self._arrangements.get((project, version))
        if last is not None and last.is_of(group, offered):
            return last.order
        files = self._judge.files_of(project, version, group)
        order = group[:offered]
        forced = self.forces(project)
        if forced or any(file.label is not None for file in files):
            decision = self._judge.decide(project, version, files)
            fitting = decision.fitting(files)
            agreeing = not forced and self._agreements.concerns(project)
            if fitting and agreeing:
                fitting = self._agreements.sort(project, version, files, fitting, decision)
            order = [group[at] for at in decision.choice(files, fitting) if at < offered]
            if agreeing:  # follows what is pinned at the moment
                return order
        elif project in self._judge.built_only and all(
            file.filename and not file.filename.endswith(".whl") for file in files
        ):
            order = []
        self._arrangements[project, version] = Arrangement(group, offered, order)
        return order

    def provisional(self, project: str, candidate: CT) -> bool:
        """Return whether *candidate* stands for a version whose variant is not known to be it."""
        return self.provisionals.includes(project, candidate)

    def confirm(self, project: str, candidate: CT) -> bool:
        """Judge the version of a provisional candidate; return whether it is what is chosen."""
        return self.provisionals.confirm(project, candidate)

    def context(self, project: str, candidate: CT) -> VariantContext:
        """Return the context in which variant markers of *candidate* are evaluated.

        Its dependencies have such markers, so those of the other files of the version differ: if
        it is provisional, its version is judged.
        """
        if self.provisionals and self.provisional(project, candidate):
            self.confirm(project, candidate)
        file = self._file(candidate)
        if file.label is None:
            return markers.NON_VARIANT
        decision = self._judge.decision(project, candidate)
        # Of a variant that never was among others, only what its name says is known.
        if decision is None:
            return VariantContext(file.label, {})
        return decision.selection.context(file)

    def selection(self, project: str, candidate: CT) -> Selection[CT] | None:
        """Return the decision about the version of *candidate*, None if it has no variants."""
        decision = self._judge.decision(project, candidate)
        return None if decision is None else decision.selection

    def is_accelerated(self, project: str, candidate: CT) -> bool:
        """Return whether *candidate* is a build for the accelerator that is here."""
        return wheel_selection.is_accelerated(
            self.selection(project, candidate), self._file(candidate)
        )

    def abi_dependencies(self, project: str, candidate: CT) -> tuple[AbiDependency, ...]:
        """Return the releases that *candidate* is built against, empty for a non-variant file."""
        if not self.abi_projects:
            return ()
        decision = self._judge.decision(project, candidate)
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
        key, installed = (project, self._files.version(candidate)), self._judge.installed
        decision, passing = self._judge.decisions.get(key), self._passes.get(key)
        if is_again or decision is None or passing is None or installed is None:
            return False
        present = installed.present

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
    ) -> Advice | None:
        """Return the advice about an installed build, see `advise_over_releases`.

        Args:
            project: normalized project name.
            version: that is installed.
            installed: label that is installed, None for what is no variant.
            candidates: files of all versions to choose among, newest version first.
        """
        judge = self._judge
        anew = judge.preferences.puts_first(project, by_default=True)
        admitted = [
            judge.admitted(project, release, group)
            for release, group in group_by_version(self._files, candidates)
            if anew or release == version
        ]
        return wheel_selection.advise_over_releases(
            project, version, installed, admitted, lambda: judge.has_accelerator
        )

    def forget_installed(self) -> None:
        """Ask again what is installed: in another resolution other distributions may count."""
        self._agreements.forget_installed()

    def judged(self, project: str) -> Iterator[tuple[Hashable, Selection[CT]]]:
        """Yield version and decision of every version of *project* that was judged, in order."""
        return self._judge.selections(project)

    def passed_over(self, project: str, taken: Any, verb: str = "was chosen") -> str:  # noqa: ANN401 - a version
        """Return the line about versions newer than *taken* of which no variant fits, if any.

        Args:
            project: normalized project name.
            taken: the version that is installed.
            verb: what was done with it.
        """
        newer: list[tuple[Any, Selection[CT]]] = [
            item for item in self._judge.selections(project) if item[0] > taken
        ]
        newer.sort(key=lambda item: item[0], reverse=True)
        return wheel_selection.passed_over(project, newer, taken, verb)

    def unfit(self, project: str) -> tuple[Hashable, Selection[CT]] | None:
        """Return the first version of *project* of which no variant fits, and the decision.

        None if there is no such version, or something of another one can be installed.
        """
        judged = list(self._judge.selections(project))
        if any(selection.files for _, selection in judged):
            return None
        return next((item for item in judged if wheel_selection.is_unfit(item[1])), None)

    def agrees_with(self, project: str, candidate: CT) -> Chosen | None:
        """Return the file that *candidate* was put in front to agree with, None if it was not."""
        return self._agreements.agrees_with(project, candidate)

    def version_note(self, project: str, chosen: CT, offered: Iterable[CT]) -> VersionNote | None:
        """Return the note on the order of versions; None where nothing else was to be had.

        That is: which newer version was passed over for a build for the target's accelerator; or
        which older version has one, where *chosen* is none. Metadata is read as by `newest_build`.

        Args:
            project: normalized project name.
            chosen: what the resolution, which is finished, took of it.
            offered: files that the requirements admit, newest version first.
        """
        return self._builds.note(project, chosen, offered)

    def _file(self, candidate: CT) -> File[CT]:
        return file_of(self._files, candidate)
