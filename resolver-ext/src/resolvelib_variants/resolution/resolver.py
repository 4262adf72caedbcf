"""Resolving over real indexes: requirements and a target in, every file to install out."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from packaging.version import Version
from resolvelib import BaseReporter, ResolutionImpossible, ResolutionTooDeep, Resolver

from pep_variants.detection import Detector
from pep_variants.errors import NoSuchVariant, redacted
from pep_variants.explanation import notices
from pep_variants.generation import V0_1_1, V0_2_0
from pep_variants.markers import NON_VARIANT, VariantContext, reduce_requirement
from pep_variants.platform import Platform, load_platform
from pep_variants.plugins import PluginRunner, Sources
from pep_variants.preferences import Preferences
from pep_variants.selection import Selection
from pep_variants.writer import metadata_to_tree

from ..index.errors import BadAnswer
from ..index.ranges import MAX_DOWNLOAD
from ..index.session import Digests, Session
from ..index.store import Store
from ..provider import VariantProvider
from .ahead import Ahead
from .candidate import Candidate
from .catalog import Catalog
from .errors import NoSolution
from .failure import explain_failure
from .provider import Exactly, IndexProvider, Need, split_identifier
from .requirements import Wishes
from .result import Package, Resolution
from .shelf import Shelf
from .target import Target
from .variant_metadata import fetch_document

MAX_ROUNDS = 200_000
"""More than any real resolution takes; one that goes on that long would go on for days."""

NOT_HERE = "detection on this machine, which is not the target,"


class IndexResolver:
    """Resolves over the user's indexes, for any number of targets; what is fetched is shared.

    Use it as a context manager, or `close` it.

    Attributes:
        session: what fetches.
        catalog: all files of all sources.
    """

    def __init__(
        self,
        sources: Sources,
        *,
        preferences: Preferences | None = None,
        store: Store | None = None,
        environ: Mapping[str, str] | None = None,
        threads: int = 16,
        session: Session | None = None,
    ) -> None:
        """Set up.

        Args:
            sources: indexes and directories.
            preferences: what the user asked for about variants.
            store: the cache, None for none.
            environ: environment variables, those of this process by default.
            threads: how many fetch ahead.
            session: in place of one that is made from *sources*, *store* and *environ*.
        """
        self.preferences = preferences or Preferences()
        self.session = session or Session(
            sources, store=store, environ=os.environ if environ is None else environ
        )
        self.ahead = Ahead(threads)
        self.catalog = Catalog(self.session, sources, self.ahead)
        self._sources = sources
        # By identity, which the targets in here keep: names are for people.
        self._detectors: dict[int, tuple[Target, Detector]] = {}

    def __enter__(self) -> IndexResolver:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop what is still being fetched and close all connections."""
        self.ahead.close()
        self.session.close()

    def detector(self, target: Target) -> Detector:
        """Return what answers which variants *target* supports.

        Raises:
            PlatformFileError: the platform file that is preferred cannot be read.
            PreferenceError: an allowed provider makes no sense.
        """
        if id(target) not in self._detectors:
            platform = target.platform
            wishes = self.preferences
            if platform is None and wishes.platform_file is not None:
                platform = load_platform(wishes.platform_file)
            if platform is None and not target.here:
                platform = Platform(source=NOT_HERE)
            runner = None
            if wishes.allow_providers and platform is None:
                runner = PluginRunner(wishes.allow_providers, self._sources)
            detector = Detector(
                environment=target.environment,
                enabled=wishes.enable,
                platform=platform,
                runner=runner,
            )
            self._detectors[id(target)] = target, detector
        return self._detectors[id(target)][1]

    def resolve(
        self,
        wishes: Wishes,
        target: Target,
        progress: Callable[[str], None] | None = None,
        *,
        every_variant: bool = False,
    ) -> Resolution:
        """Return what has to be installed on *target*.

        Args:
            wishes: requirements and constraints; where from is what *sources* said already.
            target: the machine.
            progress: hears what is being done, in a few words, often.
            every_variant: also take in what the other variants of each version depend on, so
                that any of them can be installed instead: see `Package.alternatives`.

        Raises:
            NoSolution: no files meet all requirements; says why.
            NoSuchVariant: a forced label does not exist or does not fit.
            IndexProblem: an index does not answer.
            VariantError: a platform file or preference makes no sense.
        """
        hashes = _allowed_hashes(wishes)
        shelf = Shelf(self.catalog, target, hashes)
        plain = IndexProvider(
            self.session,
            self.ahead,
            self.catalog,
            shelf,
            target,
            constraints=wishes.constraints,
            pre=wishes.pre,
        )
        notes = Notes()
        kind = _EveryVariant if every_variant else _Provider
        provider = kind(
            plain,
            plain,
            platform=self.detector(target).platform,
            preferences=self.preferences,
            listener=notes,
        )
        roots = plain.roots(wishes.requirements)
        reporter = _Progress(progress) if progress else BaseReporter()
        resolver: Resolver[Any, Candidate, str] = Resolver(provider, reporter)
        try:
            result = resolver.resolve(roots, max_rounds=MAX_ROUNDS)
        except ResolutionImpossible as error:
            _raise_missing(provider.arranger.missing.values(), error)
            failure = explain_failure(error.causes, provider, plain, shelf, self.catalog)
            if isinstance(provider, _EveryVariant):
                parents = {item.parent.project: None for item in error.causes if item.parent}
                torn = [text for name in sorted(parents) for text in provider.contradictions(name)]
                if torn:
                    failure = NoSolution(f"{torn[0]}: {_APART}", tuple(torn[1:]))
            raise failure from error
        except ResolutionTooDeep:
            raise NoSolution(
                f"no solution was found in {MAX_ROUNDS:,} steps: pin some versions with ==, "
                "or add constraints with -c"
            ) from None
        chosen = {split_identifier(identifier)[0] for identifier in result.mapping}
        _raise_missing(
            (error for name, error in provider.arranger.missing.items() if name not in chosen),
            None,
        )
        editable = {item.project for item in wishes.requirements if item.editable}
        packages = tuple(
            replace(package, editable=package.candidate.is_directory and package.name in editable)
            for package in _packages(result, roots, plain, provider, self.preferences)
        )
        self._check_hashes(packages, hashes)
        warnings = [*plain.warnings, *notes.warnings]
        for package in packages:
            if package.file.yanked is not None:
                reason = package.file.yanked or "no reason given"
                warnings.append(f"{package.candidate} is yanked: {reason}")
            if not package.candidate.direct:
                warnings += self.catalog.project(package.name).warnings
            if isinstance(provider, _EveryVariant):
                warnings += (
                    f"{text}, so {package.version} is taken: {_APART}"
                    for text in provider.contradictions(package.name, package.version)
                )
        requested: dict[str, frozenset[str]] = {}
        for need in roots:
            if isinstance(need, Need):
                requested[need.project] = requested.get(need.project, frozenset()) | {need.extra}
        return Resolution(target, packages, tuple(dict.fromkeys(warnings)), requested)

    def _check_hashes(
        self, packages: Sequence[Package], allowed: Mapping[str, Mapping[str, frozenset[str]]]
    ) -> None:
        if not allowed:
            return
        lacking = [package.name for package in packages if package.name not in allowed]
        if lacking:
            raise NoSolution(
                "some requirements have a --hash, so all need one, but there is none for: "
                f"{', '.join(lacking)}"
            )
        for package in packages:
            algorithms = allowed[package.name]
            if any(name in package.file.hashes for name in algorithms):
                continue  # compared when it was put on the shelf
            found = self.digests(package.candidate, algorithms)
            if not any(found[name] in algorithms[name] for name in algorithms):
                place = redacted(package.file.url)
                raise BadAnswer(f"{place}: has none of the hashes that the requirements allow")

    def digests(self, candidate: Candidate, algorithms: Iterable[str]) -> dict[str, str]:
        """Return hexadecimal digests of a file, which is downloaded for it."""
        url = candidate.file.url
        check = Digests.of(algorithms)
        size = 0
        with self.session.stream(url) as chunks:
            for chunk in chunks:
                size += len(chunk)
                if size > MAX_DOWNLOAD:
                    raise BadAnswer(f"{redacted(url)}: is larger than {MAX_DOWNLOAD} bytes")
                check.update(chunk)
        return check.found

    def variant_document(self, package: Package) -> dict[str, Any]:
        """Return the variant metadata that *package* was chosen by, as its source has it.

        What was put together from wheels is written in the newest format that can say it.

        Raises:
            MetadataError: there is no format to write it in.
        """
        assert package.metadata is not None
        if package.candidate.metadata is not None and not package.candidate.direct:
            data = fetch_document(self.session, self.ahead, package.candidate.metadata)
            tree = json.loads(data)
            assert isinstance(tree, dict)  # it was read before
            return tree
        generation = V0_2_0 if package.metadata.providers else V0_1_1
        return metadata_to_tree(package.metadata, generation)


