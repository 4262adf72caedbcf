"""Families about providers that need no plugin."""

from __future__ import annotations

from random import Random
from typing import Any

from .. import reference
from . import Tree, family
from .parts import (
    counted,
    document_of,
    expected,
    some_machine,
    some_namespaces,
    some_variants,
)

# Markers whose truth is the same on every machine.
_ENABLE_IF = {
    "python_version >= '3'": True,
    "platform_system != 'Plan9'": True,
    "python_version < '3'": False,
    "platform_machine == 'pdp11'": False,
}


@family(
    "providers/random-static-optional-conditional",
    "Static, optional and conditional providers, with and without the machine's own list",
    ("PEP 817", "Providers"),
    seed=8171,
    count=50,
)
def providers(random: Random) -> Tree:
    """Make a case with providers that need no plugin."""
    generation = random.choice(["0.0.2", "0.0.3", "0.2.0"])
    namespaces = some_namespaces(random, 2, 4)
    everything = some_machine(random, namespaces)
    document = document_of(
        namespaces, some_variants(random, namespaces, everything, random.randint(3, 6)), generation
    )
    machine: dict[str, Any] = {}
    tables: dict[str, Tree] = {}
    static: dict[str, Any] = {}
    order: dict[str, list[str]] = {}
    for namespace in namespaces:
        features = everything.get(namespace, {})
        table = tables[namespace] = {}
        if not features or random.random() < 0.3:  # a plugin that does not run
            table["requires"] = [f"{namespace.replace('_', '-')}-plugin"]
        else:
            order[namespace] = random.sample(sorted(features), len(features))
            if generation == "0.2.0":
                table["static-properties"] = features
                table["feature-order"] = order[namespace]
            else:
                static[namespace] = features
                table |= (
                    {"install-time": False} if generation == "0.0.3" else {"plugin-use": "none"}
                )
        if random.random() < 0.25:
            table["optional"] = True
        if generation != "0.2.0" and random.random() < 0.35:
            table["enable-if"] = random.choice(list(_ENABLE_IF))
        if features and random.random() < 0.3:
            machine[namespace] = features
    priorities = document["default-priorities"]
    extra: Tree = {"providers": tables}
    if generation != "0.2.0":
        priorities["feature"] = order
    if generation == "0.0.2":
        priorities["property"] = static
    elif generation == "0.0.3":
        extra["static-properties"] = static
    variants = document.pop("variants")
    document |= {**extra, "variants": variants}
    enabled = [n for n, table in tables.items() if "optional" in table and random.random() < 0.4]
    applies = [marker for marker, truth in _ENABLE_IF.items() if truth]
    support = reference.supported(document, machine, generation, enabled, applies)
    case: Tree = {
        "title": f"Providers of {counted(len(namespaces), 'namespace')} in format {generation}",
        "machine": machine,
        "plain": True,
        "document": document,
    }
    if enabled:
        case["options"] = {"variant-enable": enabled}
    case["expect"] = expected(document, support, reference.order(document, support, generation))
    return case
