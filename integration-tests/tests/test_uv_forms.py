"""Files that uv-variants changes are those that uv writes, byte for byte, in every form.

Each form runs with plain uv and with uv-variants, in equal folders, against the same URLs. With
the copy of the index that has no variants everything is equal, which forms that lock variants are
only asked for in the matrix; with the other one uv.lock differs by what is locked of variants.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator

import pytest

from support.environments import Environments
from support.uv_beside import Outcome, Place, outcome, places, without_variants
from support.uv_forms import FORMS, KEYS, Form
from support.uvs import UVS


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run forms with the oldest and the newest uv in turn; all with every uv in the matrix."""
    if "form" in metafunc.fixturenames:
        cases = []
        full = metafunc.config.getoption("full_matrix")
        for number, form in enumerate((*FORMS, *KEYS)):
            uvs = [uv for uv in UVS if form.exists_in(uv)]
            one = uvs[-1] if form in KEYS else uvs[-(number % 2)]
            cases += [(form, uv) for uv in (uvs if full else [one])]
        names = [f"{form.name}-{uv}" for form, uv in cases]
        metafunc.parametrize(("form", "uv"), cases, ids=names)


@pytest.fixture(scope="module")
def place(environments: Environments, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with places(environments, tmp_path_factory.mktemp("forms")) as found:
        yield found


@pytest.mark.everywhere
def test_files_are_those_of_uv(
    place: Place, form: Form, uv: str, pytestconfig: pytest.Config
) -> None:
    if form in KEYS:
        if sys.platform == "win32":
            pytest.skip("the keyring program of the test is a script")
        for kind in ("plain", "without"):  # no cache hides what a key does
            shutil.rmtree(place.folder / kind, ignore_errors=True)
    theirs = outcome(place, form, uv, "plain")
    assert bool(theirs.result.code) == form.fails, theirs.result
    if form.shows:
        name, version = form.shows.split()
        assert f'name = "{name}"\nversion = "{version}"\n' in theirs.files["uv.lock"].decode()
    has_variants = form.variants and form.names_app
    if not has_variants or pytestconfig.getoption("full_matrix"):
        ours = outcome(place, form, uv, "without")
        check(theirs, ours)
        assert ours.files.keys() == theirs.files.keys(), ours.result
        assert ours.remarks == theirs.remarks
    if has_variants:
        changed = outcome(place, form, uv, "with")
        check(theirs, changed, f"{place.index.url.rstrip('/')}/app/.variant/cu128/")
        # Beside a lock with variants stands which machine it is for, and nothing else is new.
        locks = {name.removesuffix(".lock") for name in theirs.files if name.endswith(".lock")}
        new = changed.files.keys() - theirs.files.keys()
        assert {name.removesuffix(".variants.toml") for name in new} <= locks, changed.result


def check(theirs: Outcome, ours: Outcome, variants: str = "") -> None:
    """Check what is equal, but for locks with URLs that begin with *variants*."""
    assert theirs.files.keys() <= ours.files.keys(), ours.result
    for name, data in theirs.files.items():
        found = ours.files[name]
        if variants and name.endswith(".lock") and found != data:
            same, urls = without_variants(found)
            assert same == without_variants(data)[0], ours.result
            assert all(url.startswith(f"{variants}app-1.0-0_cu128-") for url in urls), urls
        else:
            assert found.decode() == data.decode(), (name, str(ours.result))
    assert ours.result.code == theirs.result.code, ours.result
    assert ours.result.out == theirs.result.out, ours.result
    assert ours.installed == theirs.installed
