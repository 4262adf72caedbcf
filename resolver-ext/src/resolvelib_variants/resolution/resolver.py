"""Resolving over real indexes: requirements and a target in, every file to install out."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from packaging.version import Version
from resolvelib import BaseReporter, ResolutionImpossible, ResolutionTooDeep, Resolver

from pep_variants import labels as wheel_labels
from pep_variants import preferences as user_preferences
from pep_variants import selection as wheel_selection
from pep_variants.errors import NoSuchVariant, redacted
from pep_variants.machines import Detector
from pep_variants.metadata import Digests, Metadata
from pep_variants.preferences import Preferences, Sources
from pep_variants.selection import Selection, VersionNote
from variants_catalog import catalogs, listings
from variants_index import finder as package_finder
from variants_index.finder import (
    Candidate,
    CandidateEvaluator,
    PackageFinder,
    Prefetcher,
    Project,
    Session,
    Store,
)
from variants_index.http import BadResponse
from variants_index.target import Target
from variants_plugins.runner import PluginRunner

from ..interfaces import Chosen, VersionOrder
from ..ordering import VariantOrdering
from ..provider import VariantProvider
from .errors import NoSolution
from .failure import explain_failure
from .index_provider import IndexProvider, SpecifierRequirement, allow, split_identifier
from .requirements import RequirementSet, Wanted
from .result import Package, Resolution, packages_of
from .same_files import agreeing, same_files, same_files_failure, stand_in

if TYPE_CHECKING:
    from variants_catalog.listings import Unavailable

logger = logging.getLogger(__name__)

MAX_ROUNDS = 200_000
"""More than any real resolution takes; one that goes on that long would go on for days."""


class IndexResolver:
    """Resolves over the user's indexes, for any number of targets; what is fetched is shared.

    Use it as a context manager, or `close` it.

    Attributes:
        session: what fetches.
        finder: all files of all sources.
    """

    def __init__(
        self,
        sources: Sources,
        *,
        preferences: Preferences | None = None,
        store: Store | None = None,
        environ: Mapping[str, str] | None = None,
        session: Session | None = None,
    ) -> None:
        """Set up.

        Args:
            sources: indexes and directories.
            preferences: what the user asked for about variants.
            store: the cache, None for none.
            environ: environment variables, those of this process by default.
            session: in place of one that is made from *sources*, *store* and *environ*.
        """
        self.preferences = preferences or Preferences()
        self.session = session or Session(
            sources, store=store, environ=os.environ if environ is None else environ
        )
        self.prefetcher = Prefetcher()
        self._left_out: list[str] = []
        try:
            catalog = package_finder.catalog_of(
                self.session, self.preferences, self._left_out.append
            )
        except BaseException:
            self.session.close()
            raise
        self.finder = PackageFinder(self.session, sources, self.prefetcher, catalog)
        self._sources = sources
        # By identity, which the targets in here keep: names are for people.
        self._detectors: dict[int, tuple[Target, Detector]] = {}

    def __enter__(self) -> IndexResolver:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop what is still being fetched and close all connections."""
        self.prefetcher.close()
        self.session.close()

    def _missed(self, target: Target, name: str) -> list[Unavailable]:
        """Return what cannot be had of the project *name*, and would fit *target*."""
        project = self.finder.project(name)
        if project.entry is None:
            return []
        detect = self.detector(target).platform
        return catalogs.missed_here(project.entry, project.unavailable, detect, self.preferences)

    def detector(self, target: Target) -> Detector:
        """Return what answers which variants *target* supports.

        Raises:
            PlatformFileError: the platform file that is preferred cannot be read.
            PreferenceError: an allowed provider is malformed.
        """
        if id(target) not in self._detectors:
            detector = Detector.of(
                self.preferences,
                runner=lambda: PluginRunner.of(self.preferences, self._sources),
                environment=target.environment,
                platform=target.platform,
                here=target.here,
            )
            self._detectors[id(target)] = target, detector
        return self._detectors[id(target)][1]

    def resolve(
        self,
        requirement_set: RequirementSet,
        target: Target,
        progress: Callable[[str], None] | None = None,
        *,
        in_order: bool = False,
    ) -> Resolution:
        """Return what has to be installed on *target*.

        Args:
            requirement_set: requirements and constraints; its index options are not used.
            target: the machine.
            progress: hears what is being done, in a few words, often.
            in_order: leave versions in their order, whatever the user prefers.

        Raises:
            NoSolution: no files meet all requirements; says why.
            NoSuchVariant: a forced label does not exist or does not fit.
            PackageIndexError: an index does not answer.
            VariantError: a platform file or preference makes no sense.
        """
        for wanted in (*requirement_set.requirements, *requirement_set.constraints):
            if wanted.requirement.url is not None:
                self.session.add_index(wanted.requirement.url)
        provided: dict[str, str] = {}

        def resolve(excluded: Mapping[str, Collection[str]]) -> Resolution:
            while True:
                found = self._resolve(
                    requirement_set, target, progress, provided, in_order, excluded
                )
                again = same_files(found.packages, self.finder) if self.finder.has_catalog else {}
                if not again:
                    return found
                provided.update(again)

        return agreeing(resolve)

    def resolve_all(
        self,
        requirement_set: RequirementSet,
        targets: Sequence[Target],
        progress: Callable[[str], None] | None = None,
    ) -> list[Resolution]:
        """Return what one lock file has for each of *targets*.

        A build for an accelerator goes before a newer version only where all targets then have
        that version. Arguments and errors as for `resolve`.
        """

        def resolve(*, in_order: bool = False) -> list[Resolution]:
            return [
                self.resolve(requirement_set, each, progress, in_order=in_order) for each in targets
            ]

        found = resolve()
        preferred: dict[str, str] = {}
        for each in found:
            for name, note in each.version_notes.items():
                if note.version == str(each.by_name[name].candidate.release):
                    preferred[name] = note.version
        agree = all(
            str(each.by_name[name].candidate.release) == version
            for name, version in preferred.items()
            for each in found
            if name in each.by_name
        )
        return found if agree else resolve(in_order=True)

    def _resolve(
        self,
        requirement_set: RequirementSet,
        target: Target,
        progress: Callable[[str], None] | None,
        provided: Mapping[str, str],
        in_order: bool,
        excluded: Mapping[str, Collection[str]],
    ) -> Resolution:
        """Return one resolution, with builds in place of projects that have their files."""
        hashes = _allowed_hashes(requirement_set)
        evaluator = CandidateEvaluator(self.finder, target, hashes)
        plain = IndexProvider(
            self.session,
            self.prefetcher,
            self.finder,
            evaluator,
            target,
            constraints=requirement_set.constraints,
            pre=requirement_set.pre,
            provided=provided,
        )
        notes = Notes()
        asked = {item.project for item in requirement_set.requirements}
        labels = self.preferences.forced.items()
        forced = {name: label for name, label in labels if name not in provided}
        preferences = replace(self.preferences, forced=forced)
        if in_order:
            preferences = replace(
                preferences, before_version=frozenset((user_preferences.NO_PROJECTS,))
            )
        provider: VariantProvider[Any, Candidate, str] = VariantProvider(
            plain,
            plain,
            platform=self.detector(target).platform,
            preferences=preferences,
            listener=notes,
            together=Relatives(self.finder, asked, requirement_set.constraints)
            if self.finder.has_catalog
            else None,
            version_order=VersionOrder(self.finder.puts_build_first),
        )
        provider.ordering.excluded = excluded
        roots = plain.roots(requirement_set.requirements)
        reporter = ProgressReporter(progress)
        resolver: Resolver[Any, Candidate, str] = Resolver(provider, reporter)
        try:
            result = resolver.resolve(roots, max_rounds=MAX_ROUNDS)
        except ResolutionImpossible as error:
            _raise_missing(provider.ordering.missing.values(), error)
            guilty = {plain.project(provider.identify(item.requirement)) for item in error.causes}
            named, build = stand_in(provided, guilty) or ("", "")
            failure = explain_failure(
                error.causes,
                provider,
                plain,
                evaluator,
                self.finder,
                missed=partial(self._missed, target),
                unsaid=named,
            )
            if build:
                failure = same_files_failure(named, build, failure, roots)
            raise failure from error
        except ResolutionTooDeep:
            raise NoSolution(
                f"no solution was found in {MAX_ROUNDS:,} steps: pin some versions with ==, "
                "or add constraints with -c"
            ) from None
        chosen = {split_identifier(identifier)[0] for identifier in result.mapping}
        _raise_missing(
            (error for name, error in provider.ordering.missing.items() if name not in chosen),
            None,
        )
        packages = packages_of(result, roots, plain, provider, provided)
        self._check_hashes(packages, hashes)
        warnings = [*self._left_out, *plain.warnings, *notes.warnings]
        warnings += (
            f"{name} is not installed beside {build}, which has the same files and stands for it"
            for name, build in provided.items()
        )
        missing: list[Unavailable] = []
        admitted: dict[str, list[Version]] = {}
        version_notes: dict[str, VersionNote] = {}
        for package in packages:
            warnings += notes.disagreements.get((package.name, package.candidate.release), ())
            over = provider.ordering.passed_over(package.name, package.version)
            warnings += filter(None, [over])
            if package.file.yanked is not None:
                reason = package.file.yanked or "no reason given"
                warnings.append(f"{package.candidate} is yanked: {reason}")
            note = version_note(package, plain, provider.ordering, result.criteria)
            if note is not None:
                version_notes[package.name] = note
                warnings.append(note.text)
            if not package.candidate.direct:
                project = self.finder.project(package.name)
                warnings += project.warnings
                needs = _needs(package.name, result.criteria)
                warnings += _as_listed(package.candidate, project, needs)
                if missed := self._missed(target, package.name):
                    missing += missed
                    admitted[package.name] = asked_versions(plain, package.candidate, needs)
            rewritten = evaluator.rejected.get((package.name, package.candidate.release))
            if rewritten is not None and rewritten[package_finder.REWRITTEN]:
                warnings.append(
                    f"{package.name} {package.version}: builds of the catalogue that are rewritten "
                    "when they are installed are left out, as hashes are given"
                )
        requested: dict[str, frozenset[str]] = {}
        for need in roots:
            if isinstance(need, SpecifierRequirement):
                requested[need.project] = requested.get(need.project, frozenset()) | {need.extra}
        merged: tuple[Unavailable, ...] = ()
        if missing:
            merged = listings.by_host(missing, admitted)
        warnings += map(str, merged)
        unavailable = (*notes.lacking, *map(str, merged))
        return Resolution(
            target,
            packages,
            tuple(dict.fromkeys(warnings)),
            requested,
            tuple(notes.seen),
            dict(provided),
            unavailable,
            version_notes,
        )

    def _check_hashes(
        self, packages: Sequence[Package], allowed: Mapping[str, Mapping[str, frozenset[str]]]
    ) -> None:
        if not allowed:
            return
        lacking = [package.name for package in packages if package.name not in allowed]
        if lacking:
            raise NoSolution(
                "with --hash for some requirements, all need one; it is missing for: "
                f"{', '.join(lacking)}"
            )
        for package in packages:
            algorithms = allowed[package.name]
            if any(name in package.file.hashes for name in algorithms):
                continue  # compared by the evaluator
            found = self.digests(package.candidate, algorithms)
            if not any(found[name] in algorithms[name] for name in algorithms):
                place = redacted(package.file.url)
                raise BadResponse(f"{place}: has none of the hashes that the requirements allow")

    def digests(self, candidate: Candidate, algorithms: Iterable[str]) -> dict[str, str]:
        """Return hexadecimal digests of a file, which is downloaded for it."""
        url = candidate.file.url
        check = Digests.of(algorithms)
        size = 0
        with self.session.stream(url) as chunks:
            for chunk in chunks:
                size += len(chunk)
                if size > package_finder.MAX_DOWNLOAD:
                    raise BadResponse(
                        f"is larger than {package_finder.MAX_DOWNLOAD} bytes", url=url
                    )
                check.update(chunk)
        return check.found

    def variant_documents(self, package: Package) -> list[dict[str, Any]]:
        """Return the variant metadata of *package* as its source has it.

        That is the index's file; or, without one, what is in the wheel.

        Raises:
            VariantError: the wheel cannot be fetched any more.
        """
        candidate = package.candidate
        if candidate.catalog is not None:
            return []  # listed as published
        if candidate.label is None:
            return []
        found = package_finder.fetch_release_metadata(
            self.session,
            self.prefetcher,
            [candidate.file],
            None if candidate.direct else candidate.metadata,
            None if candidate.direct else candidate.source,
        )
        return [json.loads(document) for _, document in sorted(found.documents.items())]


