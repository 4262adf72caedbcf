"""Random releases for comparisons with other tools: the same seed always gives the same one."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from .wheels import V0_2_0

NAMESPACES = ("alpha", "beta", "gamma_2", "delta")
FEATURES = ("one", "two", "three", "four_4")
VALUES = ("1", "2", "9", "10", "v3", "a.b", "12.8", "_")

Properties = dict[str, dict[str, list[str]]]


class World:
    """A random release in format 0.2.0, and a machine that supports some of what it wants.

    Attributes:
        chance: the random numbers, for those who need more of them.
        namespaces: in the order of the metadata.
        tree: the metadata.
        supported: what the machine supports, by namespace and feature, in preference order. For
            static providers it is what the metadata says.
    """

    def __init__(self, seed: int) -> None:
        """Make it."""
        self.chance = random.Random(seed)
        self.namespaces = self.pick(NAMESPACES, 1)
        self.supported: dict[str, dict[str, tuple[str, ...]]] = {}
        providers = {}
        for namespace in self.namespaces:
            features = {name: self.pick(VALUES, 1) for name in self.pick(FEATURES, 1)}
            if self.chance.random() < 0.5:
                provider: dict[str, Any] = {"static-properties": self.shuffled(features)}
                if len(features) > 1 or self.chance.random() < 0.5:
                    provider["feature-order"] = list(features)
            else:
                provider = {"requires": [f"{namespace.replace('_', '-')}-provider"]}
                if self.chance.random() < 0.3:
                    features = {}  # nothing of it is here
            providers[namespace] = provider
            self.supported[namespace] = {name: tuple(found) for name, found in features.items()}
        self.tree: dict[str, Any] = {
            "$schema": V0_2_0,
            "default-priorities": {"namespace": self.namespaces},
            "providers": self.shuffled(providers),
            "variants": self._variants(),
        }

    def pick(self, items: Sequence[str], least: int = 0) -> list[str]:
        """Return at least *least* of *items*, in any order."""
        return self.chance.sample(items, self.chance.randint(least, len(items)))

    def shuffled(self, mapping: Mapping[str, Any]) -> dict[str, Any]:
        """Return *mapping* with its keys in any order."""
        return dict(self.chance.sample(list(mapping.items()), len(mapping)))

    def _variants(self) -> dict[str, Properties]:
        variants: dict[str, Properties] = {}
        for number in range(self.chance.randint(0, 14)):
            properties: Properties = {}
            for namespace in self.pick(self.namespaces, 1)[:3]:
                known = tuple(self.supported[namespace])
                # Mostly what is supported, so that there is something to order.
                features = self.pick(known if known and self.chance.random() < 0.9 else FEATURES, 1)
                properties[namespace] = {name: self._values(namespace, name) for name in features}
            if variants and self.chance.random() < 0.05:
                properties = self.chance.choice(list(variants.values()))
            variants[f"{self.chance.choice('abcxyz019._')}{number}"] = properties
        if self.chance.random() < 0.5:
            variants["null"] = {}
        return self.shuffled(variants)

    def _values(self, namespace: str, feature: str) -> list[str]:
        supported = self.supported[namespace].get(feature, ())
        found = set(self.chance.sample(VALUES, self.chance.randint(0, 3)))
        if supported and (not found or self.chance.random() < 0.8):
            found.add(self.chance.choice(supported))
        return sorted(found or {self.chance.choice(VALUES)})
