"""Random package universes, ways to resolve them, and an oracle that knows the answer.

A universe is generated from its number alone. Only `random.Random.random` is used, which Python
promises to keep the same across releases, so that a universe that failed can be tried again.

The oracle looks at the structure that the generator made, never at filenames, metadata files or
marker text: these are what the code under test has to understand.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from typing import NamedTuple

from packaging.requirements import Requirement as ParsedRequirement
from resolvelib import AbstractProvider, BaseReporter, ResolutionImpossible, Resolver

from pep_variants._detect.detector import Detector
from pep_variants._formats.reader import read_metadata
from pep_variants._model.platform import Platform, Support
from resolvelib_variants.provider import VariantProvider

SOURCE = "https://index.example/simple/"
SCHEMA = "https://variants-schema.wheelnext.dev/peps/825/v0.1.1.json"
EVERYTHING = (1, 2, 3, 4)
"""Every version that there may be."""
LEVELS = ["v1", "v2", "v3"]
ABI = "abi_dependency"


class Requirement(NamedTuple):
    name: str
    versions: tuple[int, ...]

    def __str__(self):
        return f"{self.name}{list(self.versions)}"


class Candidate(NamedTuple):
    name: str
    version: int
    filename: str
    label: str = ""

    def __str__(self):
        return self.filename


class Dependency(NamedTuple):
    """`condition` is None, or whether the label has to be, or must not be, a certain one."""

    requirement: Requirement
    condition: tuple[bool, str] | None

    def holds(self, label):
        return self.condition is None or (label == self.condition[1]) == self.condition[0]

    def __str__(self):
        name, versions = self.requirement
        text = name + ",".join(f"!={v}" for v in EVERYTHING if v not in versions)
        if self.condition is None:
            return text
        equal, label = self.condition
        return f"{text}; variant_label {'==' if equal else '!='} '{label}'"


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

    def candidates(self):
        """Every file, as an index lists them."""
        stem = f"{self.name}-{self.version}"
        return [
            *(
                Candidate(self.name, self.version, f"{stem}-py3-none-any-{label}.whl", label)
                for label in self.labels
            ),
            *(Candidate(self.name, self.version, stem + ending) for ending in self.plain),
        ]


@dataclass
class Universe:
    """Releases newest first, root requirements, and the levels that the machine has, in order."""

    releases: dict[str, list[Release]]
    roots: list[Requirement]
    levels: list[str]
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


def universe(number, kind):
    """Return a universe of three to six projects.

    They have no variants, or "variants", some of whose metadata is broken, or variants built
    against releases of other projects ("abi").
    """
    dice = Dice(2_000_000 + number)
    names = ["a", "b", "c", "d", "e", "f"][: 3 + dice.below(4)]
    # Dependencies follow an order of their own, not the one in which preferences pin, and make no
    # circles: resolvelib does not come to an end when one loses its way to the root.
    layers = dice.shuffled(names)
    releases = {}
    for name in names:
        others = [other for other in names if other != name] if kind == "abi" else []
        below = layers[layers.index(name) + 1 :]
        releases[name] = [
            _release(dice, Release(name, version), kind, others, below)
            for version in range(1 + dice.below(len(EVERYTHING)), 0, -1)
        ]
    roots = [
        Requirement(name, EVERYTHING if dice.chance(0.7) else (1 + dice.below(3), 1))
        for name in dice.shuffled(dice.some(names, 0.45) or names[:1])
    ]
    levels = dice.shuffled(dice.some(LEVELS, 0.8))
    form = dice.pick(["list", "iterator", "callable"])
    return Universe(releases, roots, levels, form, dice.chance(0.3))


def _release(dice, release, kind, others, below):
    if dice.chance(0.4):
        release.plain = ["-py3-none-any.whl"]
    if kind != "abi" and dice.chance(0.4):
        release.plain.append(".tar.gz")
    for number in range(dice.below(5) if kind else 0):
        properties = {}
        if dice.chance(0.5):
            properties["cpu"] = {"level": dice.some(LEVELS, 0.5) or ["v1"]}
        against = dice.some(others, 0.8 / len(others)) if others else []
        if against:
            properties[ABI] = {
                other: sorted({str(dice.pick(EVERYTHING)) for _ in range(1 + dice.below(2))})
                for other in against
            }
        if properties:
            label = dice.pick(["x", "y", "z"]) + str(number)
            release.variants[label] = properties
            release.labels.append(label)
    if kind and dice.chance(0.3):
        release.labels.append("null")
    if kind == "variants":
        if dice.chance(0.1):
            release.labels.append("unknown")
        if "null" in release.labels and dice.chance(0.5):
            release.variants["null"] = {}
        # Metadata may list what was not uploaded.
        release.labels = dice.shuffled(dice.some(release.labels, 0.95))
        release.broken = dice.chance(0.06)
    if not release.candidates():
        release.plain = ["-py3-none-any.whl"]
    for other in below:
        if dice.chance(0.5):
            allowed = tuple(dice.some(EVERYTHING, 0.7)) or (1,)
            condition = None
            if release.labels and dice.chance(0.4):
                condition = dice.chance(0.5), dice.pick([*release.labels, ""])
            release.dependencies.append(Dependency(Requirement(other, allowed), condition))
    return release


# What the code under test gets to see.


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
        release = self._universe.release(candidate)
        tree = {
            "$schema": SCHEMA,
            "default-priorities": {"namespace": ["cpu"]},
            "variants": release.variants,
        }
        text = json.dumps(tree)
        return read_metadata(text[: len(text) // 2] if release.broken else text, SOURCE)

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
        reduced = filter(None, (reduce(str(item)) for item in release.dependencies))
        return [
            Requirement(item.name, tuple(v for v in EVERYTHING if str(v) in item.specifier))
            for item in map(ParsedRequirement, reduced)
        ]


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
        pinned = sorted(map(str, resolutions.values()))
        why = [f"{cause.requirement} of {cause.parent}" for cause in backtrack_causes]
        self._log.append(("preference", identifier, pinned, why))
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


class Outcome(NamedTuple):
    """Candidates by project, or the name of the exception; and what the provider was asked."""

    result: dict[str, Candidate] | None
    error: str | None
    log: list[tuple]

    def events(self, *without):
        return [entry for entry in self.log if entry[0] not in without]


def _run(provider, universe, log):
    try:
        result = Resolver(provider, BaseReporter()).resolve(universe.roots, max_rounds=5000)
    except (ResolutionImpossible, IndexError) as error:
        return Outcome(None, type(error).__name__, log)
    return Outcome(dict(sorted(result.mapping.items())), None, log)


def _listed(universe, log):
    """Return a provider of all files as an index lists them, without regard to variants."""
    candidates = {
        name: [candidate for release in releases for candidate in release.candidates()]
        for name, releases in universe.releases.items()
    }

    def dependencies(candidate):
        return [dependency.requirement for dependency in universe.release(candidate).dependencies]

    return UniverseProvider(universe, candidates, dependencies, log)


def resolve_bare(universe):
    """Resolve with the provider alone."""
    log = []
    return _run(_listed(universe, log), universe, log)


def resolve_wrapped(universe, files=None, **options):
    """Resolve with the provider wrapped."""
    log = []
    support = Support({"level": tuple(universe.levels)})
    provider = VariantProvider(
        _listed(universe, log),
        files or UniverseFiles(universe),
        platform=Detector(platform=Platform({"cpu": support}, "platform.toml")).platform,
        **options,
    )
    return _run(provider, universe, log)


def resolve_expanded(universe):
    """Resolve, with the provider alone, what the oracle made of the universe's variants."""
    log = []
    oracle = Oracle(universe)
    provider = UniverseProvider(universe, oracle.choices, oracle.required, log)
    return _run(provider, universe, log)