def asked_versions(
    plain: IndexProvider, chosen: Candidate, needs: Iterable[SpecifierRequirement]
) -> list[Version]:
    """Return the version of *chosen* and the newer ones that *needs* admit."""
    specifiers = [need.specifier for need in needs]
    found = plain.matching(chosen.project, specifiers)
    found += [listings.FUTURE] if allow(specifiers, str(listings.FUTURE)) else []
    return [each for each in found if each >= chosen.release]


def _needs(name: str, criteria: Mapping[str, Any]) -> list[SpecifierRequirement]:
    """Return the requirements for the versions of a project among resolvelib's *criteria*."""
    found = criteria[name].iter_requirement() if name in criteria else ()
    return [item for item in found if isinstance(item, SpecifierRequirement)]


def _as_listed(
    candidate: Candidate, project: Project, needs: Iterable[SpecifierRequirement]
) -> Iterator[str]:
    """Yield that a requirement with ``===`` leaves out the builds of the catalogue."""
    if (
        candidate.label is None
        and candidate.release in project.published
        and any("===" in item.specifier for item in needs)
    ):
        yield f"left out {catalogs.not_admitted(project.name, candidate.release)}"


def _allowed_hashes(requirement_set: RequirementSet) -> dict[str, Mapping[str, frozenset[str]]]:
    found: dict[str, Mapping[str, frozenset[str]]] = {}
    for wanted in (*requirement_set.requirements, *requirement_set.constraints):
        if not wanted.hashes:
            continue
        earlier = found.get(wanted.project)
        if earlier is None:
            found[wanted.project] = wanted.hashes
        else:  # both have to allow it
            found[wanted.project] = {
                name: earlier[name] & wanted.hashes[name]
                for name in earlier.keys() & wanted.hashes.keys()
            }
    return found


