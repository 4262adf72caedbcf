"""Coherence: variants that agree, in a namespace, with what is chosen already.

Two files agree in a namespace if they list the same properties there, none at all included; or,
where one of them lists others, if their labels are equal: builds that belong together are labelled
alike, even when one is for fewer GPUs than the other. A file takes part in a namespace if the
metadata of its version prioritizes it, be it a variant or not: a CPU build of torch agrees with a
CPU build of torchvision, and numpy has no say about GPUs.

What is agreed with is the first of: projects of which the user forced a label; what the resolution
has pinned, in the order in which it was required; forced labels of projects that the resolution
has not come to yet, by their label alone; what is installed, by name. Only the order inside a
version changes: a newer version goes before an older one that agrees better.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from pep_variants.model.label import NULL_LABEL
from pep_variants.model.metadata import Metadata
from pep_variants.model.property import Features


class Installed(Protocol):
    """What a client knows of what is installed before a resolution. Asked only where it matters."""

    def version(self, project: str) -> object | None:
        """Return the version of an installed project by its normalized name, None without it."""
        ...

    def variants(self) -> Iterable[tuple[str, Metadata]]:
        """Yield normalized project name and ``variant.json`` of every installed variant."""
        ...


@dataclass(frozen=True)
class Chosen:
    """A file that is chosen, or is about to be.

    Attributes:
        project: normalized project name.
        label: its label; ``null`` for a non-variant file, too.
        metadata: variant metadata of its version, None if that is not known.
    """

    project: str
    label: str
    metadata: Metadata | None

    @classmethod
    def of(cls, project: str, label: str | None, metadata: Metadata | None) -> Chosen:
        """Make one of the label in a filename."""
        if label is None:
            return cls(project, NULL_LABEL, metadata)
        return cls(project, metadata.label_of(label) if metadata else label, metadata)

    def takes_part(self, namespace: str) -> bool:
        """Return whether it has a say about *namespace*, as far as is known."""
        return self.metadata is None or namespace in self.metadata.namespaces

    def agreement(self, other: Chosen, namespace: str) -> int:
        """Return how well the two agree: 2 in their properties, 1 in their label, 0 not at all."""
        own, others = (_listed(item, namespace) for item in (self, other))
        if own is not None and own == others:
            return 2
        return int(self.label == other.label)

    def __str__(self) -> str:
        return f"{self.project} ({self.label})"


def _listed(chosen: Chosen, namespace: str) -> dict[str, frozenset[str]] | None:
    if chosen.metadata is None:
        return None
    properties = chosen.metadata.properties_of(chosen.label) or {}
    features: Features = properties.get(namespace, {})
    return {feature: frozenset(values) for feature, values in features.items()}
