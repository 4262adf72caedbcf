"""Random universes: without variants nothing changes, with variants an oracle agrees.

They run with every supported release of resolvelib, see `test_resolvelib_releases`.
"""

import os
from contextlib import contextmanager

import pytest
import resolvelib
import universes
from abi_universes import Oracle, abi_universe

CHUNK = 50
"""Universes of one test."""

EVERY = bool(os.environ.get("EVERY_UNIVERSE"))
"""Whether all of them are tried: in `make test-matrix`, otherwise two fifths."""

PLAIN, VARIANTS = 300, 500

UNSOLVED = {"1.0.1": {142}}
"""Plain universes for which a release of resolvelib finds no result although there is one."""

UNSOLVED_VARIANTS = {"1.0.1": {350}}
"""The same of those with variants, as the oracle takes them apart."""


def chunks(count):
    """Return the numbers of the chunks of *count* universes that are tried."""
    return range(count // CHUNK if EVERY else count * 2 // 5 // CHUNK)


@contextmanager
def what_fails(number):
    """Name the universe in what a check of it raises."""
    try:
        yield
    except AssertionError as error:
        raise AssertionError(f"universe {number}: {error}") from error


def check_right(universe, outcome):
    if outcome.error is None:
        assert universes.invalid(universe, outcome.result) == ""
    elif outcome.error == "ResolutionImpossible":
        assert not Oracle(universe).solvable()
    else:
        # Losing its way in backtracking is a bug of that release alone.
        assert (outcome.error, resolvelib.__version__) == ("IndexError", "1.2.0")


@pytest.mark.parametrize("chunk", chunks(PLAIN))
def test_without_variants(chunk):
    for number in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        with what_fails(number):
            check_plain(number)


def check_plain(number):
    universe = universes.plain_universe(number)
    bare = universes.resolve_bare(universe)
    if number not in UNSOLVED.get(resolvelib.__version__, ()):
        check_right(universe, bare)

    # Every call, every candidate that was asked for and every event, in order.
    files = universes.UniverseFiles(universe)
    assert universes.resolve_wrapped(universe, files) == bare
    assert not files.metadata_calls

    # When it cannot be told whether there are variants, candidates are read up to the next
    # version; everything else is the same.
    files = universes.UniverseFiles(universe, has_variants=True)
    wrapped = universes.resolve_wrapped(universe, files)
    assert wrapped.events("offer") == bare.events("offer")
    assert (wrapped.result, wrapped.error) == (bare.result, bare.error)
    assert not files.metadata_calls


@pytest.mark.parametrize("chunk", chunks(VARIANTS))
def test_with_variants(chunk):
    for number in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        with what_fails(number):
            check_variants(number)


def check_variants(number):
    solved = number not in UNSOLVED_VARIANTS.get(resolvelib.__version__, ())
    universe = universes.variant_universe(number)
    files = universes.UniverseFiles(universe)
    wrapped = universes.resolve_wrapped(universe, files)
    if solved:
        check_right(universe, wrapped)

    # As if the chosen variants had been candidates from the start.
    expanded = universes.resolve_expanded(universe)
    assert wrapped.events(*universes.ASKED_BY_WRAPPER) == expanded.events(
        *universes.ASKED_BY_WRAPPER
    )
    assert (wrapped.result, wrapped.error) == (expanded.result, expanded.error)

    assert len(files.metadata_calls) == len(set(files.metadata_calls))

    # The same where variants are not judged before the dependencies of all are accepted.
    hashed = universes.HashedFiles(universe)
    outcome = universes.resolve_wrapped(universe, hashed)
    if solved:
        check_right(universe, outcome)
    if not universe.counting:  # there are fewer candidates to count
        assert (outcome.result, outcome.error) == (wrapped.result, wrapped.error)
        assert set(hashed.metadata_calls) <= set(files.metadata_calls)
    assert len(hashed.metadata_calls) == len(set(hashed.metadata_calls))


CONDITIONS = 1000
# What a release does not find, or comes to by a detour. 1.1.0, asked the same, finds all.
UNSOLVED_CONDITIONS = {"1.0.1": {56, 78, 727}, "1.2.0": {78}, "1.2.1": {78}}
DETOURS = {"1.0.1": {207}, "1.2.0": {207}, "1.2.1": {207}}


def check_conditions(number):
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
        assert oracle.solvable() == (number in UNSOLVED_CONDITIONS.get(version, ()))
        return
    assert oracle.invalid(outcome.result) == ""
    if len(universe.roots) == 1 and number not in DETOURS.get(version, ()):
        ((name, versions),) = universe.roots
        fitting = (c for c in oracle.choices(name) if c.version in versions)
        best = next(candidate for candidate in fitting if oracle.solvable(candidate))
        assert outcome.result[name] == best.filename


@pytest.mark.parametrize("chunk", chunks(CONDITIONS))
def test_conditions_between_variants(chunk):
    for number in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        with what_fails(number):
            check_conditions(number)


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