def _raise_missing(errors: Any, cause: Exception | None) -> None:  # noqa: ANN401
    found = list(map(str, errors))
    if found:
        raise NoSuchVariant("; ".join(found)) from cause


def version_note(
    package: Package,
    plain: IndexProvider,
    ordering: VariantOrdering[Candidate],
    criteria: Mapping[str, Any],
) -> VersionNote | None:
    """Return what to say of the version of *package*, see `VariantOrdering.version_note`.

    Args:
        package: what is taken of a project.
        plain: the provider of the resolution.
        ordering: of the resolution.
        criteria: resolvelib's, by identifier: what is required of each project.
    """
    if package.candidate.direct:
        return None
    requirements = [
        information.requirement
        for identifier, criterion in criteria.items()
        if split_identifier(identifier)[0] == package.name
        for information in criterion.information
    ]
    offered = plain.admitted(package.name, requirements)
    return ordering.version_note(package.name, package.candidate, offered)


class Relatives:
    """`Together` and `ExpectedLabels` of one resolution."""

    def __init__(
        self, finder: PackageFinder, wanted: Collection[str], constraints: Iterable[Wanted]
    ) -> None:
        """Set up.

        Args:
            finder: has the catalogue.
            wanted: normalized names of what the user asked for.
            constraints: may name the very build.
        """
        self._finder = finder
        self._constraints = [*constraints]
        self._wanted = sorted(wanted)

    def __call__(self, project: str, other: str) -> bool:
        """Return whether the two should have the same label."""
        return self._finder.entries.together(project, other)

    def expected_labels(self, project: str) -> Iterator[Collection[str]]:
        """Yield the labels, but null, of each wanted project that *project* belongs to.

        Those of its entry: no page is fetched for it, and some version may lack one.
        """
        for item in self._constraints:
            entry = self._finder.entries.entry(item.project)
            if entry is not None and self(project, item.project):
                yield from filter(None, [entry.labels_of(item.requirement.specifier)])
        for name in self._wanted:
            entry = self._finder.entries.entry(name)
            if name != project and entry is not None and self(project, name):
                yield frozenset(item.label for item in entry.variants) - {wheel_labels.NULL_LABEL}


