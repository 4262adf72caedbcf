"""Installed distributions and their labels."""

from __future__ import annotations

import json

import pytest

from pep_variants.wheelfile.installed import find_installed

OWN = {
    "default-priorities": {"namespace": ["n"]},
    "providers": {"n": {"static-properties": {"f": ["1"]}}},
    "variants": {"fast": {"n": {"f": ["1"]}}},
}


def install(folder, name, version, variant=None, *, field="Version"):
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\n{field}: {version}\n")
    if variant is not None:
        text = variant if isinstance(variant, str) else json.dumps(variant)
        (info / "variant.json").write_text(text)


def test_labels(tmp_path):
    install(tmp_path, "Plain_Project", "1.0")
    install(tmp_path, "app", "2.0+local", OWN)
    app, plain = find_installed([str(tmp_path), str(tmp_path / "absent")])
    assert (plain.project, str(plain.version), plain.label) == ("plain-project", "1.0", None)
    assert (app.project, str(app.version), app.label) == ("app", "2.0+local", "fast")
    assert app.problem == ""


def test_the_first_one_counts(tmp_path):
    install(tmp_path / "first", "app", "2.0", OWN)
    install(tmp_path / "second", "app", "1.0")
    paths = [str(tmp_path / "first"), str(tmp_path / "second")]
    assert [(item.label, str(item.version)) for item in find_installed(paths)] == [("fast", "2.0")]


@pytest.mark.parametrize(
    ("variant", "problem"),
    [
        ("{", "variant.json of app 1.0: not valid JSON"),
        ({**OWN, "variants": {}}, "variants: does not describe exactly one variant"),
    ],
)
def test_broken(tmp_path, variant, problem):
    install(tmp_path, "app", "1.0", variant)
    (item,) = find_installed([str(tmp_path)])
    assert item.label is None
    assert problem in item.problem


def test_leftovers(tmp_path):
    install(tmp_path, "app", "not a version")
    install(tmp_path, "other", "1.0", field="Nothing")
    (tmp_path / "empty-1.0.dist-info").mkdir()
    assert list(find_installed([str(tmp_path)])) == []