class Oracle:
    """It tries everything."""

    def __init__(self, universe):
        self._universe = universe
        self.choices = {
            name: [choice for release in releases for choice in self._choices(release)]
            for name, releases in universe.releases.items()
        }
        """What a resolver is offered of each project."""

    def required(self, candidate):
        """Return the requirements of a candidate."""
        dependencies = self._universe.release(candidate).dependencies
        return [item.requirement for item in dependencies if item.holds(candidate.label)]

    def built_against(self, candidate):
        return self._universe.release(candidate).variants.get(candidate.label, {}).get(ABI, {})

    def fit_together(self, one, other):
        return all(
            str(second.version) in self.built_against(first).get(second.name, [str(second.version)])
            for first, second in ((one, other), (other, one))
        )

    def _ranked(self, release):
        """Return the candidates of a release that fit, best first."""
        keyed = []
        levels = self._universe.levels
        for candidate in release.candidates()[: len(release.labels)]:
            label = candidate.label
            if release.broken or (label != "null" and label not in release.variants):
                continue
            properties = release.variants.get(label, {})
            best = len(levels)
            if "cpu" in properties:
                fitting = [levels.index(v) for v in properties["cpu"]["level"] if v in levels]
                if not fitting:
                    continue
                best = min(fitting)
            # Conditions on other projects decide only between equal keys: newer ones first.
            against = sorted(
                (sorted(self._universe.releases).index(other), min(-int(v) for v in versions))
                for other, versions in properties.get(ABI, {}).items()
            )
            keyed.append((best, label == "null", against, label, candidate))
        return [*(item[-1] for item in sorted(keyed)), *release.candidates()[len(release.labels) :]]

    def _choices(self, release):
        """Return what comes first, whatever it requires.

        After it, those built against releases of other projects with which none before them goes.
        """
        offered = []
        for candidate in self._ranked(release):
            against = self.built_against(candidate)
            if not any(
                (earlier.label or candidate.label)  # the client orders files that are no variants
                and all(
                    set(versions) >= set(against.get(name, ["any"]))
                    for name, versions in self.built_against(earlier).items()
                )
                for earlier in offered
            ):
                offered.append(candidate)
        return offered

    def solvable(self, fixed=None):
        """Return whether there is a result, with candidate *fixed* in it if that is given."""

        def search(chosen, wanted):
            name = next((name for name in wanted if name not in chosen), None)
            if name is None:
                return True
            for candidate in self.choices[name]:
                if fixed is not None and name == fixed.name and candidate != fixed:
                    continue
                if not all(self.fit_together(candidate, other) for other in chosen.values()):
                    continue
                narrowed = _narrowed(wanted, self.required(candidate))
                now = {**chosen, name: candidate}
                if all(narrowed.values()) and all(c.version in narrowed[n] for n, c in now.items()):
                    if search(now, narrowed):
                        return True
            return False

        return search({}, _narrowed({}, self._universe.roots))

    def check(self, result):
        """Check that every requirement holds, that all fits, and that nothing is superfluous."""
        wanted = _narrowed({}, self._universe.roots)
        for name, candidate in result.items():
            assert candidate in self.choices[name]
            wanted = _narrowed(wanted, self.required(candidate))
            for other in result.values():
                assert self.fit_together(candidate, other), f"{candidate} and {other}"
        assert wanted.keys() <= result.keys()
        assert all(candidate.version in wanted[name] for name, candidate in result.items())
        needed = set()
        left = [name for name, _ in self._universe.roots]
        while left:
            name = left.pop()
            if name not in needed:
                needed.add(name)
                left += [requirement.name for requirement in self.required(result[name])]
        assert needed == result.keys()


def _narrowed(wanted, requirements):
    narrowed = dict(wanted)
    for name, versions in requirements:
        narrowed[name] = narrowed.get(name, set(versions)) & set(versions)
    return narrowed
