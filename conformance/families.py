"""Generated families of cases: random inputs from fixed seeds, expectations of `reference`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

from . import reference
from .reference import Marker, Properties

Tree = dict[str, Any]

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
_UNIVERSE: Mapping[str, Mapping[str, Sequence[str]]] = {
    "nvidia": {
        "cuda_version_lower_bound": ("13.0", "12.9", "12.8", "12.6", "12.0"),
        "sm_arch": ("120_real", "100_real", "90_real", "80_real", "80_virtual"),
    },
    "amd": {"gfx_arch": ("gfx1100", "gfx942", "gfx90a"), "rocm_version": ("7.0", "6.4", "6.3")},
    "x86_64": {"level": ("v4", "v3", "v2", "v1"), "avx512_bf16": ("on",), "avx2": ("on",)},
    "blas": {"library": ("mkl", "openblas", "blis"), "threads": ("openmp", "none")},
    "acme": {"board": ("z3", "z2", "z1"), "mode": ("turbo", "eco"), "fw": ("2.1", "2.0", "1.9")},
}


# Random parts: machines, properties, documents.


def _some(random: Random, items: Iterable[str], least: int = 1, most: int = 99) -> list[str]:
    """Return at least *least* of *items*, shuffled; mappings are sorted first."""
    known = sorted(items) if isinstance(items, Mapping) else list(items)
    return random.sample(known, random.randint(least, min(most, len(known))))


def _some_machine(random: Random, namespaces: Sequence[str]) -> dict[str, dict[str, list[str]]]:
    """Return what a machine supports: mostly much of each namespace, sometimes nothing."""
    machine = {}
    for namespace in namespaces:
        if random.random() < 0.12:
            continue
        known = _UNIVERSE[namespace]
        machine[namespace] = {
            feature: _some(random, known[feature], (len(known[feature]) + 1) // 2)
            for feature in _some(random, known)
        }
    return machine


def _some_properties(random: Random, namespaces: Sequence[str], likely: Properties) -> Properties:
    """Return properties of one variant; of features that are in *likely* mostly its values."""
    chosen = {}
    for namespace in sorted(_some(random, namespaces, 1, 3)):
        pool: Iterable[str] = _UNIVERSE[namespace]
        if namespace in likely and random.random() < 0.8:
            pool = likely[namespace]
        features = {}
        for feature in sorted(_some(random, pool, 1, 2)):
            kept = likely.get(namespace, {}).get(feature, [])
            picked = set(_some(random, _UNIVERSE[namespace][feature], 1, 3))
            if kept and random.random() < 0.7:
                picked.add(random.choice(kept))
            features[feature] = sorted(picked)
        chosen[namespace] = features
    return chosen


def _some_variants(
    random: Random, namespaces: Sequence[str], machine: Properties, count: int, null: float = 0.7
) -> dict[str, Properties]:
    """Return *count* variants by label, and with the probability *null* the null variant."""
    variants: dict[str, Properties] = {}
    for name in random.sample("abcdefghijklmnopqrstuvwxyz", count):
        properties = _some_properties(random, namespaces, machine)
        # Now and then the same properties under another label: the label decides then.
        if variants and random.random() < 0.08:
            properties = random.choice(list(variants.values()))
        variants[f"{name}{random.randint(1, 9)}"] = properties
    if random.random() < null:
        variants["null"] = {}
    return variants


def _document(
    namespaces: Sequence[str], variants: Mapping[str, Properties], generation: str = "0.1.1"
) -> Tree:
    """Return the metadata of a version."""
    return {
        "$schema": SCHEMAS[generation],
        "default-priorities": {"namespace": list(namespaces)},
        "variants": dict(variants),
    }


def _expected(document: Tree, machine: Properties, generation: str = "0.1.1") -> Tree:
    """Return the expectation: the order, and why the other labels do not fit."""
    order = reference.order(document, machine, generation)
    expect: Tree = {"order": order}
    rejected = {
        label: reference.unfit_features(properties, machine)
        for label, properties in document["variants"].items()
        if label not in order
    }
    if rejected:
        expect["rejected"] = rejected
    return expect if order else {**expect, "chosen": ""}


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


# Compatibility and order.


def _ordering(random: Random, least: int, most: int, variants: int) -> Tree:
    namespaces = _some(random, _UNIVERSE, least, most)
    machine = _some_machine(random, namespaces)
    document = _document(namespaces, _some_variants(random, namespaces, machine, variants))
    return {
        "title": f"{_counted(variants, 'variant')} in {_counted(len(namespaces), 'namespace')}",
        "machine": machine,
        "plain": True,
        "document": document,
        "expect": _expected(document, machine),
    }


def one_namespace(random: Random) -> Tree:
    """Make a case with one namespace."""
    return _ordering(random, 1, 1, random.randint(2, 7))


def several_namespaces(random: Random) -> Tree:
    """Make a case with several namespaces."""
    return _ordering(random, 2, 5, random.randint(3, 8))


def many_variants(random: Random) -> Tree:
    """Make a case with many variants."""
    return _ordering(random, 2, 4, random.randint(12, 24))


# Priorities, providers and preferences.


def feature_and_property_priorities(random: Random) -> Tree:
    """Make a case with all three kinds of default priorities."""
    generation = random.choice(["0.0.1", "0.0.2", "0.0.3", "0.1.0", "0.1.1"])
    namespaces = _some(random, _UNIVERSE, 1, 3)
    machine = _some_machine(random, namespaces)
    variants = _some_variants(random, namespaces, machine, random.randint(3, 6))
    document = _document(namespaces, variants, generation)
    priorities = document["default-priorities"]
    priorities["feature"] = {name: _some(random, _UNIVERSE[name], 1, 2) for name in namespaces}
    priorities["property"] = {
        name: {
            feature: _some(random, _UNIVERSE[name][feature], 1, 2)
            for feature in _some(random, _UNIVERSE[name], 1, 2)
        }
        for name in namespaces
    }
    if generation.startswith("0.0."):
        plugins = {name: {"requires": [f"{name.replace('_', '-')}-plugin"]} for name in namespaces}
        document |= {"providers": plugins, "variants": document.pop("variants")}
    return {
        "title": f"Priorities of features and properties in format {generation}",
        "machine": machine,
        "plain": True,
        "document": document,
        "expect": _expected(document, machine, generation),
    }


# Markers whose truth is the same on every machine.
_ENABLE_IF = {
    "python_version >= '3'": True,
    "platform_system != 'Plan9'": True,
    "python_version < '3'": False,
    "platform_machine == 'pdp11'": False,
}


def providers(random: Random) -> Tree:
    """Make a case with static, optional and conditional providers, which need no plugin."""
    generation = random.choice(["0.0.2", "0.0.3", "0.2.0"])
    namespaces = _some(random, _UNIVERSE, 2, 4)
    everything = _some_machine(random, namespaces)
    variants = _some_variants(random, namespaces, everything, random.randint(3, 6))
    document = _document(namespaces, variants, generation)
    machine: Tree = {}
    tables: dict[str, Tree] = {}
    static: Tree = {}
    order: dict[str, list[str]] = {}
    for namespace in namespaces:
        features = everything.get(namespace, {})
        table = tables[namespace] = {}
        if not features or random.random() < 0.3:  # a plugin that does not run
            table["requires"] = [f"{namespace.replace('_', '-')}-plugin"]
        else:
            order[namespace] = random.sample(sorted(features), len(features))
            static[namespace] = features
            if generation == "0.2.0":
                table |= {"static-properties": features, "feature-order": order[namespace]}
            elif generation == "0.0.3":
                table["install-time"] = False
            else:
                table["plugin-use"] = "none"
        if random.random() < 0.25:
            table["optional"] = True
        if generation != "0.2.0" and random.random() < 0.35:
            table["enable-if"] = random.choice(list(_ENABLE_IF))
        if features and random.random() < 0.3:
            machine[namespace] = features
    priorities = document["default-priorities"]
    document["providers"] = tables
    if generation != "0.2.0":
        priorities["feature"] = order
    if generation == "0.0.2":
        priorities["property"] = static
    elif generation == "0.0.3":
        document["static-properties"] = static
    document["variants"] = document.pop("variants")  # the last key
    enabled = [n for n, table in tables.items() if "optional" in table and random.random() < 0.4]
    applies = [marker for marker, truth in _ENABLE_IF.items() if truth]
    support = reference.supported(document, machine, generation, enabled, applies)
    return {
        "title": f"Providers of {_counted(len(namespaces), 'namespace')} in format {generation}",
        "machine": machine,
        "plain": True,
        "document": document,
        **({"options": {"variant-enable": enabled}} if enabled else {}),
        "expect": _expected(document, support, generation),
    }


def preferences(random: Random) -> Tree:
    """Make a case with options, or with the same in settings."""
    namespaces = _some(random, _UNIVERSE, 2, 4)
    machine = _some_machine(random, namespaces)
    variants = _some_variants(random, namespaces, machine, random.randint(4, 7))
    document = _document(namespaces, variants)
    used = [triple for item in variants.values() for triple in reference.triples(item)]
    excluded = []
    if random.random() < 0.4:
        excluded = [" :: ".join(random.choice(used)[: random.randint(1, 3)])]
    features: dict[str, list[str]] = {}
    values: dict[str, dict[str, list[str]]] = {}
    given: Tree = {}
    kind = "options" if random.random() < 0.5 else "settings"
    if kind == "options":
        chosen = [random.choice(used)[: random.randint(1, 3)] for _ in range(random.randint(1, 3))]
        first = list(dict.fromkeys(item[0] for item in chosen))
        for item in chosen:
            if len(item) > 1:
                features.setdefault(item[0], []).append(item[1])
            if len(item) > 2:
                values.setdefault(item[0], {}).setdefault(item[1], []).append(item[2])
        given["variant-prefer"] = [" :: ".join(item) for item in chosen]
    else:
        first = _some(random, namespaces, 1, 2)
        features = {n: _some(random, _UNIVERSE[n], 1, 2) for n in _some(random, namespaces)}
        values = {
            namespace: {f: _some(random, _UNIVERSE[namespace][f], 1, 2) for f in names}
            for namespace, names in features.items()
        }
        given["namespace_priorities"] = first
        given["feature_priorities"] = features
        given["property_priorities"] = values
    if excluded:
        given["variant-exclude" if kind == "options" else "exclude"] = excluded
    wanted = reference.Preferences(first, features, values, excluded)
    order = reference.order(document, machine, preferences=wanted)
    rest = sorted(set(variants) - set(order))
    expect: Tree = {"order": order, **({"rejected": rest} if rest else {})}
    if not order:
        expect["chosen"] = ""
    return {
        "title": f"{kind.capitalize()} on {_counted(len(namespaces), 'namespace')}",
        "machine": machine,
        "plain": True,
        "document": document,
        kind: given,
        "expect": expect,
    }


# Metadata of several sources.


def merging(random: Random) -> Tree:
    """Make a case of several documents, consistent ones mostly."""
    namespaces = _some(random, _UNIVERSE, 2, 4)
    machine = _some_machine(random, namespaces)
    variants = _some_variants(random, namespaces, machine, random.randint(3, 6))
    documents = []
    for _ in range(random.randint(2, 3)):
        labels = sorted(_some(random, variants))
        used = [n for label in labels for n in variants[label]]
        shortest = max((namespaces.index(name) + 1 for name in used), default=1)
        listed = namespaces[: random.randint(shortest, len(namespaces))]
        documents.append(_document(listed, {label: variants[label] for label in labels}))
    fault = random.random()
    last = documents[-1]["default-priorities"]["namespace"]
    if fault < 0.15:
        last += [name for name in namespaces if name not in last]
        last.reverse()
    elif fault < 0.3:
        label = random.choice(sorted(documents[0]["variants"]))
        changed = _some_properties(random, last, machine)
        documents[-1]["variants"][label if label != "null" else "z9"] = changed
    random.shuffle(documents)
    sources = _counted(len(documents), "source")
    case: Tree = {"title": "", "machine": machine, "plain": True, "documents": documents}
    try:
        combined = reference.combine(documents)
    except reference.InconsistentDocuments:
        case["title"] = f"The metadata of {sources} is contradictory"
        # The wheels made of these documents need not show the contradiction.
        case["install"] = False
        case["expect"] = {"chosen": "", "error": {"kind": "merge"}}
    else:
        case["title"] = f"The metadata of {sources} combined"
        case["expect"] = _expected(combined, machine)
    return case


# Wheels of several platforms and builds.

# Tags of CPython 3.12 on Linux with x86_64 processors, the most specific first.
_TAGS = (
    "cp312-cp312-manylinux_2_28_x86_64",
    "cp312-cp312-manylinux_2_17_x86_64",
    "cp312-abi3-manylinux_2_28_x86_64",
    "cp312-none-manylinux_2_17_x86_64",
    "cp310-abi3-manylinux_2_17_x86_64",
    "py3-none-manylinux_2_17_x86_64",
    "py3-none-any",
)
_OTHER_TAGS = (
    "cp312-cp312-manylinux_2_28_aarch64",
    "cp312-cp312-macosx_11_0_arm64",
    "cp312-cp312-win_amd64",
    "cp311-cp311-manylinux_2_28_x86_64",
)


class _File(NamedTuple):
    label: str
    tag: str
    build: str

    @property
    def wheel(self) -> str:
        return "-".join(filter(None, ("gpu-1.0", self.build, self.tag, self.label))) + ".whl"

    @property
    def mark(self) -> str:
        """Name of the project that the wheel depends on, which shows which one was chosen."""
        build = f"build{self.build}" if self.build else "nobuild"
        return f"is_{self.tag.replace('-', '_')}_{build}"


def tags_and_builds(random: Random) -> Tree:
    """Make a case with wheels of several tags and build numbers."""
    namespaces = _some(random, _UNIVERSE, 1, 2)
    machine = _some_machine(random, namespaces)
    variants = _some_variants(random, namespaces, machine, random.randint(1, 3), null=0.5)
    document = _document(namespaces, variants)
    files: set[_File] = set()
    for label in [*variants, *random.choice([[], [""]])]:
        for _ in range(random.randint(1, 3)):
            tag = random.choice(_TAGS if random.random() < 0.7 else _OTHER_TAGS)
            files.add(_File(label, tag, random.choice(["", "", "1", "2", "10"])))
    order = [*reference.order(document, machine), ""]
    best = min(
        (file for file in files if file.label in order and file.tag in _TAGS),
        key=lambda file: (order.index(file.label), _TAGS.index(file.tag), -int(file.build or 0)),
        default=None,
    )
    wheels = {file.wheel: file.mark for file in sorted(files)}
    names = list(wheels)
    random.shuffle(names)
    expect: Tree = {"error": {"kind": "unfit"}}
    if best is not None:
        version = f"1.0-{best.label}" if best.label else "1.0"
        expect = {"installed": {"gpu": version, best.mark: "1.0"}}
    return {
        "title": f"{_counted(len(wheels), 'wheel')} of {_counted(len(variants), 'variant')} by tag",
        "target": {"os": "linux", "arch": "x86_64", "python": "3.12"},
        "machine": machine,
        "index": [
            {"document": "gpu-1.0-variants.json", "content": document},
            *({"wheel": name, "requires": [wheels[name]]} for name in names),
            *({"wheel": f"{mark}-1.0-py3-none-any.whl"} for mark in sorted({*wheels.values()})),
        ],
        "install": ["gpu"],
        "expect": expect,
    }


# Markers of dependencies.

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


def _with_markers(random: Random, plain: float, depth: int) -> Tree:
    """Make a case of one variant and five markers; *plain* is the share of terms of others."""
    namespaces = _some(random, _UNIVERSE, 2, 3)
    while True:
        machine = _some_machine(random, namespaces)
        properties = _some_properties(random, namespaces, machine)
        if not reference.unfit_features(properties, machine):
            break
    label = random.choice(["cu128", "fast", "v3_mkl", "1.0"])
    variants = {label: properties}
    if random.random() < 0.15:
        label, properties, variants = "null", {}, {"null": {}}
    elif random.random() < 0.1:
        label, properties, machine = "", {}, {}

    def leaf() -> Marker:
        if plain and random.random() < plain:
            return random.choice(_PLAIN_MARKERS)
        return _comparison(random, label, properties)

    requires, reduced = [], []
    for name in ("alpha", "beta", "gamma", "delta", "epsilon"):
        marker = _tree(random, leaf, depth, random.choice(["and", "or"]))
        requires.append(f"{name}; {_text(random, marker)}")
        left = reference.simplified(marker, label, properties, machine)
        if left is True:
            reduced.append(name)
        elif isinstance(left, tuple):
            reduced.append(f"{name}; {_text(random, left, plain=True)}")
    return {
        "title": f"Five dependencies of {f'variant {label}' if label else 'the non-variant wheel'}",
        "machine": machine,
        "document": _document(namespaces, variants),
        **({} if label else {"plain": True}),
        "requires": requires,
        "expect": {"order": [label] if label else [], "chosen": label, "requires": reduced},
    }


def variant_markers(random: Random) -> Tree:
    """Make a case whose markers have variant terms only."""
    return _with_markers(random, 0, 3)


def mixed_markers(random: Random) -> Tree:
    """Make a case whose markers have both kinds of terms; of two levels one spelling is left."""
    return _with_markers(random, 0.4, 2)


class Family(NamedTuple):
    """One generated file.

    Attributes:
        path: ``AREA/TOPIC`` below ``cases``.
        topic: what its cases have in common.
        section: where the expectation is written, document and section.
        seed: of the random numbers.
        size: how many cases.
        make: makes one case, without ``name`` and ``source``.
    """

    path: str
    topic: str
    section: tuple[str, str]
    seed: int
    size: int
    make: Callable[[Random], Tree]

    def cases(self, seed: int, size: int) -> list[Tree]:
        """Return *size* cases that follow from *seed*."""
        random = Random(seed)
        document, section = self.section
        cases = []
        for number in range(1, size + 1):
            made = self.make(random)
            head = {"name": f"random-{number:02}", "title": made.pop("title")}
            source = [{"document": document, "section": section}]
            cases.append({**head, "source": source, **made})
        return cases

    def file(self) -> Tree:
        """Return the content of the file."""
        return {
            "$schema": "../../case.schema.json",
            "topic": self.topic,
            "family": {"generator": self.make.__name__, "seed": self.seed},
            "cases": self.cases(self.seed, self.size),
        }


_ORDER = ("PEP 825", "Variant ordering")
_MARKERS = ("PEP 825", "Evaluating variant markers")

FAMILIES = (
    Family(
        "markers/random-variant-terms",
        "Random markers of variant terms alone",
        _MARKERS, 8255, 50, variant_markers,
    ),
    Family(
        "markers/random-mixed-terms",
        "Random markers of variant terms and others",
        _MARKERS, 8256, 40, mixed_markers,
    ),
    Family(
        "merging/random-documents",
        "Combining the metadata of several wheels of one version",
        ("PEP 825", "Metadata consistency"), 8254, 40, merging,
    ),
    Family(
        "ordering/random-one-namespace",
        "Compatibility and order of random variants of one namespace",
        _ORDER, 8251, 40, one_namespace,
    ),
    Family(
        "ordering/random-several-namespaces",
        "Compatibility and order of random variants of two to five namespaces",
        _ORDER, 8252, 50, several_namespaces,
    ),
    Family(
        "ordering/random-many-variants",
        "Compatibility and order of many random variants",
        _ORDER, 8253, 15, many_variants,
    ),
    Family(
        "platforms/random-tags-and-builds",
        "Variants with wheels of several platforms and builds: "
        "variant, then tag, then build number",
        _ORDER, 8257, 40, tags_and_builds,
    ),
    Family(
        "preferences/random-options",
        "Preferred and excluded namespaces, features and properties reorder and narrow",
        ("pep-variants README", "Options"), 8258, 40, preferences,
    ),
    Family(
        "priorities/random-features-and-properties",
        "default-priorities.feature and .property in the generations that have them, "
        "ignored in others",
        ("PEP 817", "Default priorities"), 8170, 50, feature_and_property_priorities,
    ),
    Family(
        "providers/random-static-optional-conditional",
        "Static, optional and conditional providers, with and without the machine's own list",
        ("PEP 817", "Providers"), 8171, 50, providers,
    ),
)  # fmt: skip
