"""Families about the priorities in metadata."""

from __future__ import annotations

from random import Random

from .. import reference
from . import Tree, family
from .parts import (
    UNIVERSE,
    document_of,
    expected,
    some,
    some_machine,
    some_namespaces,
    some_variants,
)


@family(
    "priorities/random-features-and-properties",
    "default-priorities.feature and .property in the generations that have them, ignored in others",
    ("PEP 817", "Default priorities"),
    seed=8170,
    count=50,
)
def feature_and_property_priorities(random: Random) -> Tree:
    """Make a case with all three kinds of default priorities."""
    generation = random.choice(["0.0.1", "0.0.2", "0.0.3", "0.1.0", "0.1.1"])
    namespaces = some_namespaces(random, 1, 3)
    machine = some_machine(random, namespaces)
    document = document_of(
        namespaces, some_variants(random, namespaces, machine, random.randint(3, 6)), generation
    )
    priorities = document["default-priorities"]
    priorities["feature"] = {
        namespace: some(random, sorted(UNIVERSE[namespace]), 1, 2) for namespace in namespaces
    }
    priorities["property"] = {
        namespace: {
            feature: some(random, UNIVERSE[namespace][feature], 1, 2)
            for feature in some(random, sorted(UNIVERSE[namespace]), 1, 2)
        }
        for namespace in namespaces
    }
    if generation.startswith("0.0."):
        document = {
            "$schema": document.pop("$schema"),
            "default-priorities": document["default-priorities"],
            "providers": {
                namespace: {"requires": [f"{namespace.replace('_', '-')}-plugin"]}
                for namespace in namespaces
            },
            "variants": document["variants"],
        }
    return {
        "title": f"Priorities of features and properties in format {generation}",
        "machine": machine,
        "plain": True,
        "document": document,
        "expect": expected(document, machine, reference.order(document, machine, generation)),
    }
