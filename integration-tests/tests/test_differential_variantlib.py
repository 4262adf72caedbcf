"""The engine beside variantlib 0.2.2, the reference implementation, over random 0.2.0 files.

Both are told the same of the machine and have to give the same variants in the same order. Where
the two are known to differ, the random files keep away from it; the corpus says how
(`conformance/differences.json`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import variantlib.resolver.lib
from variantlib.errors import ValidationError
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
from pep_variants.errors import InconsistentMetadata
from pep_variants.formats.merging import merge
from pep_variants.formats.reader import metadata_from_tree, read_metadata
from pep_variants.formats.writer import metadata_to_tree
from pep_variants.model.generation import V0_2_0
from pep_variants.model.metadata import Metadata
from pep_variants.model.platform import Platform, Support
from support.random_releases import FEATURES, NAMESPACES, VALUES, World

FIXTURES = Path(__file__).parents[2] / "packages" / "pep-variants" / "tests" / "fixtures"


@pytest.fixture(autouse=True)
def _nothing_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hide from variantlib what is installed here, which `abi_dependency` would be about."""
    monkeypatch.setattr(variantlib.resolver.lib.importlib.metadata, "distributions", list)
    monkeypatch.delenv("VARIANT_ABI_DEPENDENCY", raising=False)
    monkeypatch.chdir(tmp_path)


def platform_of(world: World) -> Platform:
    return Platform({name: Support(found) for name, found in world.supported.items()})


def wishes_of(world: World) -> Preferences:
    return Preferences(
        namespace_priorities=tuple(world.pick([*NAMESPACES, "unknown"])),
        feature_priorities={name: tuple(world.pick(FEATURES)) for name in world.pick(NAMESPACES)},
        property_priorities={
            name: {feature: tuple(world.pick(VALUES)) for feature in world.pick(FEATURES)}
            for name in world.pick(NAMESPACES)
        },
    )


def theirs(tree: Mapping[str, Any], platform: Platform, wishes: Preferences) -> list[str]:
    """What variantlib makes of the same, by the way that its `get_variants_by_priority` takes."""
    tree = json.loads(json.dumps(tree))
    found = VariantsJson({**tree, "variants": {}})
    ordered = sort_and_filter_supported_variants(
        [VariantDescription.from_dict(item, label) for label, item in tree["variants"].items()],
        [
            VariantProperty(namespace, feature, value)
            for namespace, support in platform.namespaces.items()
            for feature, values in support.features.items()
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


def ours(tree: Mapping[str, Any], platform: Platform, wishes: Preferences) -> Ranking:
    return rank(read_metadata(json.dumps(tree), "p-1-variants.json"), platform, wishes)


def check(tree: Mapping[str, Any], platform: Platform, wishes: Preferences) -> tuple[str, ...]:
    ranking = ours(tree, platform, wishes)
    expected = theirs(tree, platform, wishes)
    assert list(ranking.labels) == expected
    assert {*ranking.rejected_labels} == {*tree["variants"]} - {*expected}
    return ranking.labels


def test_thousands_of_releases() -> None:
    compatible = rejected = 0
    for seed in range(3000):
        world = World(seed)
        labels = check(world.tree, platform_of(world), Preferences())
        compatible += len(labels)
        rejected += len(world.tree["variants"]) - len(labels)
    # They are worth something only if there was a lot to order and a lot to reject.
    assert compatible > 5000
    assert rejected > 5000


def test_wishes() -> None:
    moved = 0
    for seed in range(10_000, 11_000):
        world = World(seed)
        wishes = wishes_of(world)
        labels = check(world.tree, platform_of(world), wishes)
        moved += labels != ours(world.tree, platform_of(world), Preferences()).labels
    assert moved > 200


def test_merging() -> None:
    """Parts of a release are combined, or found to contradict each other, by both alike."""
    outcomes = {"merged": 0, "contradiction": 0}
    for seed in range(40_000, 40_600):
        world = World(seed)
        one, two = (dict(world.tree), dict(world.tree))
        labels = list(world.tree["variants"])
        for part in (one, two):
            part["variants"] = {name: world.tree["variants"][name] for name in world.pick(labels)}
        change = world.chance.randrange(4)
        if change == 1:
            two["default-priorities"] = {"namespace": world.pick(world.namespaces, 1)}
            kept = two["default-priorities"]["namespace"]
            two["providers"] = {name: world.tree["providers"][name] for name in kept}
            two["variants"] = {
                label: properties
                for label, properties in two["variants"].items()
                if set(properties) <= set(kept)
            }
        elif change == 2 and labels:
            two["variants"] = {**two["variants"], labels[0]: {world.namespaces[0]: {"one": ["_"]}}}
            if labels[0] == "null":
                continue
        elif change == 3:
            name = world.namespaces[0]
            two["providers"] = {
                **two["providers"],
                name: World(seed + 1).tree["providers"].popitem()[1],
            }
        try:
            expected: VariantsJson | None = VariantsJson(json.loads(json.dumps(one)))
            assert expected is not None
            expected.merge(VariantsJson(json.loads(json.dumps(two))))
        except ValidationError:
            expected = None
        try:
            merged: Metadata | None = merge(
                metadata_from_tree(one, "1"), metadata_from_tree(two, "2")
            )
        except InconsistentMetadata:
            merged = None
        assert (merged is None) == (expected is None), (one, two)
        if merged is None or expected is None:
            outcomes["contradiction"] += 1
        else:
            outcomes["merged"] += 1
            assert merged == metadata_from_tree(json.loads(expected.to_str()), "")
    assert min(outcomes.values()) > 100


def test_what_we_write_is_read_alike() -> None:
    for seed in range(50_000, 50_300):
        tree = World(seed).tree
        metadata = metadata_from_tree(tree, "x")
        written = metadata_to_tree(metadata, V0_2_0)
        found = json.loads(VariantsJson(json.loads(json.dumps(written))).to_str())
        assert metadata_from_tree(found, "x") == metadata
        assert metadata_from_tree(json.loads(VariantsJson(tree).to_str()), "x") == metadata
