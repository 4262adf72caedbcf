"""`abi_dependency`: variants that go with certain releases of another project of the resolution.

It is a condition between two candidates, neither of which requires the other: whichever of them
is pinned later is checked against the one that is pinned already, and refused if they do not go
together. One that is not needed never appears. So a resolver knows nothing of the
condition but the conflicts it brings, which are conflicts like any other: the next variant is
tried, then the next version, then the earlier pin is taken back.

A project that is installed and not part of the resolution stays as it is. A variant that is built
against another release of it comes after the files of its version that go with it: it is refused
the first time. That ends when the project turns out to be required.

A conflict is given as a requirement of the candidate that is refused: an `AbiRequirement`, which
nothing satisfies, filed under the pinned one. Thereby it shows up among the causes of a failure.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, runtime_checkable

from pep_variants.selection import AbiDependency

from .interfaces import KT_contra, ProviderFiles, RT_co

__all__ = ["AbiRequirement", "AbiRequirements"]

if TYPE_CHECKING:
    from .ordering import VariantOrdering

RT = TypeVar("RT")
CT = TypeVar("CT")
KT = TypeVar("KT")
KT_co = TypeVar("KT_co", covariant=True)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class AbiRequirement(Generic[KT_co]):
    """A condition between two candidates, as a resolver learns of it.

    Attributes:
        identifier: identifier that it is a requirement on.
        name: project of that identifier.
        text: what would satisfy it, in words: ``torch 2.9.*``, ``ext built against torch 2.8.0``.
        dependency: what candidates have to be, None for no condition on them.
        conflict: the candidate that is pinned is none of them, and is not to be changed.
        refusal: there is no such condition; a provisional candidate is not the one that is chosen.
    """

    identifier: KT_co
    name: str
    text: str
    dependency: AbiDependency | None
    conflict: bool
    refusal: bool = False

    def allows(self, version: object) -> bool:
        """Return whether a candidate of *version* satisfies it."""
        return self.dependency is None or self.dependency.allows(version)

    def __str__(self) -> str:
        return self.text


@runtime_checkable
class AbiRequirements(Protocol[RT_co, KT_contra]):
    """Optional extension of `ProviderFiles`: the wording of conditions between candidates.

    Otherwise they are `AbiRequirement` objects, which the wrapped provider never sees, but
    reporters and readers of `ResolutionImpossible.causes` do.
    """

    def abi_requirement(self, condition: AbiRequirement[KT_contra]) -> RT_co:
        """Return a new requirement on ``condition.identifier`` whose text form is that of it."""
        ...


class AbiConditions(Generic[RT, CT, KT]):
    """The conditions of one resolution, in terms of the objects of its provider."""

    def __init__(
        self,
        ordering: VariantOrdering[CT],
        files: ProviderFiles[RT, CT, KT],
        *,
        identify: Callable[[Any], KT],
    ) -> None:
        """Set up.

        Args:
            ordering: knows which projects variants are built against, and what is pinned.
            files: what is known of candidates and identifiers; may be an `AbiRequirements`.
            identify: gives the identifier of a candidate or requirement.
        """
        self._pins = ordering.pins
        self._ordering = ordering
        self._identify = identify
        self._project = files.project
        self._version = files.version
        self._dependencies = ordering.abi_dependencies
        self._files = files
        # By identifier, text and whether it is a conflict.
        self._expressed: dict[tuple[KT, str, bool], tuple[RT, AbiRequirement[KT]]] = {}
        self._required: Mapping[KT, Any] = {}
        self._searches = 0
        self._sought: set[str] = set()

    def seek(self, identifier: KT) -> None:
        """Take note that *identifier* is required."""
        self._sought.add(self._project(identifier))

    def dependencies(self, candidate: CT, others: Callable[[], Iterable[RT]]) -> Iterable[RT]:
        """Return the requirements of *candidate*, *others* among them unless it is refused."""
        identifier = self._identify(candidate)
        project = self._project(identifier)
        attempted = self._pins.expand(identifier, project, candidate)
        if not self._ordering.abi_projects:
            return others()
        if not attempted:
            return self._connected(identifier, candidate, others())
        conflict = self._conflict(identifier, candidate, self._pins)
        if conflict is not None:
            logger.debug("Skipping %s: not with %s pinned", candidate, conflict.name)
            return (self._requirement(conflict),)
        own = others()
        if not self._ordering.abi_dependencies(project, candidate):
            return own
        own = tuple(own)
        return (self.refusal(candidate),) if self._is_postponed(candidate, own) else own

    def refusal(self, candidate: CT) -> RT:
        """Return a requirement that nothing meets, for a provisional *candidate*."""
        identifier = self._identify(candidate)
        project = self._project(identifier)
        text = f"another variant of {project} {self._version(candidate)}"
        return self._requirement(AbiRequirement(identifier, project, text, None, True, True))

    def conflict(self, candidate: CT, own: Iterable[RT]) -> Iterator[RT]:
        """Yield what is wrong with *candidate*, which requires *own*, if anything is."""
        if self._ordering.abi_projects:
            conflict = self._conflict(self._identify(candidate), candidate, self._pins)
            if conflict is not None:
                yield self._requirement(conflict)
            elif self._is_postponed(candidate, own):
                yield self.refusal(candidate)

    def _is_postponed(self, candidate: CT, own: Iterable[RT]) -> bool:
        def takes_part(project: str) -> bool:
            required = (item for item in own if self.condition(item) is None)
            items = (*required, *(pinned for _, pinned in self._pins))
            names = {self._project(self._identify(item)) for item in items}
            return project in self._sought or project in names

        project = self._project(self._identify(candidate))
        is_again = self._pins.attempts(candidate) > 1
        return self._ordering.postpones(project, candidate, takes_part, is_again=is_again)

    def clashes(self, candidate: CT) -> bool:
        """Return whether *candidate* is a pin that has come back, and does not go with others."""
        identifier = self._identify(candidate)
        if not self._pins.confirm(identifier, candidate) or not self._ordering.abi_projects:
            return False
        return self._conflict(identifier, candidate, self._pins.before()) is not None

    def on(
        self, identifier: KT, requirements: Mapping[KT, Iterator[RT]]
    ) -> Sequence[AbiRequirement[KT]]:
        """Return the conditions among the requirements on *identifier*."""
        self._searches += 1
        self.seek(identifier)
        if not self._pins.looking_back:
            self._required = requirements
        if not self._expressed:
            return ()
        conditions = map(self.condition, requirements.get(identifier, ()))
        return [condition for condition in conditions if condition is not None]

    def condition(self, requirement: object) -> AbiRequirement[KT] | None:
        """Return the condition that *requirement* expresses, None if it is an ordinary one.

        The very same object: one of the provider's kind may compare equal to an ordinary one.
        """
        for expressed, condition in self._expressed.values():
            if expressed is requirement:
                return condition
        return None

    def _requirement(self, condition: AbiRequirement[KT]) -> RT:
        key = (condition.identifier, condition.text, condition.conflict)
        if key not in self._expressed:
            requirement: Any = condition
            if isinstance(self._files, AbiRequirements):
                requirement = self._files.abi_requirement(condition)
            self._expressed[key] = requirement, condition
        return self._expressed[key][0]

    def _conflict(
        self, identifier: KT, candidate: CT, pins: Iterable[tuple[KT, CT]]
    ) -> AbiRequirement[KT] | None:
        """Return the conflict of *candidate* with *pins*, None if they go together."""
        project, version = self._project(identifier), self._version(candidate)
        asked = {item.project: item for item in self._dependencies(project, candidate)}
        if not asked and project not in self._ordering.abi_projects:
            return None
        for other, pinned in pins:
            name = self._project(other)
            if name == project:
                continue
            wanted = asked.get(name)
            if wanted is not None and not wanted.allows(self._version(pinned)):
                return AbiRequirement(other, name, str(wanted), wanted, True)
            for item in self._dependencies(name, pinned):
                if item.project == project and not item.allows(version):
                    text = f"{name} built against {project} {version}"
                    return AbiRequirement(other, name, text, None, True)
        return None

    def _connected(self, identifier: KT, candidate: CT, others: Iterable[RT]) -> Iterator[RT]:
        """Yield the requirements of *candidate* and what else ties it to others.

        Resolvers take a pin back only if its dependencies have to do with the conflict. Should
        the candidate be about to be pinned after all, the resolver searches for matches of the
        first requirement that it gets, and the ties are left out.
        """
        searches = self._searches
        yield from others
        if self._searches != searches:
            return
        project = self._project(identifier)
        asked = {item.project: item for item in self._dependencies(project, candidate)}
        if asked or project in self._ordering.abi_projects:
            yield self._requirement(AbiRequirement(identifier, project, project, None, False))
        if self._searches != searches:
            return
        for other in list(self._required) if asked else ():
            name = self._project(other)
            if name in asked and name != project:
                wanted = asked[name]
                yield self._requirement(AbiRequirement(other, name, str(wanted), wanted, False))
