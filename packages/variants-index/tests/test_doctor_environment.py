"""The doctor on the files of an environment (C12)."""

import pytest

from variants_index.doctor import environment_problems


def own(folder, name, version, files, *, missing=()):
    """Install *files*, contents by path, as those of a distribution, which lacks some."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    rows = [f"{info.name}/METADATA,,", f"{info.name}/RECORD,,"]
    for path, contents in files.items():
        if path not in missing:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(contents)
        rows.append(f"{path},sha256=x,{len(contents)}")
    (info / "RECORD").write_text("\n".join([*rows, ""]))


@pytest.fixture
def site(tmp_path):
    path = tmp_path / "site-packages"
    path.mkdir()
    return path


def found(site):
    return [
        (each.code, each.text, each.command, each.fails)
        for each in environment_problems([str(site), str(site), str(site / "none")])
    ]


def test_nothing_is_wrong(site):
    own(site, "app", "1.0", {"app/__init__.py": "x = 1\n"})
    assert found(site) == []


def test_two_names_of_one_build(site):
    """C1 to C3: what two distributions with the same files look like."""
    files = {"xgboost/__init__.py": "x = 1\n", "xgboost/lib.so": "lib"}
    own(site, "xgboost", "3.1.3", files)
    own(site, "xgboost-cpu", "3.1.3", {**files, "xgboost/more.py": "y"})
    assert found(site) == [
        (
            "shared-files",
            "xgboost-cpu==3.1.3 and xgboost==3.1.3 own the same 2 files, __init__.py for example: "
            "installing or removing one overwrites or deletes what belongs to the other",
            "pip uninstall --yes xgboost-cpu xgboost && pip install xgboost==3.1.3",
            True,
        )
    ]


def test_the_module_is_gone(site):
    """C1: what was left of xgboost after an upgrade."""
    files = {"xgboost/__init__.py": "x = 1\n", "xgboost/lib.so": "lib"}
    own(site, "xgboost", "3.1.3", files, missing=["xgboost/__init__.py", "xgboost/lib.so"])
    assert found(site) == [
        (
            "missing-files",
            "xgboost==3.1.3 lacks 2 files, __init__.py for example: another project was removed "
            "that had them, or they were deleted",
            "pip install --force-reinstall --no-deps xgboost==3.1.3",
            True,
        )
    ]


def test_scripts_may_be_elsewhere(site):
    own(site, "app", "1.0", {"app.py": "x", "../bin/app": "x"}, missing=["../bin/app"])
    assert found(site) == []


def test_twice(site):
    own(site, "App", "1.10", {"app.py": "x"})
    own(site, "app", "1.9", {"app.py": "x", "gone.py": "x"}, missing=["gone.py"])
    assert found(site) == [
        (
            "duplicate-distribution",
            f"{site} has app twice, as 1.9 and as 1.10: what is removed or compared is only one of "
            "them",
            "pip uninstall --yes app && pip uninstall --yes app && pip install app==1.10",
            True,
        )
    ]


def test_what_is_typed_elsewhere(site):
    own(site, "app", "1.0", {"app.py": "x"}, missing=["app.py"])
    (problem,) = environment_problems([str(site)], "uv-variants pip install", "uv pip uninstall")
    assert problem.command == "uv-variants pip install --force-reinstall --no-deps app==1.0"
