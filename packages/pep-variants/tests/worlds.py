"""Random metadata, machines and wishes that belong together, and the rules told once more, slowly.

The names come from a small vocabulary, so that variants meet the machine and each other.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from hypothesis import strategies as st

from pep_variants.model.metadata import Metadata, ProviderInfo
from pep_variants.model.platform import Platform, Support
from pep_variants.model.property import Selector

NAMESPACES = ("alpha", "beta", "gamma_2")
FEATURES = ("one", "two", "three_3")
VALUES = ("1", "2", "10", "v3", "a.b")
LABELS = ("null", "a", "b", "c", "a.1", "cu12_8", "x86_64_v3", "00", "z" * 30)


def some(items, **sizes):
    """A list of different *items*, in any order."""
    return st.lists(st.sampled_from(items), unique=True, **sizes)


def ordered_features(min_values=1):
    """Features and values of a namespace, both in an order that means something."""
    return some(FEATURES, min_size=1).flatmap(
        lambda names: st.tuples(*(some(VALUES, min_size=min_values).map(tuple) for _ in names)).map(
            lambda values: dict(zip(names, values, strict=True))
        )
    )


def properties(namespaces=NAMESPACES):
    """Properties of a variant that is not null; values are sorted, as the model has them."""
    features = st.dictionaries(
        st.sampled_from(FEATURES),
        some(VALUES, min_size=1).map(lambda values: tuple(sorted(values))),
        min_size=1,
    )
    return st.dictionaries(st.sampled_from(namespaces), features, min_size=1)


def variants(namespaces=NAMESPACES, max_size=9):
    """Variants by label; the null variant may be among them."""
    return st.dictionaries(st.sampled_from(LABELS), properties(namespaces), max_size=max_size).map(
        lambda found: {label: {} if label == "null" else p for label, p in found.items()}
    )


requirements = st.sampled_from(
    ("acme-provider", "acme-provider>=1,<2", "other; platform_system == 'Linux'", "x @ https://h/x")
)
plugin_apis = st.sampled_from((None, "acme.plugin:Plugin", "acme"))


@st.composite
def provider_infos(draw):
    """Providers that format 0.2.0 can say."""
    optional = draw(st.booleans())
    kind = draw(st.sampled_from(("requires", "builtin", "static")))
    if kind == "requires":
        requires = tuple(draw(st.lists(requirements, min_size=1, max_size=2, unique=True)))
        return ProviderInfo(requires=requires, plugin_api=draw(plugin_apis), optional=optional)
    if kind == "builtin":
        return ProviderInfo(builtin=draw(st.sampled_from(NAMESPACES)), optional=optional)
    return ProviderInfo(static=draw(ordered_features()), optional=optional)


@st.composite
def metadata(draw):
    """Metadata that format 0.2.0 can say."""
    namespaces = tuple(draw(some(NAMESPACES, min_size=1)))
    return Metadata(
        namespaces=namespaces,
        variants=draw(variants(namespaces)),
        providers={namespace: draw(provider_infos()) for namespace in namespaces},
    )


def platforms():
    """Machines that support something in some of the namespaces."""
    return st.dictionaries(
        st.sampled_from(NAMESPACES), ordered_features().map(Support), max_size=len(NAMESPACES)
    ).map(Platform)


def selectors():
    """What options name."""
    names = (NAMESPACES, FEATURES, VALUES)
    return st.one_of(
        *(
            st.tuples(*map(st.sampled_from, names[:depth])).map(lambda parts: Selector(*parts))
            for depth in (1, 2, 3)
        )
    )


class SlowRanking(NamedTuple):
    """The rules of PEP 825, "Variant ordering", followed step by step.

    Attributes:
        namespace_order: step 1.
        feature_order: step 2, by namespace.
        value_order: step 3, by namespace and feature.
    """

    namespace_order: list[str]
    feature_order: dict[str, list[str]]
    value_order: dict[tuple[str, str], list[str]]

    def compatible(self, properties):
        return all(
            any(value in self.value_order.get((namespace, feature), ()) for value in values)
            for namespace, features in properties.items()
            for feature, values in features.items()
        )

    def sort_keys(self, properties):
        """Steps 4 to 6: the best value per feature, as a triple of positions, in order."""
        keys = []
        for namespace, features in properties.items():
            if namespace not in self.namespace_order:
                continue
            for feature, values in features.items():
                best = next(v for v in self.value_order[namespace, feature] if v in values)
                keys.append(
                    (
                        self.namespace_order.index(namespace),
                        self.feature_order[namespace].index(feature),
                        self.value_order[namespace, feature].index(best),
                    )
                )
        return sorted(keys)

    def comes_first(self, one, other):
        """Step 7: whether label and properties *one* go before *other*."""
        keys, other_keys = self.sort_keys(one[1]), self.sort_keys(other[1])
        for key, other_key in zip(keys, other_keys, strict=False):
            if key != other_key:
                return key < other_key
        if len(keys) != len(other_keys):
            return len(keys) > len(other_keys)
        return self.last_keys(*one) < self.last_keys(*other)

    def last_keys(self, label, properties):
        """What decides between equal keys: null last, then the releases, then the label."""
        releases = [
            (
                list(self.feature_order["abi_dependency"]).index(feature),
                min(
                    self.value_order["abi_dependency", feature].index(value)
                    for value in values
                    if value in self.value_order["abi_dependency", feature]
                ),
            )
            for feature, values in properties.get("abi_dependency", {}).items()
        ]
        return label == "null", sorted(releases), label

    def labels(self, variants):
        """The compatible labels, best first."""
        fitting = [item for item in variants.items() if self.compatible(item[1])]
        compare = functools.cmp_to_key(lambda a, b: -1 if self.comes_first(a, b) else 1)
        return tuple(label for label, _ in sorted(fitting, key=compare))


def moved_to_front(first, items):
    """*items* with those in *first* in front, in the order of *first*."""
    front = [item for item in dict.fromkeys(first) if item in items]
    return front + [item for item in items if item not in front]


def slow_ranking(metadata, platform, preferences):
    """The orders that FORMATS' rules 1 to 3 give: wishes, then metadata, then the provider."""
    namespaces = moved_to_front(
        [s.namespace for s in preferences.prefer] + list(preferences.namespace_priorities),
        [*metadata.namespaces, *({"abi_dependency"} - set(metadata.namespaces))],
    )
    feature_order, value_order = {}, {}
    for namespace in namespaces:
        offered = platform.support(namespace).features
        feature_order[namespace] = moved_to_front(
            [s.feature for s in preferences.prefer if s.namespace == namespace]
            + list(preferences.feature_priorities.get(namespace, ()))
            + list(metadata.feature_priorities.get(namespace, ())),
            list(offered),
        )
        for feature, values in offered.items():
            value_order[namespace, feature] = moved_to_front(
                [s.value for s in preferences.prefer if s[:2] == (namespace, feature)]
                + list(preferences.property_priorities.get(namespace, {}).get(feature, ()))
                + list(metadata.property_priorities.get(namespace, {}).get(feature, ())),
                list(values),
            )
    if "abi_dependency" not in (
        *(s.namespace for s in preferences.prefer),
        *preferences.namespace_priorities,
    ):
        namespaces.remove("abi_dependency")  # providers draft: not considered in ordering
    return SlowRanking(namespaces, feature_order, value_order)
