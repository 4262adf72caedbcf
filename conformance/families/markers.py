"""Families about markers of dependencies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from .. import reference
from ..reference import Marker, Properties
from . import Tree, family
from .parts import document_of, some_machine, some_namespaces, some_properties

_PLAIN_MARKERS: Sequence[Marker] = (
    ("plain", "python_version >= '3'", True),
    ("plain", "sys_platform != 'plan9'", True),
    ("plain", "python_version < '3'", False),
    ("plain", "platform_machine == 'pdp11'", False),
)


def _comparison(random: Random, label: str, properties: Properties) -> Marker:
    """Return a comparison of a variant variable, with something the wheel has or has not."""
    pool = [
        *reference.triples(properties),
        ("acme", "board", "z9"),
        ("nvidia", "sm_arch", "80_real"),
    ]
    triple = random.choice(pool)
    kind = random.randrange(4)
    if kind == 0:
        literal = random.choice([label, "null", "", "other"])
        return (random.choice(["==", "!="]), "variant_label", literal)
    variable = ("variant_namespaces", "variant_features", "variant_properties")[kind - 1]
    return (random.choice(["in", "in", "not in"]), " :: ".join(triple[:kind]), variable)


def _text(random: Random, marker: Marker, outer: str = "", *, plain: bool = False) -> str:
    """Return a marker as text.

    Quotes, white space and parentheses vary, but for markers that are *plain*: these have the
    parentheses that they need.
    """
    kind, *operands = marker
    if kind == "plain":
        return str(operands[0])
    if kind in ("and", "or"):
        joined = f" {kind} ".join(_text(random, item, kind, plain=plain) for item in operands)
        needed = kind == "or" and outer == "and"
        return f"({joined})" if needed or (outer and not plain and _rarely(random)) else joined
    quote = '"' if _rarely(random) else "'"
    colons = random.choice([" :: ", "::", " ::  "])
    first, second = operands
    if kind in ("in", "not in"):
        return f"{quote}{first.replace(' :: ', colons)}{quote} {kind} {second}"
    sides = [first, f"{quote}{second}{quote}"]
    if _rarely(random):
        sides.reverse()
    return f" {kind} ".join(sides)


def _rarely(random: Random) -> bool:
    return random.random() < 0.25


def _tree(random: Random, leaf: Callable[[], Marker], depth: int, kind: str) -> Marker:
    if depth == 0 or random.random() < 0.25:
        return leaf()
    other = "or" if kind == "and" else "and"
    operands = [_tree(random, leaf, depth - 1, other) for _ in range(random.randint(2, 3))]
    return (kind, *operands)


def _selected(random: Random) -> tuple[Tree, str, Properties]:
    """Return a case of one variant, and label and properties of the wheel that is chosen."""
    namespaces = some_namespaces(random, 2, 3)
    while True:
        machine = some_machine(random, namespaces)
        properties = some_properties(random, namespaces, machine)
        if not reference.unfit_features(properties, machine):
            break
    label = random.choice(["cu128", "fast", "v3_mkl", "1.0"])
    variants: dict[str, Properties] = {label: properties}
    if random.random() < 0.15:
        label, properties, variants = "null", {}, {"null": {}}
    elif random.random() < 0.1:
        label, properties, machine = "", {}, {}
    document = document_of(namespaces, variants)
    case: Tree = {"machine": machine, "document": document}
    if not label:
        case["plain"] = True
    return case, label, properties


def _with_markers(random: Random, leaves: Callable[[str, Properties], Marker], depth: int) -> Tree:
    case, label, properties = _selected(random)
    machine = case["machine"]
    requires, reduced = [], []
    for name in ("alpha", "beta", "gamma", "delta", "epsilon"):
        kind = random.choice(["and", "or"])
        marker = _tree(random, lambda: leaves(label, properties), depth, kind)
        requires.append(f"{name}; {_text(random, marker)}")
        left = reference.simplified(marker, label, properties, machine)
        if left is True:
            reduced.append(name)
        elif isinstance(left, tuple):
            reduced.append(f"{name}; {_text(random, left, plain=True)}")
    return {
        "title": f"Five dependencies of {f'variant {label}' if label else 'the non-variant wheel'}",
        **case,
        "requires": requires,
        "expect": {"order": [label] if label else [], "chosen": label, "requires": reduced},
    }


_MARKERS = ("PEP 825", "Evaluating variant markers")


@family(
    "markers/random-variant-terms",
    "Random markers of variant terms alone",
    _MARKERS,
    seed=8255,
    count=50,
)
def variant_markers(random: Random) -> Tree:
    """Make a case whose markers have variant terms only."""
    return _with_markers(random, lambda *context: _comparison(random, *context), 3)


@family(
    "markers/random-mixed-terms",
    "Random markers of variant terms and others",
    _MARKERS,
    seed=8256,
    count=40,
)
def mixed_markers(random: Random) -> Tree:
    """Make a case whose markers have both kinds of terms."""

    def leaf(label: str, properties: Properties) -> Marker:
        if random.random() < 0.4:
            return random.choice(_PLAIN_MARKERS)
        return _comparison(random, label, properties)

    # Two levels: what is left of them has one spelling.
    return _with_markers(random, leaf, 2)
