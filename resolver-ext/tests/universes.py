"""Random package universes, two ways to resolve them, and an oracle that knows the answer.

A universe is generated from its number alone. Only `random.Random.random` is used, which Python
promises to keep the same across releases, so that a universe that failed can be tried again.

The oracle looks at the structure that the generator made, never at filenames, metadata files or
marker text: these are what the code under test has to understand.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from packaging.requirements import Requirement as ParsedRequirement
from resolvelib import AbstractProvider, BaseReporter, ResolutionImpossible, Resolver

from pep_variants.detect.detector import Detector
from pep_variants.formats.reader import read_metadata
from pep_variants.model.platform import Platform, Support
from resolvelib_variants import VariantProvider

SOURCE = "https://index.example/simple/"
SCHEMA = "https://variants-schema.wheelnext.dev/peps/825/v0.1.1.json"
ENVIRONMENT = {"sys_platform": "linux"}
MAX_VERSION = 4
MAX_ROUNDS = 5000
ASKED_BY_WRAPPER = ("offer", "dependencies")
"""What a wrapped provider with variants is asked for at other times, or not at all."""


class Requirement(NamedTuple):
    name: str
    versions: tuple[int, ...]

    def __str__(self):
        return f"{self.name}{list(self.versions)}"


class Candidate(NamedTuple):
    name: str
    version: int
    filename: str

    def __str__(self):
        return self.filename


class Dependency(NamedTuple):
    """`condition` is None, or a tuple that starts with one of the words in `holds`."""

    requirement: Requirement
    condition: tuple | None


@dataclass
class Release:
    """One version: labels of its variant wheels, its other files, and what its metadata says."""

    name: str
    version: int
    labels: list[str] = field(default_factory=list)
    plain: list[str] = field(default_factory=list)
    variants: dict[str, dict[str, dict[str, list[str]]]] = field(default_factory=dict)
    broken: bool = False
    dependencies: list[Dependency] = field(default_factory=list)

    def variant_file(self, label):
        return Candidate(
            self.name, self.version, f"{self.name}-{self.version}-py3-none-any-{label}.whl"
        )

    def candidates(self):
        """Every file, as an index lists them."""
        return [
            *(self.variant_file(label) for label in self.labels),
            *(Candidate(self.name, self.version, filename) for filename in self.plain),
        ]


@dataclass
class Universe:
    """Releases newest first, root requirements, and what the machine supports, in order."""

    releases: dict[str, list[Release]]
    roots: list[Requirement]
    namespaces: list[str]
    supported: dict[str, dict[str, list[str]]]
    form: str  # of what find_matches returns: list, iterator or callable
    counting: bool  # whether preferences count candidates, which takes laziness away

    def release(self, candidate):
        return next(r for r in self.releases[candidate.name] if r.version == candidate.version)


class Dice:
    def __init__(self, seed):
        self._random = random.Random(seed).random

    def chance(self, probability):
        return self._random() < probability

    def below(self, limit):
        return int(self._random() * limit)

    def pick(self, items):
        return items[self.below(len(items))]

    def some(self, items, probability):
        return [item for item in items if self.chance(probability)]

    def shuffled(self, items):
        return [item for _, item in sorted((self._random(), item) for item in items)]


VALUES = {
    "cpu": {"level": ["v1", "v2", "v3", "v4"], "amx": ["on"]},
    "gpu": {"arch": ["70", "80", "90"], "driver": ["12.6", "12.8", "13.0"]},
    "site": {"rack": ["a", "b"]},
}


def plain_universe(number):
    """Return a universe without variants."""
    return _universe(Dice(number), variants=False)


def variant_universe(number):
    """Return a universe in which most releases have variants, some of them broken."""
    return _universe(Dice(1_000_000 + number), variants=True)


def _universe(dice, variants):
    names = ["a", "b", "c", "d", "e", "f", "g"][: 4 + dice.below(4)]
    releases = {}
    supported = {
        namespace: {
            feature: dice.shuffled(dice.some(values, 0.7))
            for feature, values in features.items()
            if dice.chance(0.85)
        }
        for namespace, features in VALUES.items()
        if dice.chance(0.8)
    }
    # Dependencies follow an order of their own, not the one in which preferences pin, and make no
    # circles: resolvelib does not come to an end when one loses its way to the root.
    layers = dice.shuffled(names)
    for name in names:
        count = 2 + dice.below(MAX_VERSION - 1)
        releases[name] = []
        for version in range(count, 0, -1):
            release = Release(name, version)
            release.plain = [
                *([f"{name}-{version}-py3-none-any.whl"] if dice.chance(0.6) else []),
                *([f"{name}-{version}.tar.gz"] if dice.chance(0.5) else []),
            ]
            if variants and dice.chance(0.8):
                _add_variants(dice, release)
            if not release.candidates():
                release.plain = [f"{name}-{version}-py3-none-any.whl"]
            for other in layers[layers.index(name) + 1 :]:
                if dice.chance(0.6):
                    release.dependencies.append(_dependency(dice, other, release))
            releases[name].append(release)
    everything = tuple(range(1, MAX_VERSION + 1))
    roots = [Requirement(name, everything) for name in dice.some(names, 0.4) or names[:1]]
    return Universe(
        releases,
        roots,
        dice.shuffled(sorted(VALUES)),
        supported,
        dice.pick(["list", "iterator", "callable"]),
        dice.chance(0.3),
    )


def _add_variants(dice, release):
    for number in range(dice.below(4)):
        properties = {}
        for namespace, features in VALUES.items():
            chosen = {
                feature: values
                for feature, known in features.items()
                if dice.chance(0.35) and (values := dice.some(known, 0.5))
            }
            if chosen:
                properties[namespace] = chosen
        if properties:
            label = dice.pick(["x", "y", "z"]) + str(number)
            release.variants[label] = properties
            if dice.chance(0.95):  # metadata may list what was not uploaded
                release.labels.append(label)
    if dice.chance(0.4):
        release.labels.append("null")
        if dice.chance(0.5):
            release.variants["null"] = {}
    if dice.chance(0.1):
        release.labels.append("unknown")
    release.broken = dice.chance(0.06)
    release.labels = dice.shuffled(release.labels)


def _requirement(dice, name):
    versions = tuple(v for v in range(1, MAX_VERSION + 1) if dice.chance(0.5))
    return Requirement(name, versions or (1 + dice.below(3),))


def _dependency(dice, name, release):
    requirement = _requirement(dice, name)
    if not release.labels or dice.chance(0.3):
        return Dependency(requirement, None)
    condition = _atom(dice, release)
    if dice.chance(0.4):
        condition = (dice.pick(["and", "or"]), condition, _atom(dice, release))
    if dice.chance(0.2):
        condition = (dice.pick(["and", "or"]), condition, ("platform", dice.chance(0.6)))
    return Dependency(requirement, condition)


def _atom(dice, release):
    if dice.chance(0.4):
        label = dice.pick([*release.labels, ""])
        return dice.pick(["is", "is not"]), label
    # Mostly what some variant of the release has, so that the answer depends on the choice.
    known = dice.pick([VALUES, *filter(None, release.variants.values())])
    namespace = dice.pick(sorted(known))
    feature = dice.pick(sorted(known[namespace]))
    value = dice.pick(known[namespace][feature])
    parts = [namespace, feature, value][: 1 + dice.below(3)]
    return dice.pick(["has", "has not"]), " :: ".join(parts)


# What the code under test gets to see.


def marker_text(condition):
    word, *rest = condition
    if word in ("and", "or"):
        return f"({marker_text(rest[0])}) {word} ({marker_text(rest[1])})"
    if word == "platform":
        return f"sys_platform == '{'linux' if rest[0] else 'win32'}'"
    if word in ("is", "is not"):
        return f"variant_label {'==' if word == 'is' else '!='} '{rest[0]}'"
    variable = ("variant_namespaces", "variant_features", "variant_properties")[rest[0].count("::")]
    return f"'{rest[0]}' {'in' if word == 'has' else 'not in'} {variable}"


def requires_dist(release):
    for (name, versions), condition in release.dependencies:
        excluded = ",".join(f"!={v}" for v in range(1, MAX_VERSION + 1) if v not in versions)
        yield f"{name}{excluded}" + (f"; {marker_text(condition)}" if condition else "")


@cache
def parse_requirement(text):
    """Return the requirement of a plain ``Requires-Dist`` value, None if it does not apply."""
    parsed = ParsedRequirement(text)
    if parsed.marker is not None and not parsed.marker.evaluate(dict(ENVIRONMENT)):
        return None
    allowed = (v for v in range(1, MAX_VERSION + 1) if parsed.specifier.contains(str(v)))
    return Requirement(parsed.name, tuple(allowed))


def metadata_text(universe, release):
    text = json.dumps(
        {
            "$schema": SCHEMA,
            "default-priorities": {"namespace": universe.namespaces},
            "variants": release.variants,
        }
    )
    return text[: len(text) // 2] if release.broken else text


def platform_of(universe):
    return Platform(
        {
            namespace: Support({feature: tuple(values) for feature, values in features.items()})
            for namespace, features in universe.supported.items()
        },
        "platform.toml",
    )


class UniverseFiles:
    """`ProviderFiles` of a universe."""

    def __init__(self, universe, *, has_variants=None):
        self._universe = universe
        self._has_variants = has_variants
        self.metadata_calls = []

    def version(self, candidate):
        return candidate.version

    def filename(self, candidate):
        return candidate.filename

    def source(self, candidate):
        return SOURCE

    def metadata(self, project, candidate):
        self.metadata_calls.append((project, candidate.version))
        return read_metadata(
            metadata_text(self._universe, self._universe.release(candidate)),
            f"{SOURCE}{project}-{candidate.version}-variants.json",
        )

    def project(self, identifier):
        return identifier

    def has_variants(self, identifier):
        if self._has_variants is not None:
            return self._has_variants
        return any(release.labels for release in self._universe.releases[identifier])

    def dependencies(self, candidate, reduce):
        release = self._universe.release(candidate)
        if not release.labels:
            return None
        reduced = map(reduce, requires_dist(release))
        parsed = (parse_requirement(text) for text in reduced if text is not None)
        return [requirement for requirement in parsed if requirement is not None]


class HashedFiles(UniverseFiles):
    """The same, where the index tells that the wheels of a release have the same METADATA."""

    def metadata_hash(self, candidate):
        return candidate.name, candidate.version


class UniverseProvider(AbstractProvider):
    """A provider without any idea of variants, over given candidates and dependencies.

    It writes down what it is asked, and each candidate that is asked for.
    """

    def __init__(self, universe, candidates, dependencies, log):
        self._universe = universe
        self._candidates = candidates
        self._dependencies = dependencies
        self._log = log

    def identify(self, requirement_or_candidate):
        return requirement_or_candidate.name

    def get_preference(self, identifier, resolutions, candidates, information, backtrack_causes):
        self._log.append(("preference", identifier, sorted(resolutions)))
        causes = {cause.requirement.name for cause in backtrack_causes}
        count = sum(1 for _ in candidates[identifier]) if self._universe.counting else 0
        return identifier not in causes, count, identifier

    def find_matches(self, identifier, requirements, incompatibilities):
        wanted = list(requirements[identifier])
        excluded = list(incompatibilities[identifier])
        self._log.append(("find", identifier, *map(str, wanted), "without", *map(str, excluded)))

        def matches():
            for candidate in self._candidates[identifier]:
                if candidate not in excluded and all(
                    self.is_satisfied_by(requirement, candidate) for requirement in wanted
                ):
                    self._log.append(("offer", str(candidate)))
                    yield candidate

        if self._universe.form == "callable":
            return matches
        return list(matches()) if self._universe.form == "list" else matches()

    def is_satisfied_by(self, requirement, candidate):
        return candidate.version in requirement.versions

    def get_dependencies(self, candidate):
        self._log.append(("dependencies", str(candidate)))
        return self._dependencies(candidate)


class LoggingReporter(BaseReporter):
    EVENTS = (
        "starting", "starting_round", "ending_round", "ending", "adding_requirement",
        "resolving_conflicts", "rejecting_candidate", "pinning",
    )  # fmt: skip

    def __init__(self, log):
        def noting(event):
            return lambda *args, **kwargs: log.append(
                (event, *map(told, args), *map(told, kwargs.values()))
            )

        self.__dict__.update((event, noting(event)) for event in self.EVENTS)


def told(item):
    """Return what is compared of an argument of a reporter."""
    if hasattr(item, "mapping"):
        return [*map(str, item.mapping.values())]
    if hasattr(item, "iter_requirement"):
        return sorted({*map(str, item.iter_requirement())})
    if isinstance(item, list):
        return [f"{cause.requirement} of {cause.parent}" for cause in item]
    return str(item)


@dataclass
class Outcome:
    """What came of a resolution.

    `result` is filenames by project, or None and `error` the name of the exception; `log` is
    everything that happened.
    """

    result: dict[str, str] | None
    error: str | None
    log: list[tuple]

    def events(self, *without):
        return [entry for entry in self.log if entry[0] not in without]


def run(provider, universe, log):
    resolver = Resolver(provider, LoggingReporter(log))
    try:
        result = resolver.resolve(universe.roots, max_rounds=MAX_ROUNDS)
    except (ResolutionImpossible, IndexError) as error:
        return Outcome(None, type(error).__name__, log)
    mapping = {name: candidate.filename for name, candidate in sorted(result.mapping.items())}
    return Outcome(mapping, None, log)


def listed(universe):
    """Every candidate as an index lists it, and the dependencies without regard to variants."""
    candidates = {
        name: [candidate for release in releases for candidate in release.candidates()]
        for name, releases in universe.releases.items()
    }

    def dependencies(candidate):
        return [dependency.requirement for dependency in universe.release(candidate).dependencies]

    return candidates, dependencies


def resolve_bare(universe):
    """Resolve with the provider alone."""
    log = []
    return run(UniverseProvider(universe, *listed(universe), log), universe, log)


def resolve_wrapped(universe, files=None, **options):
    """Resolve with the provider wrapped."""
    log = []
    provider = VariantProvider(
        UniverseProvider(universe, *listed(universe), log),
        files or UniverseFiles(universe),
        platform=Detector(platform=platform_of(universe)).platform,
        **options,
    )
    return run(provider, universe, log)


def resolve_expanded(universe):
    """Resolve, with the provider alone, what the oracle made of the universe's variants."""
    log = []
    candidates = {
        name: [candidate for release in releases for candidate in choices(universe, release)]
        for name, releases in universe.releases.items()
    }
    provider = UniverseProvider(
        universe, candidates, lambda candidate: required(universe, candidate), log
    )
    return run(provider, universe, log)


