"""Wheels that something else builds: settings for cibuildwheel, and labels afterwards."""

import json
import shlex
import zipfile

import pytest

VARIANT = '[variant]\ndefault-priorities.namespace = ["x86_64"]\n'
MATRIX = """
[axes.cpu.baseline]
label = "null"
[axes.cpu.v3]
properties = ["x86_64 :: level :: v3"]
environment.CFLAGS = ["-mavx2", "-DNAME='x y'"]
environment.LEVEL = "3 or more"
config-settings = { setup-args = ["-Da=b c", "-Dd"] }
"""


@pytest.fixture
def matrix(tmp_path):
    """A matrix file."""
    path = tmp_path / "matrix.toml"
    path.write_text(VARIANT + MATRIX)
    return path


def cibuildwheel(variants, matrix, *only):
    options = [text for which in only for text in ("--only", which)]
    result = variants("matrix", matrix, "--format", "cibuildwheel", *options)
    assert result.code == 0, result.err
    lines = [shlex.split(line) for line in result.out.splitlines()]
    assert all(command == "export" for command, _ in lines)
    return dict(setting.split("=", 1) for _, setting in lines)


def test_settings_of_one_run(variants, matrix):
    assert cibuildwheel(variants, matrix, "v3") == {
        "CIBW_ENVIRONMENT": ('LEVEL="3 or more" CFLAGS="$CFLAGS -mavx2 -DNAME=\'x y\'"'),
        "CIBW_CONFIG_SETTINGS": "'setup-args=-Da=b c' setup-args=-Dd",
    }


def test_what_one_run_cannot_build(variants, matrix):
    result = variants("matrix", matrix, "--format", "cibuildwheel")
    assert result.code == 1
    assert "one run of cibuildwheel has the environment of one variant, these are 2" in result.err
    assert "select one with --only" in result.err


# Labels for wheels


@pytest.fixture
def wheel(build_wheel):
    """Make a plain wheel with these tags in a folder."""

    def wheel(folder, tags):
        made = build_wheel(f"example_pkg-1.0-{tags}.whl")
        folder.mkdir(parents=True, exist_ok=True)
        return made.rename(folder / made.name)

    return wheel


def variant_json(path):
    with zipfile.ZipFile(path) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("variant.json")]
        return json.loads(archive.read(name))


def test_label_of_wheels_built_elsewhere(variants, matrix, wheel, tmp_path):
    plain = [
        wheel(tmp_path / "house", "cp312-cp312-manylinux_2_17_x86_64.manylinux2014_x86_64"),
        wheel(tmp_path / "house", "cp313-cp313t-macosx_11_0_arm64"),
    ]
    result = variants("make", "--matrix", matrix, "--only", "v3", "-o", tmp_path / "dist", *plain)
    assert result.code == 0, result.err
    paths = result.out.splitlines()
    for path, source in zip(paths, plain, strict=True):
        assert path == str(tmp_path / "dist" / f"{source.stem}-v3.whl")
        assert variant_json(path)["variants"] == {"v3": {"x86_64": {"level": ["v3"]}}}
    assert variants("unmake", "-o", tmp_path / "back", paths[0]).code == 0
    assert (tmp_path / "back" / plain[0].name).is_file()


def test_labels_by_folder(variants, matrix, wheel, tmp_path):
    names = ("null", "v3", "v3")
    tags = ("cp312-cp312-win_amd64", "cp312-cp312-win_amd64", "cp313-cp313t-win_amd64")
    plain = [wheel(tmp_path / "house" / name, tag) for name, tag in zip(names, tags, strict=True)]
    result = variants("make", "--matrix", matrix, "-o", tmp_path / "dist", *plain)
    assert result.code == 0, result.err
    assert [line.rpartition("-")[2] for line in result.out.splitlines()] == [
        "null.whl", "v3.whl", "v3.whl",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("only", "tags", "message"),
    [
        ((), "cp312-cp312-win_amd64", "its folder 'house' is not the name of a selected variant"),
        (("v9",), "cp312-cp312-win_amd64", "'v9' matches no variant: null, v3"),
        (("v3",), "cp312-cp312-win_amd64-v3", "is a variant wheel: unmake it first"),
    ],
)
def test_refused_wheels(variants, matrix, wheel, tmp_path, only, tags, message):
    path = wheel(tmp_path / "house", tags)
    before = sorted(tmp_path.rglob("*"))
    options = [text for which in only for text in ("--only", which)]
    result = variants("make", "--matrix", matrix, *options, path)
    assert (result.code, result.out) == (1, "")
    assert message in result.err
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["matrix.toml", "--only", "v3"], "--only needs --matrix"),
        (
            ["matrix.toml", "--matrix", "matrix.toml", "--label", "x"],
            "--matrix cannot be combined with --label",
        ),
        (["--matrix", "matrix.toml"], "Missing argument 'WHEEL...'"),
    ],
)
def test_options_that_do_not_go_together(variants, matrix, monkeypatch, options, message):
    monkeypatch.chdir(matrix.parent)
    result = variants("make", *options)
    assert result.code == 2
    assert message in result.err


def test_abi_dependency_is_not_guessed(variants, build_wheel, tmp_path):
    path = tmp_path / "matrix.toml"
    path.write_text(
        VARIANT
        + '[axes.cpu.v3]\nproperties = ["x86_64 :: level :: v3"]\n'
        + '[build]\nafter.torch.matrix = "torch.toml"'
    )
    result = variants("make", "--matrix", path, "--only", "v3", build_wheel())
    assert result.code == 0
    assert "warning: " in result.err
    assert "no abi_dependency on torch is written" in result.err
