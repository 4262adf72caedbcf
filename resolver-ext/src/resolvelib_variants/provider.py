"""The wrapper that makes any resolvelib provider variant-aware.

The resolver talks to the wrapper, the wrapper to the provider it wraps: what `find_matches`
returns is arranged, variant markers are reduced for `get_dependencies`, everything else passes
through. What the wrapper cannot know of the wrapped provider's objects, `ProviderFiles` tells it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

# The only module that imports resolvelib: bundlers rewrite these lines to a vendored copy.
from resolvelib import AbstractProvider

from pep_variants import labels as wheel_labels
from pep_variants import markers
from pep_variants import selection as wheel_selection
from pep_variants.machines import Platform
from pep_variants.markers import VariantContext
from pep_variants.metadata import Metadata
from pep_variants.preferences import Preferences
from pep_variants.selection import Selection

from .abi_requirements import AbiConditions, AbiRequirement, AbiRequirements
from .interfaces import InstalledDistributions, Listener, ProviderFiles, Together, VersionOrder
from .ordering import VariantOrdering

__all__ = ["TransparentProvider", "VariantProvider"]

if TYPE_CHECKING:
    from resolvelib.providers import Preference
    from resolvelib.resolvers import RequirementInformation
    from resolvelib.structs import Matches

RT = TypeVar("RT")
CT = TypeVar("CT")
KT = TypeVar("KT")
T = TypeVar("T")

if TYPE_CHECKING:
    _Provider = AbstractProvider
else:

    class _Provider(AbstractProvider, Generic[RT, CT, KT]):
        """resolvelib 1.0 has no type parameters at run time."""


class VariantProvider(_Provider[RT, CT, KT]):
    """A resolvelib provider with wheel variants, around one without.

    Candidates of one version that differ in their variant have to be different candidates. The
    resolver is offered one variant of each version, see `ordering`: a conflict that its
    dependencies bring is answered by the next version.

    Attributes:
        ordering: decides and remembers; its `missing` tells which forced labels do not exist.
    """

    def __init__(
        self,
        base: AbstractProvider[RT, CT, KT],
        files: ProviderFiles[RT, CT, KT],
        *,
        platform: Callable[[Metadata], Platform],
        preferences: Preferences | None = None,
        listener: Listener | None = None,
        installed: InstalledDistributions | None = None,
        ordering: VariantOrdering[CT] | None = None,
        together: Together | None = None,
        version_order: VersionOrder | None = None,
    ) -> None:
        """Wrap *base* for one resolution.

        Args:
            base: the provider to wrap.
            files: what the wrapper has to know of its candidates and identifiers; may be an
                `AbiRequirements`, too.
            platform: supported values for metadata, e.g. `Detector.platform` of the engine.
            preferences: what the user asked for; nothing by default.
            listener: hears decisions and faults.
            installed: what is installed, which variants are preferred to go with.
            ordering: arranges already what *base* finds, for clients that arrange before they
                make candidates; by default the provider has one of its own, made of the others.
            together: which projects should have the same label, see `Together`.
            version_order: which version goes first where the preferences leave it open.
        """
        self._base = base
        self._files = files
        self.ordering: VariantOrdering[CT] = ordering or VariantOrdering(
            files,
            platform=platform,
            preferences=preferences or Preferences(),
            listener=listener,
            installed=installed,
            together=together,
            version_order=version_order,
        )
        self._arranged = ordering is not None
        self._pins = self.ordering.pins
        self._pins.are_watched |= self._arranged
        self._own_requirements = not isinstance(files, AbiRequirements)
        self._abi: AbiConditions[RT, CT, KT] = AbiConditions(
            self.ordering, files, identify=self._identify
        )
        # For every pin of every round: the wrapped provider is asked itself until pins matter.
        is_own = type(self).is_satisfied_by is VariantProvider.is_satisfied_by
        if is_own and not self._pins.are_watched:
            self.is_satisfied_by = base.is_satisfied_by  # type: ignore[method-assign]

    def find_matches(
        self,
        identifier: KT,
        requirements: Mapping[KT, Iterator[RT]],
        incompatibilities: Mapping[KT, Iterator[CT]],
    ) -> Matches[CT]:
        """Return the matches of the wrapped provider, variants filtered and ordered.

        The very same object for identifiers without variants. For others a callable, whatever the
        wrapped provider returned: a version is judged when the resolver comes to it. Nothing is
        added to what the wrapped provider gave this time, so what it excluded stays excluded.
        """
        conditions = self._abi.on(identifier, requirements) if self._pins.are_watched else ()
        if conditions:
            if any(condition.conflict for condition in conditions):
                return ()
            requirements = WithoutConditions(requirements, self._abi.condition)
        matches = self._base.find_matches(
            identifier=identifier, requirements=requirements, incompatibilities=incompatibilities
        )
        if conditions:
            matches = self._allowed(matches, conditions)
        if self._arranged:
            return self._anew(matches)
        project = self._files.project(identifier)
        # A forced label needs its say also where there are no variants at all.
        if not self._files.has_variants(identifier) and not self.ordering.forces(project):
            return matches
        refused = tuple(incompatibilities.get(identifier, ()))
        again = repeatable(matches)
        return self._anew(
            lambda: self._noticing(
                self.ordering.arrange(project, again(), refused=refused, complete=not conditions)
            )
        )

    def get_dependencies(self, candidate: CT) -> Iterable[RT]:
        """Return the requirements of *candidate*, with variant markers reduced.

        For one that does not go with what is pinned, see `abi`, a requirement that says so and
        that nothing satisfies.
        """
        if self.ordering.provisionals:  # else the wrapped provider is asked nothing more
            project = self._files.project(self._identify(candidate))
            if self.ordering.provisional(project, candidate):
                return self._provisional_dependencies(project, candidate)
        return self._all_dependencies(candidate)

    def _all_dependencies(self, candidate: CT) -> Iterable[RT]:
        if not self._pins.are_watched:
            return self._dependencies(candidate)
        return self._abi.dependencies(candidate, lambda: self._dependencies(candidate))

    def _provisional_dependencies(self, project: str, candidate: CT) -> Iterator[RT]:
        """Yield the dependencies of a provisional candidate, and a refusal if it is not chosen.

        The resolver stops asking when one of them brings a conflict; then the variants of the
        version need not be known.
        """
        own = []
        if self.ordering.provisionals.attempt(project, candidate):
            for requirement in self._all_dependencies(candidate):
                own.append(requirement)
                yield requirement
        is_chosen = self.ordering.confirm(project, candidate)
        self._pins.are_watched |= not is_chosen
        self._notice()
        if not is_chosen:
            yield self._abi.refusal(candidate)
        elif self._pins.are_watched:
            yield from self._abi.conflict(candidate, own)

    def _noticing(self, offered: Iterable[CT]) -> Iterator[CT]:
        """Yield what is *offered*, of which something may depend on pins."""
        for candidate in offered:
            self._notice()
            yield candidate
        self._notice()

    def _notice(self) -> None:
        """Hear which pins satisfy what, if that matters now."""
        if self._pins.are_watched and "is_satisfied_by" in vars(self):
            del self.is_satisfied_by

    def explain(self, causes: Iterable[RequirementInformation[RT, CT]]) -> str:
        """Return why a resolution failed: the conflict, and what variants there would be.

        Args:
            causes: those of `ResolutionImpossible`.
        """
        lines: dict[str, None] = {}
        named: dict[str, None] = {}
        for requirement, parent in causes:
            if getattr(requirement, "refusal", False):
                continue  # the variant that is chosen has a cause of its own
            who = "you asked for" if parent is None else f"{self._describe(parent)} needs"
            lines.setdefault(f"{who} {requirement}")
            for item in (requirement, parent):
                if item:
                    named.setdefault(self._files.project(self.identify(item)))
        return "\n".join(
            [*lines, *(line for name in named for line in variants_of(name, self.ordering))]
        )

    def _describe(self, candidate: CT) -> str:
        filename = self._files.filename(candidate)
        label = wheel_labels.split_label(filename)[1] if filename else None
        project = self._files.project(self._identify(candidate))
        text = f"{project} {self._files.version(candidate)}"
        return text if label is None else f"{text} (variant {label})"

    def _dependencies(self, candidate: CT) -> Iterable[RT]:
        context: VariantContext | None = None

        def reduce(requirement: str) -> str | None:
            nonlocal context
            if context is None:  # most candidates have no requirement that needs it
                if not markers.uses_variant_terms(requirement):
                    return requirement
                project = self._files.project(self._identify(candidate))
                context = self.ordering.context(project, candidate)
            return markers.reduce_requirement(requirement, context)

        dependencies = self._files.dependencies(candidate, reduce)
        if dependencies is None:
            return self._base.get_dependencies(candidate=candidate)
        return dependencies

    def _identify(self, candidate: RT | CT) -> KT:
        return self._base.identify(requirement_or_candidate=candidate)

    def _anew(self, matches: Matches[CT]) -> Matches[CT]:
        """Return *matches* in an order that follows what is pinned when they are gone through."""
        return RepeatedMatches(matches) if callable(matches) and self.ordering.coherent else matches

    def _allowed(
        self, matches: Matches[CT], conditions: Sequence[AbiRequirement[KT]]
    ) -> Callable[[], Iterable[CT]]:
        again = repeatable(matches)
        version = self._files.version
        return lambda: (
            candidate
            for candidate in again()
            if all(condition.allows(version(candidate)) for condition in conditions)
        )

    # What follows is the wrapped provider's to say, but for conditions between candidates, which it
    # does not know. Arguments go by name, as resolvers pass them.

    def identify(self, requirement_or_candidate: RT | CT) -> KT:
        """Return the answer of the wrapped provider."""
        if self._pins.are_watched:
            condition = self._abi.condition(requirement_or_candidate)
            if condition is not None:
                return condition.identifier
        return self._base.identify(requirement_or_candidate=requirement_or_candidate)

    def get_preference(
        self,
        identifier: KT,
        resolutions: Mapping[KT, CT],
        candidates: Mapping[KT, Iterator[CT]],
        information: Mapping[KT, Iterator[RequirementInformation[RT, CT]]],
        backtrack_causes: Sequence[RequirementInformation[RT, CT]],
    ) -> Preference:
        """Return the answer of the wrapped provider.

        Projects of which an older version goes first come after all others: what these require may
        exclude that version.
        """
        if self._pins.are_watched:
            information, backtrack_causes = self._choosing(
                (identifier,), information, backtrack_causes
            )
        preference = self._base.get_preference(
            identifier=identifier,
            resolutions=resolutions,
            candidates=candidates,
            information=information,
            backtrack_causes=backtrack_causes,
        )
        displaced = self.ordering.displaced
        if displaced:
            return (self._files.project(identifier) in displaced, preference)
        return preference

    def narrow_requirement_selection(
        self,
        identifiers: Iterable[KT],
        resolutions: Mapping[KT, CT],
        candidates: Mapping[KT, Iterator[CT]],
        information: Mapping[KT, Iterator[RequirementInformation[RT, CT]]],
        backtrack_causes: Sequence[RequirementInformation[RT, CT]],
    ) -> Iterable[KT]:
        """Return the answer of the wrapped provider; resolvelib asks this from 1.1 on."""
        if self._pins.are_watched:
            identifiers = list(identifiers)
            information, backtrack_causes = self._choosing(
                identifiers, information, backtrack_causes
            )
        return self._base.narrow_requirement_selection(
            identifiers=identifiers,
            resolutions=resolutions,
            candidates=candidates,
            information=information,
            backtrack_causes=backtrack_causes,
        )

    def is_satisfied_by(self, requirement: RT, candidate: CT) -> bool:
        """Return the answer of the wrapped provider."""
        if self._pins.are_watched:
            if self._abi.clashes(candidate):
                return False
            condition = self._abi.condition(requirement)
            if condition is not None:
                return condition.allows(self._files.version(candidate))
        return self._base.is_satisfied_by(requirement=requirement, candidate=candidate)

    def _choosing(
        self, identifiers: Iterable[KT], information: Mapping[KT, Any], causes: Sequence[Any]
    ) -> tuple[Mapping[KT, Any], Sequence[Any]]:
        """Take note of what may be pinned next; return *information* and *causes* for the base."""
        self._pins.choose()
        for identifier in identifiers:
            self._abi.seek(identifier)
        if not self._own_requirements:  # it knows those that are in its own words
            return information, causes
        ordinary = [item for item in causes if not self._condition_of(item)]
        return WithoutConditions(information, self._condition_of), ordinary

    def _condition_of(self, information: RequirementInformation[RT, CT]) -> object:
        return self._abi.condition(information.requirement)


class TransparentProvider(VariantProvider[RT, CT, KT]):
    """A `VariantProvider` whose other attributes are those of the wrapped provider.

    For resolvers that want more of their provider than resolvelib does. Every attribute takes
    Python longer to look up for it, which costs a resolution without variants 2 % more.
    """

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as untyped as the attributes are
        if name == "_base":  # not set yet: copying and unpickling look before they set
            raise AttributeError(name)
        return getattr(self._base, name)


class WithoutConditions(Mapping[KT, Iterator[T]]):
    """A resolver's mapping of iterators, without the conditions in them."""

    def __init__(self, mapping: Mapping[KT, Iterator[T]], condition: Callable[[T], object]) -> None:
        self._mapping = mapping
        self._condition = condition

    def __getitem__(self, key: KT) -> Iterator[T]:
        return (item for item in self._mapping[key] if not self._condition(item))

    def __iter__(self) -> Iterator[KT]:
        return iter(self._mapping)

    def __len__(self) -> int:
        return len(self._mapping)


