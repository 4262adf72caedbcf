"""What a resolvelib resolution has pinned, as its provider can tell.

A resolver does not show its provider what is pinned, but it asks: before each round it asks of
every pin whether it still satisfies its requirements. From the order of the questions follows as
well whether a candidate is about to be pinned, or was
and is looked back at (see `ResolutionState.expand`). All supported releases of resolvelib ask in
this order; only public methods are involved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

CT = TypeVar("CT")
KT = TypeVar("KT")


class ResolutionState(Generic[CT, KT]):
    """Follows the questions of one resolution.

    A pin that nothing requires any more is not asked about, and is not among these: a resolver
    leaves it out of its result. When something requires it again, it comes back unasked.

    Attributes:
        looking_back: the resolver is finding out what brought a conflict.
    """

    def __init__(self, identify: Callable[[CT], KT]) -> None:
        """Set up; *identify* gives the identifier of a candidate."""
        self.looking_back = False
        self._identify = identify
        self._pinned: dict[int, CT] = {}
        self._before: dict[int, CT] | None = None
        self._asking = True
        self._attempted: list[CT] = []

    def confirm(self, candidate: CT) -> bool:
        """Take note that the resolver asked whether *candidate* satisfies a requirement.

        Returns:
            True if the candidate is a pin that has come back.
        """
        if not self._asking:
            # What was tried last is asked about first if it has been pinned: beside all others.
            pinned = bool(self._attempted) and candidate is self._attempted[-1]
            before = {id(candidate): candidate, **self._pinned} if pinned else None
            self.choose()
            self._before = before
        self._pinned[id(candidate)] = candidate
        return self._before is not None and id(candidate) not in self._before

    def choose(self) -> None:
        """Take note that the resolver asked what to pin next."""
        if not self._asking:  # a round began, and nothing was asked about: nothing is pinned
            self._pinned.clear()
            self._before = None
        self._asking = True
        self.looking_back = False
        self._attempted.clear()

    def expand(self, candidate: CT) -> bool:
        """Take note that the resolver asked for the dependencies of *candidate*.

        Returns:
            True if it is about to pin the candidate; False if that is pinned, and looked back at.
            A round tries candidates of one identifier; what comes after, of another or pinned, is
            looked back at. One case is ambiguous: when everything was taken back, and only one
            identifier is required, its next candidate counts as looked back at, too.
        """
        self._asking = False
        if self._attempted and (
            id(candidate) in self._pinned
            or self._identify(candidate) != self._identify(self._attempted[0])
        ):
            self.looking_back = True
        if not self.looking_back:
            self._attempted.append(candidate)
        return not self.looking_back

    def __iter__(self) -> Iterator[tuple[KT, CT]]:
        """Yield identifier and candidate of every pin, in the order in which they were required.

        None while the resolver looks back: then they are being taken back.
        """
        if not self.looking_back:
            for candidate in self._pinned.values():
                yield self._identify(candidate), candidate

    def before(self) -> Iterator[tuple[KT, CT]]:
        """Yield what was pinned before what came back did so."""
        latest, *others = (self._before or {}).values()
        identifier = self._identify(latest)
        yield identifier, latest
        for candidate in others:
            other = self._identify(candidate)
            if other != identifier:  # its former pin
                yield other, candidate