@dataclass
class Notes:
    """`Listener` that collects what the user should know.

    Attributes:
        warnings: in order, each once.
        seen: metadata that decisions were about.
        lacking: warnings of what cannot be had for now.
        disagreements: where coherence could not be had, by project and version.
    """

    warnings: dict[str, None] = field(default_factory=dict)
    seen: list[Metadata] = field(default_factory=list)
    lacking: dict[str, None] = field(default_factory=dict)
    disagreements: dict[tuple[str, Hashable], list[str]] = field(default_factory=dict)

    def selected(self, project: str, version: Hashable, selection: Selection[Any]) -> None:
        """Take note of problems, and of plugins that were not run."""
        problems = wheel_selection.problems_of(project, version, selection)
        self.warnings.update(dict.fromkeys(problems))
        if any(each.may_pass for each in selection.problems.values()):
            self.lacking.update(dict.fromkeys(problems))
        for ranking in selection.rankings.values():
            self.seen.append(ranking.metadata)
            for notice in wheel_selection.notices(ranking):
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
    """Reports each step of a resolution, and logs why candidates are left."""

    def __init__(self, tell: Callable[[str], None] | None = None) -> None:
        self._tell = tell

    def pinning(self, candidate: Candidate) -> None:
        """Report what is pinned."""
        logger.debug("Pinning %s (%s)", candidate, candidate.filename)
        if self._tell is not None:
            self._tell(str(candidate))

    def rejecting_candidate(self, criterion: Any, candidate: Candidate) -> None:  # noqa: ANN401
        """Log what is in the way of *candidate*."""
        if logger.isEnabledFor(logging.DEBUG):
            needs = ", ".join(
                f"{item.requirement} (from {item.parent or 'the request'})"
                for item in criterion.information
            )
            logger.debug("Rejecting %s: %s", candidate, redacted(needs))
