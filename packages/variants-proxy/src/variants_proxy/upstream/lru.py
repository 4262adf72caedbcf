"""Weighted LRU cache."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class LRUCache(Generic[K, V]):
    """A mapping that drops the least recently used values to stay within a total weight.

    Attributes:
        limit: maximum total weight.
        weight: total weight of the values.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.weight = 0
        self._items: OrderedDict[K, tuple[V, int]] = OrderedDict()

    def get(self, key: K) -> V | None:
        """Return the value of *key*, None if there is none."""
        found = self._items.get(key)
        if found is None:
            return None
        self._items.move_to_end(key)
        return found[0]

    def put(self, key: K, value: V, weight: int = 1) -> None:
        """Store *value*, unless its weight is above the limit."""
        self.remove(key)
        if weight > self.limit:
            return
        self._items[key] = value, weight
        self.weight += weight
        while self.weight > self.limit:
            self.weight -= self._items.popitem(last=False)[1][1]

    def remove(self, key: K) -> None:
        """Remove *key* if it is there."""
        found = self._items.pop(key, None)
        if found is not None:
            self.weight -= found[1]