# The oracle.


def ranked(universe, release):
    """Return the candidates of a release that fit, best first."""
    keyed = []
    for label in release.labels:
        if release.broken or (label != "null" and label not in release.variants):
            continue
        key, releases = [], []
        for namespace, features in release.variants.get(label, {}).items():
            # Conditions on other projects decide only between equal keys.
            part = releases if namespace == "abi_dependency" else key
            offered = universe.supported.get(namespace, {})
            for feature, values in features.items():
                fitting = [v for v in offered.get(feature, []) if v in values]
                if not fitting:
                    break
                part.append(
                    (
                        universe.namespaces.index(namespace),
                        list(offered).index(feature),
                        offered[feature].index(fitting[0]),
                    )
                )
            else:
                continue
            break
        else:
            keyed.append(([*sorted(key), (99,)], label == "null", sorted(releases), label))
    variants = [release.variant_file(label) for *_, label in sorted(keyed)]
    return [*variants, *release.candidates()[len(release.labels) :]]


def choices(universe, release):
    """Return the candidates that a resolver is offered: what comes first, whatever it requires.

    After it, those built against releases of other projects with which none before them goes.
    """
    offered = {}
    for candidate in ranked(universe, release):
        label = next((x for x in release.labels if release.variant_file(x) == candidate), "")
        against = release.variants.get(label, {}).get("abi_dependency", {})
        if not any(
            (earlier_label or label)  # files that are no variants are the client's to order
            and all(set(earlier[name]) >= set(against.get(name, ["any"])) for name in earlier)
            for earlier_label, earlier in offered.values()
        ):
            offered[candidate] = label, against
    return list(offered)


