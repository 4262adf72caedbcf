"""What detection found of accelerators, in a few words for the other parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pep_variants.internal import ACCELERATORS, BUILTIN_NAMESPACES

if TYPE_CHECKING:
    from pep_variants.internal import Examined, Features

VENDORS = {name: BUILTIN_NAMESPACES[name].vendor for name in ACCELERATORS}
"""Vendors of accelerators by namespace."""


@dataclass(frozen=True)
class Drivers:
    """What detection found of accelerators.

    Attributes:
        vendors: those with a driver or GPU, ascending.
        cuda: newest CUDA version of NVIDIA's driver, None without one.
        features: what is supported, by namespace.
    """

    vendors: tuple[str, ...] = ()
    cuda: tuple[int, int] | None = None
    features: Mapping[str, Features] = field(default_factory=dict)

    @classmethod
    def of(cls, examined: Mapping[str, Examined]) -> Drivers:
        """Return the drivers among what the built-in providers found, by namespace."""
        found = {
            VENDORS[namespace].title
            for namespace, each in examined.items()
            if namespace in VENDORS and each.support.facts
        }
        versions = [
            fact.value
            for fact in (examined["nvidia"].support.facts if "nvidia" in examined else ())
            if fact.what == "CUDA driver"
        ]
        cuda = None
        if versions:
            major, minor, *_ = [*versions[0].split("."), "0"]
            cuda = int(major), int(minor)
        features = {namespace: each.support.features for namespace, each in examined.items()}
        return cls(tuple(sorted(found)), cuda, features)
