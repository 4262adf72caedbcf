"""The engine beside variantlib 0.2.2, the reference implementation, over random 0.2.0 files.

Both are told the same of the machine and have to give the same variants in the same order. Where
the two are known to differ, the random files keep away from it; the corpus says how
(`conformance/differences.json`). What merging does is in the corpus as well.
"""

from __future__ import annotations

import json

import pytest
import variantlib.resolver.lib
from variantlib.models.variant import VariantDescription, VariantProperty
from variantlib.resolver.lib import sort_and_filter_supported_variants
from variantlib.utils import (
    aggregate_feature_priorities,
    aggregate_namespace_priorities,
    aggregate_property_priorities,
)
from variantlib.variants_json import VariantsJson

from pep_variants.choose.preferences import Preferences
from pep_variants.choose.ranking import Ranking, rank
from pep_variants.formats.reader import metadata_from_tree, read_metadata
from pep_variants.formats.writer import metadata_to_tree
from pep_variants.model.generation import V0_2_0
from pep_variants.model.platform import Platform, Support
from support.random_releases import FEATURES, NAMESPACES, VALUES, World


@pytest.fixture(autouse=True)
def _nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide from variantlib what is installed here, which `abi_dependency` would be about."""
    monkeypatch.setattr(variantlib.resolver.lib.importlib.metadata, "distributions", list)
    monkeypatch.delenv("VARIANT_ABI_DEPENDENCY", raising=False)


def theirs(world: World, wishes: Preferences) -> list[str]:
    """What variantlib makes of the same, by the way that its `get_variants_by_priority` takes."""
    tree = json.loads(json.dumps(world.tree))
    found = VariantsJson({**tree, "variants": {}})
    ordered = sort_and_filter_supported_variants(
        [VariantDescription.from_dict(item, label) for label, item in tree["variants"].items()],
        [
            VariantProperty(namespace, feature, value)
            for namespace, features in world.supported.items()
            for feature, values in features.items()
            for value in values
        ],
        namespace_priorities=aggregate_namespace_priorities(
            list(wishes.namespace_priorities), found.namespace_priorities
        ),
        feature_priorities=aggregate_feature_priorities(
            {name: list(features) for name, features in wishes.feature_priorities.items()},
            {name: provider.feature_order for name, provider in found.providers.items()},
        ),
        property_priorities=aggregate_property_priorities(
            {
                name: {feature: list(values) for feature, values in features.items()}
                for name, features in wishes.property_priorities.items()
            }
        ),
        filter_values=True,
    )
    return [item.label for item in ordered if item.label in tree["variants"]]


def ours(world: World, wishes: Preferences) -> Ranking:
    platform = Platform({name: Support(found) for name, found in world.supported.items()})
    return rank(read_metadata(json.dumps(world.tree), "p-1-variants.json"), platform, wishes)


def check(world: World, wishes: Preferences) -> tuple[str, ...]:
    ranking = ours(world, wishes)
    expected = theirs(world, wishes)
    assert list(ranking.labels) == expected
    assert {*ranking.rejected_labels} == {*world.tree["variants"]} - {*expected}
    return ranking.labels


def test_thousands_of_releases() -> None:
    compatible = rejected = 0
    for seed in range(3000):
        world = World(seed)
        labels = check(world, Preferences())
        compatible += len(labels)
        rejected += len(world.tree["variants"]) - len(labels)
    # They are worth something only if there was a lot to order and a lot to reject.
    assert compatible > 5000
    assert rejected > 5000


def test_wishes() -> None:
    moved = 0
    for seed in range(10_000, 11_000):
        world = World(seed)
        wishes = Preferences(
            namespace_priorities=tuple(world.pick([*NAMESPACES, "unknown"])),
            feature_priorities={
                name: tuple(world.pick(FEATURES)) for name in world.pick(NAMESPACES)
            },
            property_priorities={
                name: {feature: tuple(world.pick(VALUES)) for feature in world.pick(FEATURES)}
                for name in world.pick(NAMESPACES)
            },
        )
        moved += check(world, wishes) != ours(world, Preferences()).labels
    assert moved > 200


def test_what_we_write_is_read_alike() -> None:
    for seed in range(50_000, 50_300):
        tree = World(seed).tree
        metadata = metadata_from_tree(tree, "x")
        written = metadata_to_tree(metadata, V0_2_0)
        found = json.loads(VariantsJson(json.loads(json.dumps(written))).to_str())
        assert metadata_from_tree(found, "x") == metadata
        assert metadata_from_tree(json.loads(VariantsJson(tree).to_str()), "x") == metadata
