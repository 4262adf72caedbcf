"""Families about options and settings."""

from __future__ import annotations

from random import Random

from .. import reference
from . import Tree, family
from .parts import (
    UNIVERSE,
    counted,
    document_of,
    some,
    some_machine,
    some_namespaces,
    some_variants,
)


@family(
    "preferences/random-options",
    "Preferred and excluded namespaces, features and properties reorder and narrow",
    ("pep-variants README", "Options"),
    seed=8258,
    count=40,
)
def preferences(random: Random) -> Tree:
    """Make a case with options, or with the same in settings."""
    namespaces = some_namespaces(random, 2, 4)
    machine = some_machine(random, namespaces)
    variants = some_variants(random, namespaces, machine, random.randint(4, 7))
    document = document_of(namespaces, variants)
    used = [triple for item in variants.values() for triple in reference.triples(item)]
    excluded = []
    if random.random() < 0.4:
        excluded = [" :: ".join(random.choice(used)[: random.randint(1, 3)])]
    features: dict[str, list[str]] = {}
    values: dict[str, dict[str, list[str]]] = {}
    case: Tree = {"machine": machine, "plain": True, "document": document}
    if random.random() < 0.5:
        chosen = [random.choice(used)[: random.randint(1, 3)] for _ in range(random.randint(1, 3))]
        first = list(dict.fromkeys(item[0] for item in chosen))
        for item in chosen:
            if len(item) > 1:
                features.setdefault(item[0], []).append(item[1])
            if len(item) > 2:
                values.setdefault(item[0], {}).setdefault(item[1], []).append(item[2])
        case["options"] = {"variant-prefer": [" :: ".join(item) for item in chosen]}
        if excluded:
            case["options"]["variant-exclude"] = excluded
    else:
        first = some(random, namespaces, 1, 2)
        features = {n: some(random, sorted(UNIVERSE[n]), 1, 2) for n in some(random, namespaces)}
        values = {
            namespace: {f: some(random, UNIVERSE[namespace][f], 1, 2) for f in names}
            for namespace, names in features.items()
        }
        case["settings"] = {
            "namespace_priorities": first,
            "feature_priorities": features,
            "property_priorities": values,
        }
        if excluded:
            case["settings"]["exclude"] = excluded
    wanted = reference.Preferences(first, features, values, excluded)
    order = reference.order(document, machine, preferences=wanted)
    rest = sorted(set(variants) - set(order))
    expect: Tree = {"order": order, **({"rejected": rest} if rest else {})}
    if not order:
        expect["chosen"] = ""
    kind = "Options" if "options" in case else "Settings"
    return {"title": f"{kind} on {counted(len(namespaces), 'namespace')}", **case, "expect": expect}
