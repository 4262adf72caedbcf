"""A thousand random universes with conditions between variants, against trying everything.

They run with every supported release of resolvelib, see `test_resolvelib_releases`.
"""

import pytest
import resolvelib
import universes
from abi_universes import Oracle, abi_universe
from test_universes import CHUNK, chunks

COUNT = 1000
# What a release does not find, or comes to by a detour. 1.1.0, asked the same, finds all.
UNSOLVED = {"1.0.1": {56, 78, 727}, "1.2.0": {78}, "1.2.1": {78}}
DETOURS = {"1.0.1": {207}, "1.2.0": {207}, "1.2.1": {207}}


def check(number):
    universe = abi_universe(number)
    oracle = Oracle(universe)
    outcome = universes.resolve_wrapped(universe)
    hashed = universes.resolve_wrapped(universe, universes.HashedFiles(universe))
    assert (hashed.result, hashed.error) == (outcome.result, outcome.error)
    version = resolvelib.__version__
    if outcome.error == "IndexError" and version == "1.2.0":  # a bug of that release
        return
    if outcome.error is not None:
        assert outcome.error == "ResolutionImpossible"
        assert oracle.solvable() == (number in UNSOLVED.get(version, ()))
        return
    assert oracle.invalid(outcome.result) == ""
    if len(universe.roots) == 1 and number not in DETOURS.get(version, ()):
        ((name, versions),) = universe.roots
        fitting = (c for c in oracle.choices(name) if c.version in versions)
        best = next(candidate for candidate in fitting if oracle.solvable(candidate))
        assert outcome.result[name] == best.filename


@pytest.mark.parametrize("chunk", chunks(COUNT))
def test_conditions_between_variants(chunk):
    for number in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        try:
            check(number)
        except AssertionError as error:
            raise AssertionError(f"universe {number}: {error}") from error


class Installed:
    """Any release of some projects."""

    def __init__(self, dice, names):
        versions = "1234"
        self._found = {name: dice.pick(versions) for name in names if dice.chance(0.6)}

    def version(self, project):
        return None

    def present(self, project):
        return self._found.get(project)

    def variants(self):
        return ()


def test_what_is_installed_takes_no_result_away():
    changed = 0
    for number in range(60):
        universe = abi_universe(number)
        installed = Installed(universes.Dice(number), sorted(universe.releases))
        outcome = universes.resolve_wrapped(universe, installed=installed)
        plain = universes.resolve_wrapped(universe)
        assert outcome.error == plain.error, number
        assert outcome.error or Oracle(universe).invalid(outcome.result) == "", number
        changed += outcome.result != plain.result
    assert changed > 2
