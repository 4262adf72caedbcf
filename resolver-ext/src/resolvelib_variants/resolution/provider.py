"""The resolvelib provider over a shelf: plain, until `VariantProvider` is wrapped around it.

A project is one identifier and each of its extras another, whose candidates require the very
file they are an extra of. A distribution that turns out to be unusable requires something that
nobody can give, so that the resolver goes on to the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from packaging.markers import Marker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version
from resolvelib import AbstractProvider

from pep_variants.errors import InvalidMarker, redacted
from pep_variants.markers import NON_VARIANT, reduce_requirement
from pep_variants.metadata import Metadata

from ..index.pages import PageFile
from ..index.session import Session, local_path
from .ahead import Ahead
from .candidate import Candidate
from .catalog import Catalog
from .core_metadata import CoreMetadata, fetch_core_metadata
from .errors import RequirementError, UnusableFile
from .requirements import Wanted, distribution_name, is_directory
from .shelf import Shelf, is_pinned
from .source_tree import read_source_tree
from .target import Target
from .variant_metadata import fetch_variant_metadata

if TYPE_CHECKING:
    from resolvelib.resolvers import RequirementInformation

Reduce = Callable[[str], "str | None"]
Information = Any  # of resolvelib, whose type parameters differ between releases


@dataclass(frozen=True)
class Need:
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
    url: str | None = None
    order: int | None = None
    text: str = field(default="", compare=False)

    def __str__(self) -> str:
        return self.text or f"{self.project}{self.specifier}"


@dataclass(frozen=True)
class Exactly:
    """The file that an extra belongs to."""

    candidate: Candidate

    def __str__(self) -> str:
        return f"{self.candidate.project}=={self.candidate.version}"


@dataclass(frozen=True)
class Never:
    """What cannot be met, and why: the way to say that a candidate is unusable."""

    candidate: Candidate
    reason: str

    def __str__(self) -> str:
        return self.reason


if TYPE_CHECKING:
    Requires = Need | Exactly | Never
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
        ahead: Ahead,
        catalog: Catalog,
        shelf: Shelf,
        target: Target,
        *,
        constraints: Sequence[Wanted] = (),
        pre: bool = False,
    ) -> None:
        """Set up for one resolution.

        Args:
            session: what fetches.
            ahead: remembers what was fetched, also for other targets.
            catalog: all files.
            shelf: those for the target.
            target: what is resolved for.
            constraints: what has to hold for whatever is chosen.
            pre: take pre-releases as readily as final ones.
        """
        self.warnings: dict[str, None] = {}
        self.unusable: dict[Candidate, str] = {}
        self._session = session
        self._ahead = ahead
        self._catalog = catalog
        self._shelf = shelf
        self._target = target
        self._pre = pre
        self._constraints: dict[str, list[Wanted]] = {}
        for wanted in constraints:
            if self.applies(wanted.requirement.marker):
                self._constraints.setdefault(wanted.project, []).append(wanted)
        self._ranks: dict[str, tuple[bool, int, str]] = {}
        self._direct: dict[str, Candidate] = {}
        # The same texts come up thousands of times, and `packaging` takes its time.
        self._specifiers: dict[str, SpecifierSet] = {}
        self._matching: dict[tuple[str, frozenset[str]], tuple[list[Version], list[Version]]] = {}
        self._contained: dict[tuple[str, Version], bool] = {}
        self._satisfied: dict[tuple[str, str], bool] = {}
        self._holds: dict[tuple[str, str], bool] = {}
        self._parsed: dict[str, Requirement] = {}

    # --- what resolvelib asks

    def identify(self, requirement_or_candidate: Requires | Candidate) -> str:
        """Return ``project``, ``project[extra]``, or something unique for what cannot be."""
        item = requirement_or_candidate
        if isinstance(item, Exactly):
            return item.candidate.project
        if isinstance(item, Never):
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
            if isinstance(item, (Need, Exactly, Never, Candidate))
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
        if any(isinstance(item, Never) for item in wanted):
            return []
        excluded = set(incompatibilities.get(identifier, ()))
        project, extra = split_identifier(identifier)
        needs = [item for item in wanted if isinstance(item, Need)]
        self._rank(identifier, needs)
        exact = next((item.candidate for item in wanted if isinstance(item, Exactly)), None)
        url = next((item.url for item in needs if item.url is not None), None)
        if exact is None and url is not None:
            exact = self.direct_candidate(url)
        if exact is not None:
            exact = exact.with_extra(extra)
            met = exact not in excluded and all(
                self.is_satisfied_by(item, exact) for item in wanted
            )
            return [exact] if met and self._meets_constraints(exact) else []
        texts = [item.specifier for item in needs]
        texts += [str(item.requirement.specifier) for item in self._constraints.get(project, ())]
        find = partial(self._offered, project, extra, frozenset(texts), is_pinned(texts), excluded)
        # Look at the index now: whether there are variants is asked next.
        self._shelf.project(project)
        return find

    def is_satisfied_by(self, requirement: Requires, candidate: Candidate) -> bool:
        """Return whether *candidate* is of a version, or the file, that is required."""
        # Resolvers ask this of every pin in every round: millions of times in large resolutions.
        if type(requirement) is Need and requirement.url is None:
            known = self._satisfied.get((requirement.specifier, candidate.version_text))
            if known is not None:
                return known
        if isinstance(requirement, Never):
            return False
        if isinstance(requirement, Exactly):
            return requirement.candidate.with_extra(candidate.extra) == candidate
        if requirement.url is not None:
            return self.direct_candidate(requirement.url).filename == candidate.filename
        satisfied = self._contains(requirement.specifier, candidate.version)
        self._satisfied[requirement.specifier, candidate.version_text] = satisfied
        return satisfied

    def get_dependencies(self, candidate: Candidate) -> list[Requires]:
        """Return the requirements of a candidate that is no variant."""
        return self.dependencies(candidate, lambda text: reduce_requirement(text, NON_VARIANT))

    # --- what the wrapper asks

    def version(self, candidate: Candidate) -> Version:
        """Return its version."""
        return candidate.version

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
        if "!" in identifier:
            return False
        if any(item.project == project and item.label for item in self._direct.values()):
            return True
        # A project that is only wanted by the URL of a file need not be on any index.
        return not self._is_direct(project) and self._shelf.project(project).has_variants

    def metadata(self, project: str, candidate: Candidate) -> Metadata:  # noqa: ARG002
        """Return the variant metadata beside *candidate*; raises VariantError."""
        plain = candidate.base
        key = ("variants", plain.project, plain.version, plain.source)
        return self._ahead.result(key, partial(self._variant_metadata, plain))

    def dependencies(self, candidate: Candidate, reduce: Reduce) -> list[Requires]:
        """Return what *candidate* requires in the target's environment."""
        if candidate.extra:
            base = candidate.base
            found: list[Requires] = [Exactly(base)]
        else:
            base, found = candidate, []
        try:
            core = self.core_metadata(base)
            if not self._shelf.supports_python(core.requires_python):
                # As when the index says it: nothing to warn of.
                self.unusable[base] = f"it needs Python {core.requires_python}"
                return [Never(base, self.unusable[base])]
            if candidate.extra and candidate.extra not in core.extras:
                self._warn(f"{base} has no extra {candidate.extra!r}")
            for text in core.requires:
                reduced = reduce(text)
                if reduced is not None:
                    found += self._needs(reduced, candidate.extra)
        except (UnusableFile, InvalidMarker, InvalidRequirement, RequirementError) as error:
            reason = redacted(" ".join(str(error).split()))
            self._warn(f"{base} is left out: {reason}")
            self.unusable[base] = reason
            return [Never(base, reason)]
        for need in found:
            if isinstance(need, Need) and need.url is None:
                self._prepare(need)
        return found

    # --- what others ask

    def roots(self, wanted: Sequence[Wanted]) -> list[Requires]:
        """Return what the user asked for, as far as it applies to the target."""
        found: list[Requires] = []
        for order, item in enumerate(wanted):
            if self.applies(item.requirement.marker):
                found += self._expanded(item.requirement, str(item), order)
        for need in found:
            if isinstance(need, Need) and need.url is None:
                self._prepare(need)
        return found

    def core_metadata(self, candidate: Candidate) -> CoreMetadata:
        """Return what a file says of itself; raises UnusableFile, IndexProblem."""
        plain = candidate.base
        return self._ahead.result(
            ("core", plain), partial(fetch_core_metadata, self._session, plain)
        )

    def applies(self, marker: Marker | None, extra: str = "") -> bool:
        """Return whether *marker* holds for the target.

        With an *extra*: whether it holds because of it.
        """
        if marker is None:
            return not extra
        key = (str(marker), extra)
        if key not in self._holds:
            environment = dict(self._target.environment)
            held = marker.evaluate({**environment, "extra": extra})
            if held and extra:
                held = not marker.evaluate({**environment, "extra": ""})
            self._holds[key] = held
        return self._holds[key]

    def matching(self, project: str, specifiers: Iterable[str]) -> list[Version]:
        """Return the versions that meet all *specifiers*, newest first; pre-releases last."""
        finals, others = self._matching_versions(project, frozenset(specifiers))
        return [*finals, *others]

    def alternatives(self, candidate: Candidate) -> tuple[Candidate, ...]:
        """Return all files of its version that the target can use, of the same source.

        Source distributions do not count: they are not built here.
        """
        if candidate.direct:
            return (candidate.base,)
        return tuple(
            item
            for item in self._shelf.candidates(candidate.project, candidate.version, pinned=True)
            if item.source == candidate.source and (item.is_wheel or item == candidate.base)
        )

    def look_ahead(self, candidate: Candidate) -> None:
        """Begin to fetch what *candidate* says of itself."""
        plain = candidate.base
        self._ahead.start(("core", plain), partial(fetch_core_metadata, self._session, plain))

    # --- inside

    def _offered(
        self,
        project: str,
        extra: str,
        texts: frozenset[str],
        pinned: bool,
        excluded: set[Candidate],
    ) -> Iterator[Candidate]:
        finals, others = self._matching_versions(project, texts)
        anything = False
        for version in (*finals, *others):
            # Pre-releases only if nothing else is there, whatever has been found to conflict.
            if anything and others and version is others[0]:
                return
            for candidate in self._shelf.candidates(project, version, pinned=pinned):
                anything = True
                offered = candidate.with_extra(extra)
                if offered not in excluded:
                    yield offered

    def _matching_versions(
        self, project: str, texts: frozenset[str]
    ) -> tuple[list[Version], list[Version]]:
        """Return matching versions, newest first, and those for when there are none of these."""
        key = (project, texts)
        if key not in self._matching:
            fitting = [
                version
                for version in self._shelf.project(project).versions
                if all(self._contains(text, version) for text in texts)
            ]
            if self._pre or any(self._specifier(text).prereleases for text in texts):
                self._matching[key] = fitting, []
            else:
                self._matching[key] = (
                    [version for version in fitting if not version.is_prerelease],
                    [version for version in fitting if version.is_prerelease],
                )
        return self._matching[key]

    def _contains(self, text: str, version: Version) -> bool:
        key = (text, version)
        if key not in self._contained:
            self._contained[key] = self._specifier(text).contains(version, prereleases=True)
        return self._contained[key]

    def _specifier(self, text: str) -> SpecifierSet:
        if text not in self._specifiers:
            self._specifiers[text] = SpecifierSet(text)
        return self._specifiers[text]

    def _meets_constraints(self, candidate: Candidate) -> bool:
        return all(
            self._contains(str(item.requirement.specifier), candidate.version)
            for item in self._constraints.get(candidate.project, ())
        )

    def _rank(self, identifier: str, needs: Sequence[Need]) -> None:
        orders = [need.order for need in needs if need.order is not None]
        pinned = len(needs) == 0 or is_pinned([need.specifier for need in needs])
        self._ranks[identifier] = (not pinned, min(orders, default=1 << 30), identifier)

    def _needs(self, text: str, extra: str) -> list[Requires]:
        if text not in self._parsed:
            self._parsed[text] = Requirement(text)
        requirement = self._parsed[text]
        if not self.applies(requirement.marker, extra):
            return []
        return self._expanded(requirement, redacted(text.partition(";")[0].strip()), None)

    def _expanded(self, requirement: Requirement, text: str, order: int | None) -> list[Requires]:
        """Return the need for a project and one for each extra of it."""
        project = canonicalize_name(requirement.name)
        if requirement.url is not None:
            named = distribution_name(requirement.url)[0]
            if named != project:
                raise RequirementError(f"{text}: that is of {named}")
        specifier = str(requirement.specifier)
        extras = sorted(map(canonicalize_name, requirement.extras))
        return [
            Need(project, extra, specifier, requirement.url, order, text) for extra in ("", *extras)
        ]

    def _prepare(self, need: Need) -> None:
        """Begin to fetch what will be asked for next: page, then metadata of the best version."""
        if need.extra:
            return
        key = ("prepared", need.project, need.specifier, self._target.name)
        self._ahead.start(key, partial(self._prefetch, need))

    def _prefetch(self, need: Need) -> None:
        project = self._catalog.project(need.project)
        specifier = SpecifierSet(need.specifier)
        version = next(specifier.filter(project.versions), None)
        if version is None:
            return
        candidates = self._shelf.candidates(
            need.project, version, pinned=is_pinned([need.specifier])
        )
        variant = next((item for item in candidates if item.label is not None), None)
        if variant is not None:
            self.metadata(need.project, variant)
        elif candidates:
            self.core_metadata(candidates[0])

    def _variant_metadata(self, candidate: Candidate) -> Metadata:
        wheels = [
            item
            for item in self._shelf.candidates(candidate.project, candidate.version, pinned=True)
            if item.source == candidate.source and item.label is not None
        ]
        return fetch_variant_metadata(self._session, self._ahead, candidate, wheels)

    def direct_candidate(self, url: str) -> Candidate:
        """Return the candidate for a file that is wanted by its URL; raises RequirementError."""
        if url not in self._direct:
            name, version = distribution_name(url)
            core = read_source_tree(local_path(url)).core if is_directory(url) else None
            plain, _, fragment = url.partition("#")
            algorithm, equals, digest = fragment.partition("=")
            hashes = {algorithm: digest} if equals else {}
            filename = unquote(plain.partition("?")[0].rstrip("/").rpartition("/")[2])
            file = PageFile(filename, plain, hashes)
            self._direct[url] = Candidate(
                name, Version(version), filename, redacted(plain), file=file, direct=True, core=core
            )
        return self._direct[url]

    def _is_direct(self, project: str) -> bool:
        return any(item.project == project for item in self._direct.values())

    def _warn(self, text: str) -> None:
        self.warnings.setdefault(text)


def split_identifier(identifier: str) -> tuple[str, str]:
    """Return project and extra of what `IndexProvider.identify` returned."""
    project, _, extra = identifier.partition("!")[0].partition("[")
    return project, extra.rstrip("]")
