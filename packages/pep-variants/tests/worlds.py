"""Random metadata, machines and preferences that belong together.

The names come from a small vocabulary, so that variants meet the machine and each other.
"""

from __future__ import annotations

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
