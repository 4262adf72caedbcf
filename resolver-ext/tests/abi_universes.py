"""Random universes in which variants are built against other packages, and who knows the answer.

As in `universes`, the oracle looks at the structure that was generated, and tries everything.
"""

from dataclasses import replace

import universes
from universes import MAX_VERSION, Candidate, Dependency, Dice, Release, Requirement, Universe

ABI = "abi_dependency"
EVERYTHING = tuple(range(1, MAX_VERSION + 1))
LEVELS = ["v1", "v2", "v3"]


def abi_universe(number):
    """Return a universe of three to six projects, most of them with variants."""
    dice = Dice(2_000_000 + number)
    names = ["a", "b", "c", "d", "e", "f"][: 3 + dice.below(4)]
    layers = dice.shuffled(names)
    releases = {}
    for name in names:
        releases[name] = [
            _release(dice, name, version, names, layers[layers.index(name) + 1 :])
            for version in range(1 + dice.below(MAX_VERSION), 0, -1)
        ]
    roots = [
        Requirement(name, EVERYTHING if dice.chance(0.7) else (1 + dice.below(3), 1))
        for name in dice.shuffled(dice.some(names, 0.45) or names[:1])
    ]
    supported = {"cpu": {"level": dice.shuffled(dice.some(LEVELS, 0.8))}}
    form = dice.pick(["list", "iterator", "callable"])
    return Universe(releases, roots, ["cpu"], supported, form, dice.chance(0.3))


def _release(dice, name, version, names, below):
    release = Release(name, version)
    if dice.chance(0.4):
        release.plain = [f"{name}-{version}-py3-none-any.whl"]
    others = [other for other in names if other != name]
    for number in range(dice.below(5)):
        properties = {}
        if dice.chance(0.5):
            properties["cpu"] = {"level": dice.some(LEVELS, 0.5) or ["v1"]}
        against = dice.some(others, 0.8 / len(others))
        if against:
            properties[ABI] = {
                other: sorted({str(1 + dice.below(MAX_VERSION)) for _ in range(1 + dice.below(2))})
                for other in against
            }
        if properties:
            label = dice.pick(["x", "y", "z"]) + str(number)
            release.variants[label] = properties
            release.labels.append(label)
    if dice.chance(0.3):
        release.labels.append("null")
    if not release.candidates():
        release.plain = [f"{name}-{version}-py3-none-any.whl"]
    for other in below:
        if dice.chance(0.5):
            allowed = tuple(v for v in EVERYTHING if dice.chance(0.7)) or (1,)
            condition = None
            if release.labels and dice.chance(0.4):
                condition = (dice.pick(["is", "is not"]), dice.pick([*release.labels, ""]))
            release.dependencies.append(Dependency(Requirement(other, allowed), condition))
    return release


# The oracle.


def _ranked(universe):
    """Return the universe with every abi dependency supported, the newest first."""
    newest_first = [str(version) for version in reversed(EVERYTHING)]
    offered = dict.fromkeys(sorted(universe.releases), newest_first)
    return replace(
        universe,
        namespaces=[*universe.namespaces, ABI],
        supported={**universe.supported, ABI: offered},
    )


class Oracle:
    def __init__(self, universe):
        self._universe = _ranked(universe)
        self._choices = {
            name: [c for release in releases for c in universes.choices(self._universe, release)]
            for name, releases in universe.releases.items()
        }

    def built_against(self, candidate):
        release = self._universe.release(candidate)
        for label, properties in release.variants.items():
            if release.variant_file(label) == candidate:
                return properties.get(ABI, {})
        return {}

    def fit_together(self, one, other):
        return all(
            str(second.version) in self.built_against(first).get(second.name, [str(second.version)])
            for first, second in ((one, other), (other, one))
        )

    def required(self, candidate):
        return universes.required(self._universe, candidate)

    def choices(self, name):
        return self._choices[name]

    def solvable(self, fixed=None):
        """Return whether there is a result, with candidate *fixed* in it if that is given."""

        def search(chosen, wanted):
            name = next((name for name in wanted if name not in chosen), None)
            if name is None:
                return True
            for candidate in self._choices[name]:
                if fixed is not None and name == fixed.name and candidate != fixed:
                    continue
                if candidate.version not in wanted[name]:
                    continue
                if not all(self.fit_together(candidate, other) for other in chosen.values()):
                    continue
                narrowed = dict(wanted)
                for other, versions in self.required(candidate):
                    narrowed[other] = narrowed.get(other, set(versions)) & set(versions)
                now = {**chosen, name: candidate}
                if all(narrowed.values()) and all(c.version in narrowed[n] for n, c in now.items()):
                    if search(now, narrowed):
                        return True
            return False

        return search({}, universes.wanted_of(self._universe.roots))

    def invalid(self, result):
        """Return what is wrong with a result, empty if nothing is."""
        wrong = universes.invalid(self._universe, result)
        if wrong:
            return wrong
        by_name = {c.filename: c for name in result for c in self._choices[name]}
        chosen: list[Candidate] = [by_name[filename] for filename in result.values()]
        for one in chosen:
            for other in chosen:
                if not self.fit_together(one, other):
                    return f"{one} and {other} do not go together"
        return ""
