"""Matrices with axes for Pythons and platforms: several wheels of one label."""

import sys

import pytest
from packaging.tags import Tag

from variants_cli.matrix.building import find_interpreter
from variants_cli.matrix.combination import combine, distinct, select
from variants_cli.matrix.reading import read_matrix
from variants_cli.matrix.targets import is_built_for, read_platform, read_python

HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"
VARIANT = '[variant]\ndefault-priorities.namespace = ["x86_64", "aarch64"]\n'
CPU = """
[axes.cpu.baseline]
label = "null"
[axes.cpu.v3]
requires = { platform = ["linux", "mac"] }
properties = ["x86_64 :: level :: v3"]
environment.CFLAGS = ["-mavx2"]
"""
TARGETS = """
[axes.python."3.11"]
python = "3.11"
[axes.python."3.13t"]
python = "cp313t"
[axes.platform.linux]
platform = "manylinux_2_28_x86_64"
ci = { runs-on = "ubuntu-24.04" }
[axes.platform.mac]
platform = "macosx_x86_64"
[axes.platform.windows]
platform = "win_amd64"
environment.CL = "/O2"
"""


@pytest.fixture
def write(tmp_path):
    """Write a matrix file."""

    def write(body=CPU + TARGETS):
        path = tmp_path / "matrix.toml"
        path.write_text(VARIANT + body)
        return path

    return write


@pytest.mark.parametrize(
    ("text", "tag", "request_"),
    [
        ("3.12", "cp312", "cpython@3.12"),
        ("cp312", "cp312", "cpython@3.12"),
        ("3.13t", "cp313t", "cpython@3.13+freethreaded"),
        ("cp3.14", "cp314", "cpython@3.14"),
    ],
)
def test_pythons(text, tag, request_):
    python = read_python(text)
    assert (str(python), python.request) == (tag, request_)


@pytest.mark.parametrize(
    ("text", "tag", "shown", "system"),
    [
        ("manylinux_2_28_x86_64", "manylinux_x86_64", "manylinux_2_28_x86_64", "linux"),
        ("manylinux_aarch64", "manylinux_aarch64", "manylinux_aarch64", "linux"),
        ("manylinux2014_i686", "manylinux_i686", "manylinux_2_17_i686", "linux"),
        ("musllinux_1_2_x86_64", "musllinux_x86_64", "musllinux_1_2_x86_64", "linux"),
        ("macosx_11_0_arm64", "macosx_arm64", "macosx_11_0_arm64", "darwin"),
        ("win_amd64", "win_amd64", "win_amd64", "win32"),
        ("win32", "win32", "win32", "win32"),
        ("linux_x86_64", "linux_x86_64", "linux_x86_64", "linux"),
    ],
)
def test_platforms(text, tag, shown, system):
    platform = read_platform(text)
    assert (platform.tag, str(platform), platform.system) == (tag, shown, system)
    assert read_platform(str(platform)) == platform


@pytest.mark.parametrize(
    ("python", "tags", "fits"),
    [
        ("3.12", "cp312-cp312-any", True),
        ("3.12", "cp312-cp312t-any", False),
        ("3.13t", "cp313-cp313t-any", True),
        ("3.13t", "cp313-cp313-any", False),
        ("3.12", "cp311-cp311-any", False),
        ("3.12", "cp310-abi3-any", True),
        ("3.9", "cp310-abi3-any", False),
        ("3.13t", "cp310-abi3-any", False),
        ("3.12", "py3-none-any", True),
        ("3.12", "py2-none-any", False),
        ("3.12", "cp312-none-any", True),
    ],
)
def test_wheels_of_pythons(python, tags, fits):
    assert read_python(python).fits(Tag(*tags.split("-"))) == fits


@pytest.mark.parametrize(
    ("platform", "tag", "fits"),
    [
        ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", True),
        ("manylinux_2_28_x86_64", "manylinux_2_34_x86_64", False),
        ("manylinux_x86_64", "manylinux_2_34_x86_64", True),
        ("manylinux_x86_64", "manylinux2014_x86_64", True),
        ("manylinux_x86_64", "linux_x86_64", False),
        ("linux_x86_64", "linux_x86_64", True),
        ("manylinux_x86_64", "manylinux_2_17_aarch64", False),
        ("macosx_11_0_arm64", "macosx_11_0_universal2", True),
        ("macosx_11_0_arm64", "macosx_12_0_arm64", False),
        ("win_amd64", "any", True),
        ("win32", "win32", True),
        ("win_amd64", "win32", False),
    ],
)
def test_wheels_of_platforms(platform, tag, fits):
    assert read_platform(platform).fits(Tag("py3", "none", tag)) == fits


def test_labels_and_several_tags_of_a_wheel():
    name = "a-1-cp310-abi3-manylinux2014_x86_64.manylinux_2_28_x86_64-cu129.whl"
    assert is_built_for(name, read_python("3.12"), read_platform("manylinux_2_17_x86_64"))
    assert not is_built_for(name, read_python("3.12"), read_platform("win_amd64"))
    assert not is_built_for("a.zip", read_python("3.12"), None)


