"""Tests of built wheels: real environments, and a small build backend."""

import json

import pytest

from pep_variants.model.filename import parse_filename

BACKEND = """
import os, pathlib, tarfile, zipfile

NAME = "sample-1.0"
INFO = NAME + ".dist-info/"


def build_sdist(folder, config_settings=None):
    with tarfile.open(os.path.join(folder, NAME + ".tar.gz"), "w:gz") as archive:
        for path in ("pyproject.toml", "backend.py", "more.txt"):
            archive.add(path, NAME + "/" + path)
    return NAME + ".tar.gz"


def build_wheel(folder, config_settings=None, metadata_directory=None):
    exec(pathlib.Path("more.txt").read_text())
    files = {
        "sample.py": "FIGURE = " + os.environ.get("FIGURE", "2.0"),
        INFO + "METADATA": "Metadata-Version: 2.1\\nName: sample\\nVersion: 1.0\\n"
        "Requires-Dist: never-there; extra == 'x'\\n"
        "Requires-Dist: never-there; 'other' in variant_namespaces\\n",
        INFO + "WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    }
    files[INFO + "RECORD"] = "".join(
        "%s,sha256=%d,\\n" % (name, hash(text)) for name, text in files.items()
    ) + INFO + "RECORD,,\\n"
    with zipfile.ZipFile(os.path.join(folder, NAME + "-py3-none-any.whl"), "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return NAME + "-py3-none-any.whl"
"""
PYPROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "sample"
version = "1.0"
"""
MATRIX = """
[variant]
default-priorities.namespace = ["own", "other"]
[variant.providers.own]
static-properties.speed = ["fast", "slow"]
optional = true
[variant.providers.other]
requires = ["provider-other"]

[axes.a.null]
[axes.a.fast]
properties = ["own :: speed :: fast"]
environment.FIGURE = "1.0"
[axes.a.slow]
properties = ["own :: speed :: slow"]
environment.FIGURE = "4.0"
[axes.a.elsewhere]
properties = ["other :: gpu :: big"]
environment.FIGURE = "3.0"

[build]
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project whose wheels have a figure; hashes in its RECORD tell contents apart, no more."""
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "backend.py").write_text(BACKEND)
    (folder / "pyproject.toml").write_text(PYPROJECT)
    (folder / "more.txt").write_text("")
    return folder


@pytest.fixture
def build(project, variants, tmp_path):
    """Build the project with a table ``[build]``."""

    def build(table, *options, only=("null", "fast", "slow")):
        (project / "matrix.toml").write_text(MATRIX + table)
        return variants(
            *("matrix", project / "matrix.toml", "--build"),
            *("-o", tmp_path / "dist"),
            *(word for label in only for word in ("--only", label)),
            *options,
        )

    return build


def labels(folder):
    return sorted(parse_filename(path.name).label for path in folder.glob("*.whl"))


# Tests.


def test_wheels_are_tested(build, project, tmp_path):
    (project / "check.py").write_text(
        "import os, sample, sys\n"
        "if ' ' in sys.argv[1]:\n    sys.exit('two words')\n"
        "assert sys.prefix == os.environ['VIRTUAL_ENV'] != sys.base_prefix\n"
        "assert 'project' not in os.getcwd() and 'PYTHONPATH' not in os.environ\n"
        "print(os.environ['VARIANT'], sys.argv[1], os.path.basename(sys.argv[2]))\n"
    )
    table = 'test = "python {project}/check.py {label} {wheel}"\n'
    result = build(table, only=("*",))
    assert result.code == 0, result.err
    assert result.err.count(" s, tested\n") == 3
    assert "note: elsewhere: not tested here: " in result.err
    assert labels(tmp_path / "dist") == ["elsewhere", "fast", "null", "slow"]
    log = (tmp_path / "dist-build" / "fast-test.log").read_text().splitlines()
    assert log[1] == "fast fast sample-1.0-py3-none-any-fast.whl"
    assert not list((tmp_path / "dist-build").glob("tree-*"))

    # What is up to date is tested again.
    assert "fast is up to date, tested\n" in build(table, only=("fast",)).err
    assert build(table.replace("{label}", "'a b'"), only=("fast",)).code == 1


def test_a_failing_test_fails_the_variant(build, project, tmp_path):
    command = "python -c 'import sample, sys; sample.FIGURE < 3 or sys.exit(\"too slow\")'"
    table = f"test = {json.dumps(command)}\n"
    result = build(table)
    assert result.code == 1
    log = tmp_path / "dist-build" / "slow-test.log"
    assert f"error: slow: the test: exit code 1: see {log}\n" in result.err
    assert "    too slow\n" in result.err
    assert result.err.splitlines()[-1] == (
        "error: 1 of 3 variants could not be built: slow; no index was written; "
        "run the same command again to continue"
    )
    assert labels(tmp_path / "dist") == ["fast", "null"]
    assert labels(tmp_path / "dist-build") == ["slow"]
    # It is not built again, and there once the test passes, or is gone.
    result = build(table.replace("< 3", "< 5"))
    assert result.code == 0
    assert "slow is up to date" in result.err
    assert labels(tmp_path / "dist") == ["fast", "null", "slow"]
    # A test that is new counts for wheels that are there.
    assert build(table).code == 1
    assert labels(tmp_path / "dist") == ["fast", "null"]
    # Nor does a wheel stay that another one takes the place of, which fails.
    assert build(table.replace("< 3", "< 5")).code == 0
    (project / "more.txt").write_text("# changed")
    assert build(table).code == 1
    assert labels(tmp_path / "dist") == ["fast", "null"]


def test_tests_of_some(build, tmp_path):
    table = (
        "[[build.test]]\ncommand = 'python -c \"import sample\"'\n"
        "[[build.test]]\ncommand = 'python -c \"raise SystemExit(1)\"'\nonly = ['s*']\n"
    )
    assert build(table, only=("fast",)).code == 0
    assert build(table, only=("slow",)).code == 1
    assert labels(tmp_path / "dist") == ["fast"]


def test_requirements_of_tests(build, tmp_path, build_wheel):
    folder = tmp_path / "links"
    folder.mkdir()
    path = build_wheel("helper-1.0-py3-none-any.whl", folder=folder)
    table = (
        "[build.test]\ncommand = 'python -c \"import helper, sample\"'\n"
        f"requires = ['helper @ {path.as_uri()}']\n"
    )
    result = build(table, only=("fast",))
    assert result.code == 0, result.err


def test_what_cannot_run(build, tmp_path):
    result = build("test = 'no-such-program x'\n", only=("null",))
    assert result.code == 1
    assert "error: null: the test: exit code " in result.err
    assert "no-such-program" in result.err
    result = build(
        "test = { command = 'python', requires = ['never-there-at-all @ file:///nowhere.whl'] }\n",
        only=("null",),
    )
    assert "error: null: the test: exit code " in result.err
    assert "nowhere.whl" in result.err
