"""Installed distributions and their labels."""

from __future__ import annotations

import json

import pytest

from pep_variants._wheelfile.installed import find_installed, ownership_problems

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


def own(folder, name, version, files):
    """Install *files*, contents by path, as those of a distribution."""
    install(folder, name, version)
    info = folder / f"{name}-{version}.dist-info"
    rows = [f"{info.name}/METADATA,,", f"{info.name}/RECORD,,"]
    for path, contents in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(contents)
        rows.append(f"{path},sha256=x,{len(contents)}")
    (info / "RECORD").write_text("\n".join([*rows, ""]))


def problems(*folders, projects=None):
    return [
        (item.path.rpartition("site/")[2], item.owners, item.missing)
        for item in ownership_problems(map(str, folders), projects)
    ]


def test_each_file_has_one_owner(tmp_path):
    site = tmp_path / "site"
    own(site, "app", "1.0", {"app/__init__.py": "a = 1", "space/__init__.py": ""})
    own(site, "other", "2.0", {"other.py": "b = 1", "space/__init__.py": "", "../bin/x": "#!"})
    (site / "link").symlink_to(site)
    assert problems(site, site / "link", tmp_path / "absent") == []


def test_files_of_two_names(tmp_path):
    """C12: two distributions of the same project's files."""
    site = tmp_path / "site"
    own(site, "app", "1.0", {"app/__init__.py": "a = 1", "app/lib.so": "gpu"})
    own(site, "App_CPU", "1.0", {"app/__init__.py": "a = 1", "app/x.cpython-313.pyc": "c"})
    found = [("app/__init__.py", ("app-cpu==1.0", "app==1.0"), False)]
    assert problems(site) == problems(site, projects={"app-cpu"}) == found
    assert problems(site, projects={"new"}) == []


def test_missing_files(tmp_path):
    """C1: `pip install -U` removed the files of the new distribution with the old one."""
    site = tmp_path / "site"
    own(site, "app", "1.0", {"app/__init__.py": "a = 1", "app/x.pyc": "c"})
    for path in ("__init__.py", "x.pyc"):
        (site / "app" / path).unlink()
    own(site, "other", "1.0", {"other.py": "b = 1"})
    assert problems(site) == [("app/__init__.py", ("app==1.0",), True)]
    assert problems(site, projects={"other"}) == []


@pytest.mark.parametrize("record", [b"one,two\n", b"\xff,,\n", None])
def test_records_that_own_nothing(tmp_path, record):
    install(tmp_path, "app", "1.0")
    (tmp_path / "empty-1.0.dist-info").mkdir()
    if record is not None:
        (tmp_path / "app-1.0.dist-info" / "RECORD").write_bytes(record)
    assert ownership_problems([str(tmp_path)]) == []
