"""The one model of variant metadata, whatever generation of the format it was written in.

`reader` fills it, `writer` writes it, `merging` combines it; other modules only read it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..errors import in_words
from ..labels import NULL_LABEL, ZERO_LABEL
from .generation import spells_null_in_zeros
from .property import Features, Properties, Property

_NUMBER = re.compile(r"([0-9]+)")


@dataclass(frozen=True)
class ProviderInfo:
    """Metadata about the provider of one namespace.

    At most one of `requires`, `builtin` and `static` says where supported values come from.

    Attributes:
        requires: requirements of the plugin package, with their markers, in order.
        plugin_api: ``module`` or ``module:object.path`` of the plugin, None to derive it from
            the first requirement.
        builtin: name of a provider that installers bring along (0.2.0).
        static: supported values that the metadata itself lists, features and values in preference
            order. None for a provider that has to be asked on the machine. May be empty for an
            ahead-of-time provider without listed values.
        enable_if: marker that must hold in the target environment, else nothing is supported.
        optional: only consulted when the user enables the namespace.
        build_requires: requirements of a plugin that only the build asks (``pyproject.toml``).
    """

    requires: tuple[str, ...] = ()
    plugin_api: str | None = None
    builtin: str | None = None
    static: Features | None = None
    enable_if: str | None = None
    optional: bool = False
    build_requires: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return it in the words of the metadata, for messages."""
        parts = [f"requires {', '.join(self.requires)}"] if self.requires else []
        if self.build_requires:
            parts.append(f"build-requires {', '.join(self.build_requires)}")
        if self.plugin_api:
            parts.append(f"plugin-api {self.plugin_api}")
        if self.builtin:
            parts.append(f"builtin {self.builtin}")
        if self.static is not None:
            parts.append(f"static-properties {in_words(self.static)}")
        if self.enable_if:
            parts.append(f"enable-if {self.enable_if}")
        if self.optional:
            parts.append("optional")
        return "; ".join(parts) or "nothing"


@dataclass(frozen=True)
class Metadata:
    """Variant metadata of one wheel, one version on an index, or one source tree.

    Attributes:
        namespaces: ``default-priorities.namespace``, most important first.
        variants: properties by label; values are sorted, duplicates removed. The null label is
            present only if the data lists it, see `properties_of`.
        providers: provider information by namespace; empty in generations that have none.
        feature_priorities: ``default-priorities.feature`` by namespace, most important first.
        property_priorities: ``default-priorities.property`` by namespace and feature.
        schema: the ``$schema`` URL as found, None if there was none.
        source: file or URL it came from, for messages; does not take part in comparisons.
        faults: by label, properties that it lacks though the build has them, each with the known
            fault that is the reason, as a phrase for messages; no file has them.

    >>> from pep_variants.metadata import Metadata
    >>> metadata = Metadata(("x86_64",), {"v3": {"x86_64": {"level": ("v3",)}}, "null": {}})
    >>> metadata.variants["v3"]["x86_64"]["level"]
    ('v3',)
    """

    namespaces: tuple[str, ...] = ()
    variants: Mapping[str, Properties] = field(default_factory=dict)
    providers: Mapping[str, ProviderInfo] = field(default_factory=dict)
    feature_priorities: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    property_priorities: Mapping[str, Features] = field(default_factory=dict)
    schema: str | None = field(default=None, compare=False)
    source: str = field(default="", compare=False)
    faults: Mapping[str, Mapping[Property, str]] = field(default_factory=dict, compare=False)

    def label_of(self, label: str) -> str:
        """Return the label under which *label* of a filename is known here.

        They are the same, but for the null label, which formats 0.0.x spell in zeros as well.
        """
        if label == ZERO_LABEL and label not in self.variants and spells_null_in_zeros(self.schema):
            return NULL_LABEL
        return label

    def lists_only(self, label: str) -> bool:
        """Return whether *label* of a filename is known here, and no other label.

        So it has to be inside a wheel (PEP 825, "Variants").
        """
        return set(self.variants) == {self.label_of(label)}

    def properties_of(self, label: str) -> Properties | None:
        """Return the properties of *label*, None if the metadata does not know it.

        The null label always has zero properties, listed or not (PEP 825, "Variant label").
        """
        if label == NULL_LABEL:
            return {}
        return self.variants.get(label)

    def used_values(self, namespace: str) -> Features:
        """Return every value that variants use in *namespace*, features and values ascending.

        Numbers inside values compare as numbers (``2`` before ``10``).
        """
        used: dict[str, set[str]] = {}
        for properties in self.variants.values():
            for feature, values in properties.get(namespace, {}).items():
                used.setdefault(feature, set()).update(values)
        return {feature: tuple(sorted(used[feature], key=natural)) for feature in sorted(used)}


def natural(value: str) -> str:
    """Return a sort key: numbers compare as numbers, and come before text.

    A text, because a million tuples take a gigabyte. Control characters, which values cannot have,
    mark its parts: the end sorts before a number, a number before text. `int` is not used, as it
    refuses more than 4,300 digits.
    """
    parts = _NUMBER.split(value)
    for place in range(1, len(parts), 2):
        number = parts[place].lstrip("0")
        parts[place] = f"\1{chr(len(number))}{number}"  # of equal length, digits compare like text
    return f"{''.join(parts)}\0{value}"
