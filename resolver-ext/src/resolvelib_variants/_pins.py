"""The pins of a resolver, as its questions to the provider tell."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, TypeVar

CT = TypeVar("CT")


class Pins(Generic[CT]):
    """The candidates that a resolution has pinned, by identifier.

    Before each round a resolver asks of every pin whether that still satisfies its requirements.
    The order of the questions also tells whether a candidate is about to be pinned, or was pinned
    and is looked back at, see `expand`. All supported releases of resolvelib ask in this order.

    A pin that nothing requires any more is not asked about, and is not among these: a resolver
    leaves it out of its result. When something requires it again, it comes back unasked.

    Attributes:
        are_watched: what is offered depends on them. A provider takes no note of them before that:
            a resolver asks thousands of times.
        looking_back: the resolver is finding out what brought a conflict.
    """

    def __init__(self) -> None:
        self.are_watched = False
        self.looking_back = False
        self._candidates: dict[Any, CT] = {}
        self._before: dict[Any, CT] | None = None
        self._asking = True
        self._attempted: list[tuple[Any, CT]] = []
        self._projects: dict[Any, str] = {}

    def confirm(self, identifier: object, candidate: CT) -> bool:
        """Take note that the resolver asked whether *candidate* satisfies a requirement.

        Returns:
            True if the candidate is a pin that has come back.
        """
        if not self._asking:
            # What was tried last is asked about first if it has been pinned: beside all others.
            before: dict[Any, CT] | None = None
            if self._attempted and candidate is self._attempted[-1][1]:
                self._candidates.pop(identifier, None)  # its former pin
                before = {identifier: candidate, **self._candidates}
            self.choose()
            self._before = before
        self._candidates[identifier] = candidate
        return self._before is not None and self._before.get(identifier) is not candidate

    def choose(self) -> None:
        """Take note that the resolver asked what to pin next."""
        if not self._asking:  # a round began, and nothing was asked about: nothing is pinned
            self._candidates.clear()
            self._before = None
        self._asking = True
        self.looking_back = False
        self._attempted.clear()

    def expand(self, identifier: object, project: str, candidate: CT) -> bool:
        """Take note that the resolver asked for the dependencies of *candidate*.

        Returns:
            True if it is about to pin the candidate; False if that is pinned, and looked back at.
            A round tries candidates of one identifier; what comes after, of another or pinned, is
            looked back at. One case is ambiguous: when everything was taken back, and only one
            identifier is required, its next candidate counts as looked back at, too.
        """
        self._asking = False
        self._projects[identifier] = project
        if self._attempted and (
            self._candidates.get(identifier) is candidate or identifier != self._attempted[0][0]
        ):
            self.looking_back = True
        if not self.looking_back:
            self._attempted.append((identifier, candidate))
        return not self.looking_back

    def attempts(self, candidate: CT) -> int:
        """Return how often *candidate* was attempted in this round."""
        return sum(attempted is candidate for _, attempted in self._attempted)

    def __iter__(self) -> Iterator[tuple[Any, CT]]:
        """Yield identifier and candidate of every pin, in the order in which they were required.

        None while the resolver looks back: then they are being taken back.
        """
        yield from () if self.looking_back else self._candidates.items()

    def by_project(self) -> Iterator[tuple[str, CT]]:
        """Yield project and candidate likewise, of candidates whose dependencies were asked for."""
        for identifier, candidate in self:
            if identifier in self._projects:
                yield self._projects[identifier], candidate

    def before(self) -> Iterator[tuple[Any, CT]]:
        """Yield what was pinned before what came back did so."""
        yield from (self._before or {}).items()