def test_one_label_for_all_pythons_and_platforms(write):
    found = combine(read_matrix(write()))
    assert [variant.label for variant in distinct(found)] == ["null", "v3"]
    names = [variant.name for variant in found]
    assert len(names) == 2 * 3 + 2 * 2
    assert names[0] == "null-cp311-manylinux_2_28_x86_64"
    assert "v3-cp313t-macosx_x86_64" in names
    assert "v3-cp311-win_amd64" not in names
    chosen = select(found, ["python=3.11", "platform=windows"])
    assert [variant.name for variant in chosen] == ["null-cp311-win_amd64"]
    assert chosen[0].settings.environment == {"CL": "/O2"}
    assert select(found, ["v3-cp311-macosx_x86_64"]) == select(
        found, ["v3", "python=3.11", "platform=mac"]
    )


def test_table_and_metadata_know_labels_only(write, variants):
    result = variants("matrix", write())
    assert [line.split()[0] for line in result.out.splitlines()] == ["null", "v3"]
    assert result.err == "note: 2 variants, 10 wheels\n"
    found = variants("matrix", write(), "--format", "metadata").json
    assert sorted(found["variants"]) == ["null", "v3"]


def test_exports_have_all_axes(write, variants):
    (job,) = variants(
        "matrix", write(), "--only", "v3-cp313t-manylinux*", "--format", "github"
    ).json["include"]
    assert job == {
        "cpu": "v3",
        "python": "3.13t",
        "platform": "linux",
        "variant": "v3",
        "build": "v3-cp313t-manylinux_2_28_x86_64",
        "environment": {"CFLAGS": "-mavx2"},
        "runs-on": "ubuntu-24.04",
    }
    (item,) = variants(
        "matrix", write(), "--only", "v3", "--only", "python=3.11", "--only", "platform=linux",
        "--format", "json",
    ).json  # fmt: skip
    assert (item["python"], item["platform"]) == ("cp311", "manylinux_2_28_x86_64")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('[axes.python.x]\npython = "3"', "axes.python.x.python: '3' is not a Python such as"),
        (
            '[axes.python.x]\npython = "pp311"',
            "axes.python.x.python: 'pp311' is not a Python such as",
        ),
        ('[axes.python.x]\npython = ""', "axes.python.x.python: '' is not a Python such as"),
        (
            '[axes.platform.x]\nplatform = "linux32"',
            "axes.platform.x.platform: 'linux32' is not a platform such as",
        ),
        (
            '[axes.python.a]\npython = "3.12"\n[axes.python.b]',
            "axes.python.b: has no python, which other values of this axis have: add it",
        ),
        (
            '[axes.python.a]\npython = "3.12"\n[axes.more.b]\npython = "3.13"',
            "axes.more: axis 'python' has the key 'python', too: keep one",
        ),
        (
            '[axes.python.a]\npython = "3.12"\nproperties = ["x86_64 :: level :: v3"]',
            "axes.python.a.properties: a label has the same properties for every Python",
        ),
        (
            '[axes.python.a]\npython = "3.12"\n[axes.python.b]\npython = "cp312"',
            "label: cpu=v3, python=a and cpu=v3, python=b both have the label 'v3'",
        ),
        (
            '[axes.python.a]\npython = "3.12"\n[axes.python.b]\npython = "3.13"\n'
            '[[override]]\nwhere = { python = "b" }\nproperties = ["x86_64 :: level :: v4"]',
            "properties: cpu=v3, python=a and cpu=v3, python=b both have the label 'v3', but "
            "differ in x86_64 :: level :: v3, x86_64 :: level :: v4",
        ),
    ],
)
def test_errors(write, variants, body, message):
    path = write('[axes.cpu.v3]\nproperties = ["x86_64 :: level :: v3"]\n' + body)
    result = variants("matrix", path)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(f"error: {path}: {message}"), result.err


# Interpreters


def test_interpreters():
    found = find_interpreter(None)
    assert found.executable == sys.executable
    assert found.version.startswith(sys.version)
    assert find_interpreter(read_python(HERE)).version.startswith(f"{HERE}.")


def test_missing_interpreter(write, variants, tmp_path, monkeypatch):
    find_interpreter.cache_clear()
    monkeypatch.setenv("UV_PYTHON_DOWNLOADS", "never")
    monkeypatch.setenv("UV_OFFLINE", "1")
    (tmp_path / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "b"\nbackend-path = ["."]\n'
    )
    (tmp_path / "b.py").write_text(
        "import tarfile\n"
        "def build_sdist(folder, settings=None):\n"
        "    with tarfile.open(folder + '/a-1.tar.gz', 'w:gz') as archive:\n"
        "        archive.add('b.py', 'a-1/b.py')\n"
        "    return 'a-1.tar.gz'\n"
    )
    path = write('[axes.cpu.null]\n[axes.python.x]\npython = "3.99"\n')
    result = variants("matrix", path, "--build", "-o", tmp_path / "dist")
    assert result.code == 1
    assert "error: cp399 is not on this machine, and uv could not fetch it (" in result.err
    find_interpreter.cache_clear()
