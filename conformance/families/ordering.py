"""Families about compatibility and order."""

from __future__ import annotations

from random import Random

from .. import reference
from . import Tree, family
from .parts import counted, document_of, expected, some_machine, some_namespaces, some_variants

_ORDER = ("PEP 825", "Variant ordering")


def _ordering(random: Random, least: int, most: int, variants: int) -> Tree:
    namespaces = some_namespaces(random, least, most)
    machine = some_machine(random, namespaces)
    document = document_of(namespaces, some_variants(random, namespaces, machine, variants))
    return {
        "title": f"{counted(variants, 'variant')} in {counted(len(namespaces), 'namespace')}",
        "machine": machine,
        "plain": True,
        "document": document,
        "expect": expected(document, machine, reference.order(document, machine)),
    }


@family(
    "ordering/random-one-namespace",
    "Compatibility and order of random variants of one namespace",
    _ORDER,
    seed=8251,
    count=40,
)
def one_namespace(random: Random) -> Tree:
    """Make a case with one namespace."""
    return _ordering(random, 1, 1, random.randint(2, 7))


@family(
    "ordering/random-several-namespaces",
    "Compatibility and order of random variants of two to five namespaces",
    _ORDER,
    seed=8252,
    count=50,
)
def several_namespaces(random: Random) -> Tree:
    """Make a case with several namespaces."""
    return _ordering(random, 2, 5, random.randint(3, 8))


@family(
    "ordering/random-many-variants",
    "Compatibility and order of many random variants",
    _ORDER,
    seed=8253,
    count=15,
)
def many_variants(random: Random) -> Tree:
    """Make a case with many variants."""
    return _ordering(random, 2, 4, random.randint(12, 24))
