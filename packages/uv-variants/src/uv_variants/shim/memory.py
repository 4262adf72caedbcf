"""A mapping that forgets what was not used for longest, so that it stays within a weight."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Memory(Generic[K, V]):
    """The mapping.

    Attributes:
        limit: of the weights of all values together.
        weight: of all values there are.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.weight = 0
        self._items: OrderedDict[K, tuple[V, int]] = OrderedDict()

    def get(self, key: K) -> V | None:
        """Return the value of *key*, None if there is none any more."""
        found = self._items.get(key)
        if found is None:
            return None
        self._items.move_to_end(key)
        return found[0]

    def put(self, key: K, value: V, weight: int = 1) -> None:
        """Remember *value*, unless it is heavier than all that may be kept."""
        self.remove(key)
        if weight > self.limit:
            return
        self._items[key] = value, weight
        self.weight += weight
        while self.weight > self.limit:
            self.weight -= self._items.popitem(last=False)[1][1]

    def remove(self, key: K) -> None:
        """Forget *key*."""
        found = self._items.pop(key, None)
        if found is not None:
            self.weight -= found[1]

    def __len__(self) -> int:
        return len(self._items)
