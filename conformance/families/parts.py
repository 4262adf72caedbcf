"""Random parts of cases: machines, properties, documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from .. import reference
from ..reference import Properties
from . import Tree

_BASE = "https://variants-schema.wheelnext.dev/"
SCHEMAS = {
    "0.0.1": _BASE,
    "0.0.2": f"{_BASE}v0.0.2.json",
    "0.0.3": f"{_BASE}v0.0.3.json",
    "0.1.0": f"{_BASE}peps/825/v0.1.0.json",
    "0.1.1": f"{_BASE}peps/825/v0.1.1.json",
    "0.2.0": f"{_BASE}v0.2.0.json",
}

# What properties are made of: namespaces as the field has them, features and values short.
UNIVERSE: Mapping[str, Mapping[str, Sequence[str]]] = {
    "nvidia": {
        "cuda_version_lower_bound": ("13.0", "12.9", "12.8", "12.6", "12.0"),
        "sm_arch": ("120_real", "100_real", "90_real", "80_real", "80_virtual"),
    },
    "amd": {"gfx_arch": ("gfx1100", "gfx942", "gfx90a"), "rocm_version": ("7.0", "6.4", "6.3")},
    "x86_64": {"level": ("v4", "v3", "v2", "v1"), "avx512_bf16": ("on",), "avx2": ("on",)},
    "blas": {"library": ("mkl", "openblas", "blis"), "threads": ("openmp", "none")},
    "acme": {"board": ("z3", "z2", "z1"), "mode": ("turbo", "eco"), "fw": ("2.1", "2.0", "1.9")},
}


def some(random: Random, items: Sequence[str], least: int = 1, most: int = 99) -> list[str]:
    """Return at least *least* of *items*, shuffled."""
    return random.sample(items, random.randint(least, min(most, len(items))))


def some_namespaces(random: Random, least: int, most: int) -> list[str]:
    """Return namespaces of the universe, shuffled."""
    return some(random, sorted(UNIVERSE), least, most)


def some_machine(random: Random, namespaces: Sequence[str]) -> dict[str, dict[str, list[str]]]:
    """Return what a machine supports: mostly much of each namespace, sometimes nothing."""
    machine = {}
    for namespace in namespaces:
        if random.random() < 0.12:
            continue
        features = some(random, sorted(UNIVERSE[namespace]))
        machine[namespace] = {
            feature: some(
                random, UNIVERSE[namespace][feature], (len(UNIVERSE[namespace][feature]) + 1) // 2
            )
            for feature in features
        }
    return machine


def some_properties(
    random: Random, namespaces: Sequence[str], likely: Properties
) -> dict[str, dict[str, list[str]]]:
    """Return properties of one variant; of features that are in *likely* mostly its values."""
    chosen = {}
    for namespace in sorted(some(random, namespaces, 1, 3)):
        pool = sorted(UNIVERSE[namespace])
        if namespace in likely and random.random() < 0.8:
            pool = sorted(likely[namespace])
        features = {}
        for feature in sorted(some(random, pool, 1, 2)):
            values = list(UNIVERSE[namespace][feature])
            kept = likely.get(namespace, {}).get(feature, [])
            picked = set(some(random, values, 1, 3))
            if kept and random.random() < 0.7:
                picked.add(random.choice(kept))
            features[feature] = sorted(picked)
        chosen[namespace] = features
    return chosen


def some_variants(
    random: Random, namespaces: Sequence[str], machine: Properties, count: int, null: float = 0.7
) -> dict[str, Properties]:
    """Return *count* variants by label, and with the probability *null* the null variant."""
    variants: dict[str, Properties] = {}
    for name in random.sample("abcdefghijklmnopqrstuvwxyz", count):
        properties: Properties = some_properties(random, namespaces, machine)
        # Now and then the same properties under another label: the label decides then.
        if variants and random.random() < 0.08:
            properties = random.choice(list(variants.values()))
        variants[f"{name}{random.randint(1, 9)}"] = properties
    if random.random() < null:
        variants["null"] = {}
    return variants


def document_of(
    namespaces: Sequence[str], variants: Mapping[str, Properties], generation: str = "0.1.1"
) -> Tree:
    """Return the metadata of a version."""
    return {
        "$schema": SCHEMAS[generation],
        "default-priorities": {"namespace": list(namespaces)},
        "variants": dict(variants),
    }


def expected(document: Tree, machine: Properties, order: Sequence[str]) -> Tree:
    """Return the expectation: the order, and why the other labels do not fit."""
    expect: Tree = {"order": list(order)}
    rejected = {
        label: reference.unfit_features(properties, machine)
        for label, properties in document["variants"].items()
        if label not in order
    }
    if rejected:
        expect["rejected"] = rejected
    if not order:
        expect["chosen"] = ""
    return expect


def counted(number: int, noun: str) -> str:
    """Return the noun with its number."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