def required(universe, candidate):
    """Return the requirements of a candidate."""
    release = universe.release(candidate)
    label = next((x for x in release.labels if release.variant_file(x) == candidate), "")
    terms = set()
    for namespace, features in release.variants.get(label, {}).items():
        for feature, values in features.items():
            for value in values:
                if value in universe.supported.get(namespace, {}).get(feature, []):
                    terms |= {
                        namespace,
                        f"{namespace} :: {feature}",
                        f"{namespace} :: {feature} :: {value}",
                    }
    return [
        requirement
        for requirement, condition in release.dependencies
        if condition is None or holds(condition, label, terms)
    ]


def holds(condition, label, terms):
    word, *rest = condition
    if word == "and":
        return holds(rest[0], label, terms) and holds(rest[1], label, terms)
    if word == "or":
        return holds(rest[0], label, terms) or holds(rest[1], label, terms)
    if word == "platform":
        return rest[0]
    if word in ("is", "is not"):
        return (label == rest[0]) == (word == "is")
    return (rest[0] in terms) == (word == "has")


def wanted_of(requirements):
    wanted = {}
    for name, versions in requirements:
        wanted[name] = wanted.get(name, set(versions)) & set(versions)
    return wanted


def invalid(universe, result):
    """Return what is wrong with a result, empty if nothing is."""
    chosen = {}
    for name, filename in result.items():
        fitting = (c for r in universe.releases[name] for c in choices(universe, r))
        candidate = next((c for c in fitting if c.filename == filename), None)
        if candidate is None:
            return f"{filename} does not fit"
        chosen[name] = candidate
    needed = set()
    open_requirements = list(universe.roots)
    while open_requirements:
        name, versions = open_requirements.pop()
        if name not in chosen:
            return f"{name} is missing"
        if chosen[name].version not in versions:
            return f"{chosen[name]} is not among {versions}"
        if name not in needed:
            needed.add(name)
            open_requirements += required(universe, chosen[name])
    return f"{sorted(set(chosen) - needed)} are not needed" if set(chosen) != needed else ""
