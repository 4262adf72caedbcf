"""The resolvelib provider over the files of indexes; `VariantProvider` adds the variants.

A project is one identifier and each of its extras another, whose candidates require the very
file they are an extra of. A distribution that turns out to be unusable requires something that
nothing satisfies, so that the resolver goes on to the next one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from packaging.markers import Marker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version
from resolvelib import AbstractProvider

from pep_variants import labels as wheel_labels
from pep_variants import markers, safe_files
from pep_variants.errors import InvalidMarker, redacted
from pep_variants.metadata import Metadata
from variants_index import finder as package_finder
from variants_index.finder import (
    Candidate,
    CandidateEvaluator,
    CoreMetadata,
    PackageFinder,
    Prefetcher,
    ReleaseMetadata,
    Session,
)
from variants_index.http import UnusableDistribution
from variants_index.pages import Links, PageFile
from variants_index.target import Target

from .errors import RequirementError
from .requirements import Wanted, distribution_name

Reduce = Callable[[str], "str | None"]
_REMEMBERED = 1 << 16
"""Of what resolvers ask thousands of times."""


@dataclass(frozen=True)
class SpecifierRequirement:
    """A project, or one of its extras, in some versions.

    Attributes:
        project: normalized name.
        extra: normalized name, empty for the project itself.
        specifier: of versions, as text; the same text means the same.
        url: the very file that is wanted, None for any.
        order: place among what the user asked for, None for what something else needs.
        text: for messages.
    """

    project: str
    extra: str
    specifier: str
    url: str | None
    order: int | None
    text: str = field(compare=False)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class ExplicitRequirement:
    """The file that an extra belongs to."""

    candidate: Candidate

    def __str__(self) -> str:
        return f"{self.candidate.project}=={self.candidate.version}"


@dataclass(frozen=True)
class UnsatisfiableRequirement:
    """What cannot be met, and why: the way to say that a candidate is unusable."""

    candidate: Candidate
    reason: str

    def __str__(self) -> str:
        return self.reason


@lru_cache(_REMEMBERED)
def specifier_set(text: str) -> SpecifierSet:
    """Return the specifiers in *text*."""
    return SpecifierSet(text)


@lru_cache(_REMEMBERED)
def contains(specifier: str, version: str) -> bool:
    """Return whether *specifier* allows *version*, pre-releases included."""
    return specifier_set(specifier).contains(version, prereleases=True)


def allow(specifiers: Iterable[str], version: str) -> bool:
    """Return whether all *specifiers* allow *version*, pre-releases included."""
    return all(contains(specifier, version) for specifier in specifiers)


parsed = lru_cache(_REMEMBERED)(Requirement)


def split_identifier(identifier: str) -> tuple[str, str]:
    """Return project and extra of what `IndexProvider.identify` returned."""
    project, _, extra = identifier.partition("!")[0].partition("[")
    return project, extra.rstrip("]")


if TYPE_CHECKING:
    from resolvelib.resolvers import RequirementInformation

    Requires = SpecifierRequirement | ExplicitRequirement | UnsatisfiableRequirement
    _Base = AbstractProvider[Any, Candidate, str]
else:
    _Base = AbstractProvider  # resolvelib 1.0 has no type parameters at run time


class IndexProvider(_Base):
    """Provider and, for `VariantProvider`, `ProviderFiles` at once.

    Attributes:
        warnings: what the user should know, in order, each once.
        unusable: why files cannot be used that looked as if they could.
    """

    def __init__(
        self,
        session: Session,
        prefetcher: Prefetcher,
        finder: PackageFinder,
        evaluator: CandidateEvaluator,
        target: Target,
        *,
        constraints: Sequence[Wanted] = (),
        pre: bool = False,
        provided: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Set up for one resolution.

        Args:
            session: what fetches.
            prefetcher: remembers what was fetched, also for other targets.
            finder: all files.
            evaluator: those for the target.
            target: what is resolved for.
            constraints: what has to hold for whatever is chosen.
            pre: take pre-releases as readily as final ones.
            provided: for projects that are not to be installed, the one that stands for each.
        """
        self.warnings: dict[str, None] = {}
        self.unusable: dict[Candidate, str] = {}
        self._session = session
        self._prefetcher = prefetcher
        self._finder = finder
        self._evaluator = evaluator
        self._target = target
        self._held: dict[tuple[str, str], bool] = {}  # by marker and extra
        self._direct: dict[str, Candidate] = {}  # by URL
        self._constraints: dict[str, list[Wanted]] = {}
        self._constrained: dict[str, list[Candidate]] = {}  # to files
        for wanted in constraints:
            if self._applies(wanted.requirement.marker):
                self._constraints.setdefault(wanted.project, []).append(wanted)
                if (url := wanted.requirement.url) is not None:
                    file = self._named_by(url, wanted.project)
                    self._constrained.setdefault(wanted.project, []).append(file)
        self._ranks: dict[str, tuple[bool, int, str]] = {}
        self._pre = pre
        self._matching: dict[tuple[str, frozenset[str]], tuple[list[Version], list[Version]]] = {}
        self._provided = provided
        self._exact: set[str] = set()  # required with ``===``

    # --- what resolvelib asks

    def identify(self, requirement_or_candidate: Requires | Candidate) -> str:
        """Return ``project``, ``project[extra]``, or something unique for what cannot be."""
        item = requirement_or_candidate
        if isinstance(item, ExplicitRequirement):
            return item.candidate.project
        if isinstance(item, UnsatisfiableRequirement):
            return f"{item.candidate.project}!{item.candidate.file.url}"
        return f"{item.project}[{item.extra}]" if item.extra else item.project

    def get_preference(
        self,
        identifier: str,
        resolutions: Mapping[str, Candidate],  # noqa: ARG002
        candidates: Mapping[str, Iterator[Candidate]],  # noqa: ARG002
        information: Mapping[str, Iterator[RequirementInformation[Any, Candidate]]],  # noqa: ARG002
        backtrack_causes: Sequence[RequirementInformation[Any, Candidate]],  # noqa: ARG002
    ) -> tuple[bool, int, str]:
        """Return: pinned ones first, then in the user's order, then by name."""
        return self._ranks.get(identifier, (True, 0, identifier))

    def narrow_requirement_selection(
        self,
        identifiers: Iterable[str],
        resolutions: Mapping[str, Candidate],  # noqa: ARG002
        candidates: Mapping[str, Iterator[Candidate]],  # noqa: ARG002
        information: Mapping[str, Iterator[RequirementInformation[Any, Candidate]]],  # noqa: ARG002
        backtrack_causes: Sequence[RequirementInformation[Any, Candidate]],
    ) -> Iterable[str]:
        """Return those that were in the way last time, if any: they are settled first."""
        if not backtrack_causes:
            return identifiers
        guilty = {
            self.identify(item)
            for cause in backtrack_causes
            for item in (cause.requirement, cause.parent)
            # The wrapper has requirements of its own.
            if isinstance(
                item,
                (SpecifierRequirement, ExplicitRequirement, UnsatisfiableRequirement, Candidate),
            )
        }
        found = list(identifiers)
        return [identifier for identifier in found if identifier in guilty] or found

    def find_matches(
        self,
        identifier: str,
        requirements: Mapping[str, Iterator[Any]],
        incompatibilities: Mapping[str, Iterator[Candidate]],
    ) -> Callable[[], Iterator[Candidate]] | Sequence[Candidate]:
        """Return what meets all requirements, newest version first; versions one by one."""
        wanted = list(requirements[identifier])
        if any(isinstance(item, UnsatisfiableRequirement) for item in wanted):
            return []
        excluded = set(incompatibilities.get(identifier, ()))
        project, extra = split_identifier(identifier)
        needs = [item for item in wanted if isinstance(item, SpecifierRequirement)]
        self._rank(identifier, needs)
        exact = next(
            (item.candidate for item in wanted if isinstance(item, ExplicitRequirement)), None
        )
        named = [self._named_by(item.url, project) for item in needs if item.url is not None]
        named += self._constrained.get(project, ())
        if exact is None and named:
            exact = named[0]
        if exact is not None:
            exact = exact.with_extra(extra)
            met = (
                exact not in excluded
                and all(self.is_satisfied_by(item, exact) for item in wanted)
                and all(item.filename == exact.filename for item in named)
            )
            return [exact] if met and allow(self._specifiers(project), exact.version_text) else []
        offered = self._stand_ins if project in self._provided else self._offered
        find = partial(offered, project, extra, self._specifiers(project, needs), excluded)
        # Look at the index now: whether there are variants is asked next.
        self._evaluator.project(project)
        return find

    def is_satisfied_by(self, requirement: Requires, candidate: Candidate) -> bool:
        """Return whether *candidate* is of a version, or the file, that is required."""
        # Resolvers ask this of every pin in every round: millions of times in large resolutions.
        if type(requirement) is SpecifierRequirement:
            if requirement.url is not None:
                named = self._named_by(requirement.url, requirement.project)
                return named.filename == candidate.filename
            return contains(requirement.specifier, candidate.version_text)
        if isinstance(requirement, ExplicitRequirement):
            return requirement.candidate.with_extra(candidate.extra) == candidate
        return False

    def get_dependencies(self, candidate: Candidate) -> list[Requires]:
        """Return the requirements of a non-variant candidate."""
        return self.dependencies(
            candidate, lambda text: markers.reduce_requirement(text, markers.NON_VARIANT)
        )

    # --- what the wrapper asks

    def version(self, candidate: Candidate) -> Version:
        """Return the version that it is a file of."""
        return candidate.release

    def filename(self, candidate: Candidate) -> str:
        """Return its filename."""
        return candidate.filename

    def source(self, candidate: Candidate) -> str:
        """Return where it was found."""
        return candidate.source

    def project(self, identifier: str) -> str:
        """Return the project of an identifier."""
        return split_identifier(identifier)[0]

    def has_variants(self, identifier: str) -> bool:
        """Return whether there are variant wheels of a project."""
        project = split_identifier(identifier)[0]
        if "!" in identifier or project in self._provided:
            return False
        direct = [item for item in self._direct.values() if item.project == project]
        if any(item.label for item in direct):
            return True
        # A project that is only wanted by the URL of a file need not be on any index.
        return not direct and self._evaluator.project(project).has_variants

    def is_build(self, candidate: Candidate) -> bool:
        """Return whether a file without label is a variant; not if the user names the very file."""
        project = candidate.project
        is_asked = project in self._exact or self._evaluator.has_hashes(project)
        return candidate.is_build and not is_asked

    def metadata_hash(self, candidate: Candidate) -> tuple[tuple[str, str], ...] | None:
        """Return the hashes of METADATA that its page gives, None if it gives none."""
        known = None if candidate.catalog else candidate.file.core_metadata  # it may add some
        return tuple(sorted((known or {}).items())) or None

    def metadata(self, project: str, candidate: Candidate) -> Metadata:  # noqa: ARG002
        """Return the variant metadata beside *candidate*; raises VariantError."""
        return self.release_metadata(candidate).metadata

    def release_metadata(self, candidate: Candidate) -> ReleaseMetadata:
        """Return the variant metadata of the version of *candidate*; raises VariantError."""
        return self._evaluator.release_metadata(candidate)

    def dependencies(self, candidate: Candidate, reduce: Reduce) -> list[Requires]:
        """Return what *candidate* requires in the target's environment."""
        if candidate.extra:
            base = candidate.base
            found: list[Requires] = [ExplicitRequirement(base)]
        else:
            base, found = candidate, []
        build = self._provided.get(candidate.project)
        if build is not None:
            text = f"{build}{candidate.extra and f'[{candidate.extra}]'}=={candidate.version}"
            return self._prefetched([*found, *self._expanded(Requirement(text), text, None)])
        try:
            core = self.core_metadata(base)
            if not self._evaluator.supports_python(core.requires_python):
                # As when the index says it: nothing to warn of.
                self.unusable[base] = f"it needs Python {core.requires_python}"
                return [UnsatisfiableRequirement(base, self.unusable[base])]
            if candidate.extra and candidate.extra not in core.extras:
                self._warn(f"{base} has no extra {candidate.extra!r}")
            for text in core.requires:
                reduced = reduce(text)
                if reduced is not None:
                    found += self._needs(reduced, candidate.extra, base.file.url)
        except (UnusableDistribution, InvalidMarker, InvalidRequirement, RequirementError) as error:
            reason = redacted(" ".join(str(error).split()))
            self._warn(f"{base} is left out: {reason}")
            self.unusable[base] = reason
            return [UnsatisfiableRequirement(base, reason)]
        return self._prefetched(found)

    # --- what others ask

    def roots(self, wanted: Sequence[Wanted]) -> list[Requires]:
        """Return what the user asked for, as far as it applies to the target."""
        found: list[Requires] = []
        for order, item in enumerate(wanted):
            if self._applies(item.requirement.marker):
                found += self._expanded(item.requirement, str(item), order)
        return self._prefetched(found)

    def core_metadata(self, candidate: Candidate) -> CoreMetadata:
        """Return what a file says of itself; raises UnusableDistribution, PackageIndexError."""
        plain = candidate.base
        return self._prefetcher.result(
            ("core", plain), partial(package_finder.fetch_core_metadata, self._session, plain)
        )

    def matching(self, project: str, specifiers: Iterable[str]) -> list[Version]:
        """Return the versions that meet all *specifiers*, newest first; pre-releases last."""
        return [*itertools.chain(*self._versions(project, frozenset(specifiers)))]

    def admitted(self, project: str, requirements: Iterable[Any]) -> Iterator[Candidate]:
        """Yield the files of the final versions that *requirements* and constraints admit.

        Newest first. Requirements of other kinds, as of the wrapper, are left out.
        """
        if project in self._provided or not self._evaluator.project(project).has_variants:
            return
        needs = [item for item in requirements if isinstance(item, SpecifierRequirement)]
        yield from self._offered(project, "", self._specifiers(project, needs), set())

    def _specifiers(
        self, project: str, needs: Iterable[SpecifierRequirement] = ()
    ) -> frozenset[str]:
        """Return all specifiers that versions of *project* have to meet."""
        constraints = self._constraints.get(project, ())
        return frozenset(
            (
                *(need.specifier for need in needs),
                *(str(item.requirement.specifier) for item in constraints),
            )
        )

    def _offered(
        self, project: str, extra: str, texts: frozenset[str], excluded: set[Candidate]
    ) -> Iterator[Candidate]:
        pinned = package_finder.is_pinned([*texts])
        self._exact.update([project] if any("===" in text for text in texts) else ())
        finals, others = self._versions(project, texts)
        anything = False
        for version in (*finals, *others):
            # Pre-releases only if nothing else is there, whatever has been found to conflict.
            if anything and others and version is others[0]:
                return
            for candidate in self._evaluator.candidates(project, version, pinned=pinned):
                if not allow(texts, candidate.version_text):
                    continue  # another build of the version
                anything = True
                offered = candidate.with_extra(extra)
                if offered not in excluded:
                    yield offered

    def _stand_ins(self, project: str, *wanted: Any) -> Iterator[Candidate]:  # noqa: ANN401
        """Yield what stands for *project*; the rest as of `_offered`."""
        for candidate in self._offered(self._provided[project], *wanted):
            yield replace(candidate, project=project)

    def _versions(self, project: str, texts: frozenset[str]) -> tuple[list[Version], list[Version]]:
        """Return the versions of *project* that all specifiers *texts* allow, newest first.

        A version of which the catalogue knows files with local versions counts if they allow one
        of these.

        Returns:
            Those to take; and the pre-releases, for when no file of the former can be used.
        """
        key = (project, texts)
        if key not in self._matching:
            known = self._evaluator.project(project)
            fitting = [
                version
                for version in known.versions
                if any(
                    allow(texts, str(spelled))
                    for spelled in (version, *known.published.get(version, ()))
                )
            ]
            if self._pre or any(specifier_set(text).prereleases for text in texts):
                self._matching[key] = fitting, []
            else:
                self._matching[key] = (
                    [version for version in fitting if not version.is_prerelease],
                    [version for version in fitting if version.is_prerelease],
                )
        return self._matching[key]

    def _applies(self, marker: Marker | None, extra: str = "") -> bool:
        """Return whether *marker* holds on the target; with *extra*, whether because of that."""
        if marker is None:
            return not extra
        key = (str(marker), extra)
        if key not in self._held:
            environment = dict(self._target.environment)
            held = marker.evaluate({**environment, "extra": extra})
            if held and extra:
                held = not marker.evaluate({**environment, "extra": ""})
            self._held[key] = held
        return self._held[key]

    def _named_by(self, url: str, project: str) -> Candidate:
        """Return the file of *project* that is named by *url*; raises RequirementError."""
        if url not in self._direct:
            name, version = _check_named(url, project)
            plain, _, fragment = url.partition("#")
            algorithm, equals, digest = fragment.partition("=")
            hashes = {algorithm: digest} if equals else {}
            self._direct[url] = Candidate(
                name,
                Version(version),
                redacted(plain),
                PageFile(wheel_labels.filename_of_url(plain), plain, hashes),
                direct=True,
            )
        return self._direct[url]

    def _rank(self, identifier: str, needs: Sequence[SpecifierRequirement]) -> None:
        orders = [need.order for need in needs if need.order is not None]
        pinned = len(needs) == 0 or package_finder.is_pinned([need.specifier for need in needs])
        self._ranks[identifier] = (not pinned, min(orders, default=1 << 30), identifier)

    def _needs(self, text: str, extra: str, source: str) -> list[Requires]:
        """Return what a dependency of the file at *source* asks for; raises RequirementError."""
        requirement = parsed(text)
        if not self._applies(requirement.marker, extra):
            return []
        place = redacted(text.partition(";")[0].strip())
        if requirement.url is not None:
            if safe_files.is_local(requirement.url) and Links(source).join(requirement.url) is None:
                raise RequirementError(f"{place}: only a local file may require a local file")
            self._session.addresses.allow_links(source, (requirement.url,))
        return self._expanded(requirement, place, None)

    def _expanded(self, requirement: Requirement, text: str, order: int | None) -> list[Requires]:
        """Return the need for a project and one for each extra of it."""
        project = canonicalize_name(requirement.name)
        if requirement.url is not None:
            _check_named(requirement.url, project)
        specifier = str(requirement.specifier)
        extras = sorted(map(canonicalize_name, requirement.extras))
        return [
            SpecifierRequirement(project, extra, specifier, requirement.url, order, text)
            for extra in ("", *extras)
        ]

    def _prefetched(self, needs: list[Requires]) -> list[Requires]:
        """Return *needs*, whose pages and metadata of the best version begin to be fetched."""
        for need in needs:
            if isinstance(need, SpecifierRequirement) and need.url is None and not need.extra:
                key = ("prepared", need.project, need.specifier, self._target.name)
                self._prefetcher.start(key, partial(self._prefetch, need))
        return needs

    def _prefetch(self, need: SpecifierRequirement) -> None:
        versions = self._finder.project(need.project).versions
        version = next(specifier_set(need.specifier).filter(versions), None)
        if version is None:
            return
        pinned = package_finder.is_pinned([need.specifier])
        candidates = self._evaluator.candidates(need.project, version, pinned=pinned)
        variant = next((item for item in candidates if item.label is not None), None)
        if variant is not None:
            self.metadata(need.project, variant)
        elif candidates:
            self.core_metadata(candidates[0])

    def _warn(self, text: str) -> None:
        self.warnings.setdefault(text)


def _check_named(url: str, project: str) -> tuple[str, str]:
    """Return name and version of the file at *url*; raises RequirementError for another project."""
    name, version = distribution_name(url)
    if name != project:
        raise RequirementError(f"{project} @ {redacted(url)}: the file is of {name}")
    return name, version
