"""Matches that a provider returns to resolvelib, and the mappings that resolvelib passes to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

CT = TypeVar("CT")
KT = TypeVar("KT")
T = TypeVar("T")


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
