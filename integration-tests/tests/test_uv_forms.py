"""Files that uv-variants changes are those that uv writes, byte for byte, in every form.

Each form runs with plain uv and with uv-variants, in equal folders, against the same URLs. With
the copy of the index that has no variants everything is equal, which forms that lock variants are
only asked for in the matrix; with the other one uv.lock differs by what is locked of variants.
`pytest -s` shows the table.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.environments import Environments
from support.uv_beside import Outcome, Place, outcome, places, without_variants
from support.uv_forms import FORMS, Form
from support.uvs import UVS


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the forms with the oldest and the newest uv in turn; with every uv in the matrix."""
    if "form" in metafunc.fixturenames:
        cases = []
        for number, form in enumerate(FORMS):
            uvs = [uv for uv in UVS if form.exists_in(uv)]
            full = metafunc.config.getoption("full_matrix")
            cases += [(form, uv) for uv in (uvs if full else [uvs[-(number % 2)]])]
        names = [f"{form.name}-{uv}" for form, uv in cases]
        metafunc.parametrize(("form", "uv"), cases, ids=names)


@pytest.fixture(scope="module")
def place(environments: Environments, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with places(environments, tmp_path_factory.mktemp("forms")) as found:
        yield found
    print("\n| form | uv | files | lock with variants |\n|---|---|---|---|")
    print("\n".join(found.rows))


@pytest.mark.everywhere
def test_files_are_those_of_uv(
    place: Place, form: Form, uv: str, pytestconfig: pytest.Config
) -> None:
    theirs = outcome(place, form, uv, "plain")
    assert bool(theirs.result.code) == form.fails, theirs.result
    has_variants = form.variants and form.names_app
    if not has_variants or pytestconfig.getoption("full_matrix"):
        ours = outcome(place, form, uv, "without")
        check(theirs, ours)
        assert ours.files.keys() == theirs.files.keys(), ours.result
        assert ours.remarks == theirs.remarks
    lock = "-"
    if has_variants:
        changed = outcome(place, form, uv, "with")
        lock = check(theirs, changed, f"{place.index.url.rstrip('/')}/app/.variant/cu128/")
        # Beside a lock with variants stands which machine it is for, and nothing else is new.
        locks = {name.removesuffix(".lock") for name in theirs.files if name.endswith(".lock")}
        new = changed.files.keys() - theirs.files.keys()
        assert {name.removesuffix(".variants.toml") for name in new} <= locks, changed.result
    place.rows.append(f"| {form.name} | {uv} | equal | {lock} |")


def check(theirs: Outcome, ours: Outcome, variants: str = "") -> str:
    """Check what is equal; return how the lock is, whose variants begin with *variants*."""
    lock = "equal"
    assert theirs.files.keys() <= ours.files.keys(), ours.result
    for name, data in theirs.files.items():
        found = ours.files[name]
        if variants and name.endswith(".lock") and found != data:
            same, urls = without_variants(found)
            assert same == without_variants(data)[0], ours.result
            assert all(url.startswith(f"{variants}app-1.0-0_cu128-") for url in urls), urls
            lock = "variants only"
        else:
            assert found.decode() == data.decode(), (name, str(ours.result))
    assert ours.result.code == theirs.result.code, ours.result
    assert ours.result.out == theirs.result.out, ours.result
    assert ours.installed == theirs.installed
    return lock
