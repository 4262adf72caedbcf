"""Families about metadata of several sources."""

from __future__ import annotations

from random import Random

from .. import reference
from . import Tree, family
from .parts import (
    counted,
    document_of,
    expected,
    some,
    some_machine,
    some_namespaces,
    some_properties,
    some_variants,
)


@family(
    "merging/random-documents",
    "Combining the metadata of several wheels of one version",
    ("PEP 825", "Metadata consistency"),
    seed=8254,
    count=40,
)
def merging(random: Random) -> Tree:
    """Make a case of several documents, consistent ones mostly."""
    namespaces = some_namespaces(random, 2, 4)
    machine = some_machine(random, namespaces)
    variants = some_variants(random, namespaces, machine, random.randint(3, 6))
    documents = []
    for _ in range(random.randint(2, 3)):
        labels = sorted(some(random, sorted(variants)))
        used = [n for label in labels for n in variants[label]]
        shortest = max((namespaces.index(name) + 1 for name in used), default=1)
        listed = namespaces[: random.randint(shortest, len(namespaces))]
        documents.append(document_of(listed, {label: variants[label] for label in labels}))
    fault = random.random()
    if fault < 0.15:
        listed = documents[-1]["default-priorities"]["namespace"]
        listed += [name for name in namespaces if name not in listed]
        listed.reverse()
    elif fault < 0.3:
        label = random.choice(sorted(documents[0]["variants"]))
        changed = some_properties(random, documents[-1]["default-priorities"]["namespace"], machine)
        documents[-1]["variants"][label if label != "null" else "z9"] = changed
    random.shuffle(documents)
    case: Tree = {
        "title": f"The metadata of {counted(len(documents), 'source')} combined",
        "machine": machine,
        "plain": True,
        "documents": documents,
    }
    try:
        combined = reference.combine(documents)
    except reference.InconsistentDocuments:
        case["title"] = f"The metadata of {counted(len(documents), 'source')} is contradictory"
        # The wheels made of these documents need not show the contradiction.
        case["install"] = False
        case["expect"] = {"chosen": "", "error": {"kind": "merge"}}
    else:
        case["expect"] = expected(combined, machine, reference.order(combined, machine))
    return case