class RepeatedMatches(Sequence[CT]):
    """Candidates that are found anew each time.

    resolvelib asks what is callable once, when a project is required, and keeps the answer; what
    is a sequence it goes through when it pins the project.
    """

    def __init__(self, find: Callable[[], Iterable[CT]]) -> None:
        self._find = find

    def __iter__(self) -> Iterator[CT]:
        return iter(self._find())

    def __bool__(self) -> bool:
        return any(True for _ in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __getitem__(self, index: Any) -> Any:  # noqa: ANN401 - an index or a slice
        return list(self)[index]


def repeatable(matches: Iterable[CT] | Callable[[], Iterable[CT]]) -> Callable[[], Iterable[CT]]:
    """Return what gives *matches* from the start, each time it is called."""
    if callable(matches):
        return matches
    # As resolvelib does: what is no sequence may be good for one iteration only.
    items = matches if isinstance(matches, Sequence) else list(matches)
    return lambda: items


MAX_VERSIONS = 3
"""How many versions of a project are shown, newest first."""


def variants_of(project: str, ordering: VariantOrdering[Any]) -> Iterator[str]:
    """Yield lines that show the variants of the newest judged versions of *project*."""
    judged = list(ordering.judged(project))
    for version, selection in judged[:MAX_VERSIONS]:
        yield from variants_of_version(project, version, selection)
    if len(judged) > MAX_VERSIONS:
        yield f"… and {len(judged) - MAX_VERSIONS} more versions of {project}"


def variants_of_version(
    project: str, version: Hashable, selection: Selection[Any]
) -> Iterator[str]:
    """Yield lines that show every variant of a version with its verdict."""
    if not selection.rankings and not selection.problems:
        return
    yield f"variants of {project} {version}:"
    for problem in selection.problems.values():
        yield f"  unusable: {problem}"
    rankings = selection.distinct_rankings.values()
    rows = [row for ranking in rankings for row in wheel_selection.verdicts(ranking, None)]
    yield from (f"  {line}" for line in wheel_selection.table_lines(rows))
    if any(file.label is None for file in selection.files):
        yield "  and the non-variant files"