class _Provider(VariantProvider[Any, Candidate, str]):
    """Fetches metadata of what the resolver is likely to take, while it looks at the rest."""

    def find_matches(
        self,
        identifier: str,
        requirements: Mapping[str, Iterator[Any]],
        incompatibilities: Mapping[str, Iterator[Candidate]],
    ) -> Any:  # noqa: ANN401 - what resolvelib calls `Matches`
        matches = super().find_matches(
            identifier=identifier, requirements=requirements, incompatibilities=incompatibilities
        )
        if not callable(matches):
            return matches
        return lambda: self._looking_ahead(iter(matches()))

    def _looking_ahead(self, candidates: Iterator[Candidate]) -> Iterator[Candidate]:
        first = next(candidates, None)
        if first is not None:
            self.look_ahead(first)
            yield first
            yield from candidates


_APART = (
    "not every variant fits into one lock file; lock each target in a file of its own, "
    "with the variants that are chosen for it alone"
)


class _EveryVariant(_Provider):
    """Requires what any variant of a version requires."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **kwargs)
        # By project and version: which labels have a requirement.
        self._needs: dict[tuple[str, Version], dict[Need, list[str]]] = {}

    def contradictions(self, project: str, newer_than: Version | None = None) -> Iterator[str]:
        """Yield why versions of *project* cannot be had with all of their variants.

        Args:
            project: normalized name.
            newer_than: only versions that are; all by default.
        """
        for (name, version), needs in self._needs.items():
            if name != project or (newer_than is not None and version <= newer_than):
                continue
            by_project: dict[str, list[Need]] = {}
            for need in needs:
                if need.url is None and not need.extra:
                    by_project.setdefault(need.project, []).append(need)
            for other, wanted in by_project.items():
                specifiers = [need.specifier for need in wanted]
                if not self.matching(other, specifiers) and all(
                    self.matching(other, [specifier]) for specifier in specifiers
                ):
                    listed = "; ".join(
                        f"{other}{need.specifier} for {', '.join(sorted(needs[need]))}"
                        for need in wanted
                    )
                    yield (
                        f"the variants of {project} {version} need different versions of {other} "
                        f"({listed})"
                    )

    def _dependencies(self, candidate: Candidate) -> Iterable[Any]:
        """Return the requirements of all files of the version, each once."""
        files = self.alternatives(candidate)
        if len(files) == 1:
            return super()._dependencies(candidate)
        selection = self.arranger.selection(candidate.project, candidate)
        ranking = selection.rankings.get(candidate.source) if selection else None
        found: dict[Any, None] = {}
        for file in {file.label: file for file in reversed(files)}.values():
            context = NON_VARIANT
            if file.label is not None and ranking is not None:
                label = ranking.metadata.label_of(file.label)
                context = VariantContext(file.label, ranking.metadata.properties_of(label) or {})
            for item in self.dependencies(file, partial(reduce_requirement, context=context)):
                if isinstance(item, Need):
                    needs = self._needs.setdefault((candidate.project, candidate.version), {})
                    labels = needs.setdefault(item, [])
                    if (label := file.label or "what is no variant") not in labels:
                        labels.append(label)
                # The extra's own file is the one that was chosen.
                found.setdefault(Exactly(candidate.base) if isinstance(item, Exactly) else item)
        return list(found)


@dataclass
class Notes:
    """`Listener` that collects what the user should know.

    Attributes:
        warnings: in order, each once.
    """

    warnings: dict[str, None] = field(default_factory=dict)

    def selected(self, project: str, version: Hashable, selection: Selection[Any]) -> None:
        """Take note of problems, and of plugins that were not run."""
        for problem in selection.problems.values():
            self._add(f"The variant wheels of {project} {version} are ignored. {problem}")
        if selection.unknown:
            self._add(
                f"Variants of {project} {version} that its metadata does not know are ignored: "
                f"{', '.join(selection.unknown)}"
            )
        for ranking in selection.rankings.values():
            for notice in notices(ranking):
                if notice.actionable:
                    self._add(notice.text)

    def failed(self, project: str, version: Hashable, error: Exception) -> None:
        """Take note of a fault of this software."""
        self._add(f"The variant wheels of {project} {version} are ignored. {error}")

    def disagreed(self, project: str, version: Hashable, namespace: str, other: object) -> None:
        """Take note that coherence was asked for and could not be had."""
        self._add(f"No variant of {project} {version} agrees with {other} in {namespace!r}")

    def _add(self, text: str) -> None:
        self.warnings.setdefault(text)


if TYPE_CHECKING:
    _Reporter = BaseReporter[Any, Candidate, str]
else:
    _Reporter = BaseReporter  # resolvelib 1.0 has no type parameters at run time


class _Progress(_Reporter):
    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._round = 0

    def starting_round(self, index: int) -> None:
        self._round = index

    def pinning(self, candidate: Candidate) -> None:
        self._tell(f"step {self._round + 1}: {candidate}")


def _allowed_hashes(wishes: Wishes) -> dict[str, Mapping[str, frozenset[str]]]:
    found: dict[str, Mapping[str, frozenset[str]]] = {}
    for wanted in (*wishes.requirements, *wishes.constraints):
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


def _packages(
    result: Any,  # noqa: ANN401 - of resolvelib
    roots: Sequence[Any],
    plain: IndexProvider,
    provider: VariantProvider[Any, Candidate, str],
    preferences: Preferences,
) -> tuple[Package, ...]:
    extras: dict[str, set[str]] = {}
    files: dict[str, Candidate] = {}
    for identifier, candidate in result.mapping.items():
        project, extra = split_identifier(identifier)
        if extra:
            extras.setdefault(project, set()).add(extra)
        else:
            files[project] = candidate
    requested = {need.project for need in roots if isinstance(need, Need)}
    depends: dict[str, set[str]] = {}
    for start, end in result.graph.iter_edges():
        if start is not None:
            depends.setdefault(split_identifier(start)[0], set()).add(split_identifier(end)[0])
    packages = []
    for name in sorted(files):
        package = _package(files[name], plain, provider, preferences)
        packages.append(
            replace(
                package,
                extras=tuple(sorted(extras.get(name, ()))),
                depends=tuple(sorted(depends.get(name, set()) & files.keys() - {name})),
                requested=name in requested,
            )
        )
    return tuple(packages)


def _package(
    candidate: Candidate,
    plain: IndexProvider,
    provider: VariantProvider[Any, Candidate, str],
    preferences: Preferences,
) -> Package:
    project = candidate.project
    selection = provider.arranger.selection(project, candidate)
    ranking = None if selection is None else selection.rankings.get(candidate.source)
    label = candidate.label
    context = provider.arranger.context(project, candidate)
    alternatives: tuple[Candidate, ...] = (candidate,)
    if isinstance(provider, _EveryVariant):
        alternatives = plain.alternatives(candidate)
    one_each = {file.label or "": file for file in (*reversed(alternatives), candidate)}
    requires_dist = {
        label: plain.core_metadata(file).requires for label, file in sorted(one_each.items())
    }
    requires = (reduce_requirement(text, context) for text in requires_dist[label or ""])
    properties = metadata = None
    if ranking is not None and label is not None:
        metadata = ranking.metadata
        properties = metadata.properties_of(metadata.label_of(label))
    return Package(
        project,
        candidate.version,
        candidate,
        properties=properties,
        why=why_this(candidate, selection, preferences),
        requires=tuple(text for text in requires if text is not None),
        requires_dist=requires_dist,
        alternatives=alternatives,
        metadata=metadata,
    )


def why_this(
    candidate: Candidate, selection: Selection[Candidate] | None, preferences: Preferences
) -> str:
    """Return in a few words why this file of its version; empty if there was no choice."""
    if candidate.project in preferences.forced:
        return "asked for"
    if selection is None or not selection.rankings:
        return ""
    best = selection.chosen.label if selection.chosen else None
    own = next(
        (
            file
            for file in selection.files
            if (file.filename, file.source) == (candidate.filename, candidate.source)
        ),
        None,
    )
    why = selection.why(own) if own is not None else ""
    if candidate.label != best:
        return f"instead of {best}" + (f": {why}" if why else "")
    return why or f"no {'variant' if candidate.label is None else 'other variant'} fits"
