"""Random universes: without variants nothing changes, with variants an oracle agrees.

They run with every supported release of resolvelib, see `test_resolvelib_releases`.
"""

from importlib.metadata import version

import resolvelib
from universes import (
    Dice,
    HashedFiles,
    Oracle,
    UniverseFiles,
    resolve_bare,
    resolve_expanded,
    resolve_wrapped,
    universe,
)

COUNTS = {
    "test_without_variants": 300,
    "test_with_variants": 500,
    "test_conditions_between_variants": 1000,
}
"""How many universes there are for each test: all are tried in `make test-matrix`."""

# What a release does not find, or comes to by a detour. 1.1.0, asked the same, finds all.
UNSOLVED = {"1.0.1": {56, 78, 727}, "1.2.0": {78}, "1.2.1": {78}}
DETOURS = {"1.0.1": {207}, "1.2.0": {207}, "1.2.1": {207}}


def pytest_generate_tests(metafunc):
    """Try fifty universes in a test."""
    if "numbers" in metafunc.fixturenames:
        count = COUNTS[metafunc.function.__name__]
        if not metafunc.config.getoption("every_universe", False):
            count = count * 2 // 5
        chunks = [range(start, start + 50) for start in range(0, count, 50)]
        metafunc.parametrize("numbers", chunks, ids=lambda chunk: f"from-{chunk.start}")


def test_this_is_the_resolvelib_that_was_asked_for(pytestconfig):
    expected = pytestconfig.getoption("resolvelib", None) or version("resolvelib")
    assert resolvelib.__version__ == expected


def test_without_variants(numbers):
    for number in numbers:
        plain = universe(number, "")
        bare = resolve_bare(plain)
        # Every call and every candidate that was asked for, in order.
        files = UniverseFiles(plain)
        assert resolve_wrapped(plain, files) == bare, number
        assert not files.metadata_calls

        # When it cannot be told whether there are variants, candidates are read up to the next
        # version; everything else is the same.
        files = UniverseFiles(plain, has_variants=True)
        wrapped = resolve_wrapped(plain, files)
        assert wrapped.events("offer") == bare.events("offer"), number
        assert wrapped[:2] == bare[:2]
        assert not files.metadata_calls


def test_with_variants(numbers):
    # What a wrapped provider with variants is asked for at other times, or not at all.
    asked = ("offer", "dependencies")
    for number in numbers:
        variants = universe(number, "variants")
        files = UniverseFiles(variants)
        wrapped = resolve_wrapped(variants, files)
        # As if the chosen variants had been candidates from the start.
        expanded = resolve_expanded(variants)
        assert wrapped.events(*asked) == expanded.events(*asked), number
        assert wrapped[:2] == expanded[:2]
        assert len(files.metadata_calls) == len(set(files.metadata_calls))

        # The same where variants are not judged before the dependencies of all are accepted.
        hashed = HashedFiles(variants)
        outcome = resolve_wrapped(variants, hashed)
        if not variants.counting:  # there are fewer candidates to count
            assert outcome[:2] == wrapped[:2], number
            assert set(hashed.metadata_calls) <= set(files.metadata_calls)
        elif outcome.error is None:
            Oracle(variants).check(outcome.result)
        assert len(hashed.metadata_calls) == len(set(hashed.metadata_calls))


def test_conditions_between_variants(numbers):
    release = resolvelib.__version__
    for number in numbers:
        conditions = universe(number, "abi")
        oracle = Oracle(conditions)
        outcome = resolve_wrapped(conditions)
        assert resolve_wrapped(conditions, HashedFiles(conditions))[:2] == outcome[:2], number
        if outcome.error == "IndexError" and release == "1.2.0":  # a bug of that release
            continue
        if outcome.error is not None:
            assert outcome.error == "ResolutionImpossible"
            assert oracle.solvable() == (number in UNSOLVED.get(release, ())), number
            continue
        oracle.check(outcome.result)
        if len(conditions.roots) == 1 and number not in DETOURS.get(release, ()):
            ((name, versions),) = conditions.roots
            fitting = (c for c in oracle.choices[name] if c.version in versions)
            best = next(candidate for candidate in fitting if oracle.solvable(candidate))
            assert outcome.result[name] == best, number


class Installed:
    """Any release of some projects."""

    def __init__(self, dice, names):
        self._found = {name: dice.pick("1234") for name in names if dice.chance(0.6)}

    def version(self, project):
        return None

    def present(self, project):
        return self._found.get(project)

    def variants(self):
        return ()


def test_what_is_installed_takes_no_result_away():
    changed = 0
    for number in range(60):
        conditions = universe(number, "abi")
        installed = Installed(Dice(number), sorted(conditions.releases))
        outcome = resolve_wrapped(conditions, installed=installed)
        plain = resolve_wrapped(conditions)
        assert outcome.error == plain.error, number
        if outcome.error is None:
            Oracle(conditions).check(outcome.result)
        changed += outcome.result != plain.result
    assert changed > 2
