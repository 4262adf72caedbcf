"""Several projects in one run: their order, which variants go together, what is built on what."""

import json
import shutil
import zipfile
from pathlib import Path

import pytest
from build_projects import told, wheel_of, write_project
from wheel_files import check_record, contents

from pep_variants.wheelfile.core_metadata import requirements_of
from pep_variants.wheelfile.wheel import read_wheel_metadata
from variants_cli import matrices
from variants_cli.matrix.building import _plain, _with_abi_dependency
from variants_cli.matrix.combination import built_against, combine
from variants_cli.matrix.model import After
from variants_cli.matrix.reading import ABI, read_matrix

MATRIX = """
[variant]
default-priorities.namespace = ["nvidia", "x86_64"]
[axes.cuda.none]
label = ""
environment.CUDA = "none"
[axes.cuda."12.9"]
label = "cu129"
properties = ["nvidia :: cuda_version_lower_bound :: 12.0"]
environment.CUDA = "12.9"
[axes.cpu.none]
label = "null"
requires = { cuda = "none" }
[axes.cpu.v3]
properties = ["x86_64 :: level :: v3"]
environment.LEVEL = "v3"
"""
ALL = ["null", "v3", "cu129_v3"]
AFTER = 'after.base.matrix = "../base/matrix.toml"'


@pytest.fixture
def project(tmp_path):
    """Write a project with a matrix file."""

    def project(name, version="2.9.1", requires=(), after="", matrix=MATRIX, dependencies=()):
        text = f"{matrix}\n[build]\n{after}\n"
        return write_project(tmp_path / name, text, version, requires, dependencies)

    return project


@pytest.fixture
def base(project):
    return project("base")


@pytest.fixture
def on_top(project):
    return project("ontop", "0.24.0", ["base"], AFTER)


@pytest.fixture
def build(variants, tmp_path):
    """Build matrices into one folder."""

    def build(*args):
        options = ("--build", "-o", tmp_path / "dist")
        return variants("matrix", *args, *options)

    return build


def test_each_variant_is_built_against_the_one_that_agrees(base, on_top, build, tmp_path):
    result = build(base, on_top)
    assert result.code == 0, result.err
    dist = tmp_path / "dist"
    for label, cuda, cpu in (
        ("null", "none", None),
        ("v3", "none", "v3"),
        ("cu129_v3", "12.9", "v3"),
    ):
        found = told(dist, "ontop", label)["base"]
        assert (found["CUDA"], found["LEVEL"]) == (cuda, cpu)
        path = wheel_of(dist, "ontop", label)
        own = read_wheel_metadata(path, path.name).variants[label].get("abi_dependency")
        assert own == (None if label == "null" else {"base": ("2.9",)})
    document = json.loads((dist / "ontop-0.24.0-variants.json").read_text())
    assert document["variants"]["v3"]["abi_dependency"] == {"base": ["2.9"]}


def test_variant_markers_in_what_is_built_against(project, on_top, build, tmp_path):
    """Installers without variants refuse them."""
    marked = [
        "not-there-1; 'amd' in variant_namespaces",
        "not-there-2; 'x86_64 :: level :: v4' in variant_properties",
        "pluggy>=0.1; python_version >= '3' and 'x86_64' not in variant_namespaces",
    ]
    base = project("base", dependencies=marked)
    result = build(base, on_top, "--only", "v3")
    assert result.code == 0, result.err
    assert told(tmp_path / "dist", "ontop", "v3")["base"]["LEVEL"] == "v3"
    with zipfile.ZipFile(wheel_of(tmp_path / "dist", "base", "v3")) as archive:
        metadata = archive.read("base-2.9.1.dist-info/METADATA").decode()
    assert all(f"Requires-Dist: {line}\n" in metadata for line in marked)


@pytest.mark.parametrize(
    ("filename", "expected"),
    [
        ("base-1-py3-none-any-v3.whl", ["a", "c>=1"]),
        ("base-1-py3-none-any-null.whl", ["b", "c>=1"]),
        ("base-1-py3-none-any.whl", ["b", "c>=1"]),
    ],
)
def test_plain_wheels(build_wheel, tmp_path, filename, expected):
    marked = ["a; 'x86_64' in variant_namespaces", "b; 'x86_64' not in variant_namespaces", "c>=1"]
    label = filename.removesuffix(".whl").split("-")[-1]
    variant = None
    if label != "any":
        properties = {"x86_64": {"level": ["v3"]}} if label == "v3" else {}
        priorities = {"namespace": ["x86_64"]}
        variant = {"default-priorities": priorities, "variants": {label: properties}}
    wheel = build_wheel(filename, requires=marked, variant=variant)
    target = tmp_path / "against"
    target.mkdir()
    plain = _plain(wheel, target)
    assert plain.name == "base-1-py3-none-any.whl"
    check_record(plain)
    files = contents(plain)
    assert "base-1.dist-info/variant.json" not in files
    assert list(requirements_of(files["base-1.dist-info/METADATA"])) == expected


def test_what_is_built_is_kept(base, on_top, build, tmp_path):
    first = build(base, on_top, "--only", "cu129_v3")
    assert first.code == 0, first.err
    again = build(base, on_top, "--only", "cu129_v3")
    assert again.err.count("cu129_v3 is up to date") == 2
    # Another base is another build of what is on top of it.
    text = base.read_text().replace('CUDA = "12.9"', 'CUDA = "12.9.1"')
    base.write_text(text)
    changed = build(base, on_top, "--only", "cu129_v3")
    assert changed.err.count("cu129_v3 built in") == 2
    assert told(tmp_path / "dist", "ontop", "cu129_v3")["base"]["CUDA"] == "12.9.1"


def test_wheels_that_are_there(base, on_top, build, variants, tmp_path):
    """As a job of a CI service has them, from the artifacts of an earlier job."""
    dist = tmp_path / "dist"
    missing = build(on_top, "--only", "v3")
    assert missing.code == 1
    assert missing.err.endswith(
        f"error: {dist} has no wheel of base v3 to build against: put it there, or build it: "
        f"variants matrix {on_top.parent / '../base/matrix.toml'} --only v3 --build -o {dist}\n"
    )
    made = variants("matrix", base, "--only", "v3", "--build", "-o", dist / "artifacts" / "v3")
    assert made.code == 0, made.err
    result = build(on_top, "--only", "v3")
    assert result.code == 0, result.err
    assert [path.name.split("-")[0] for path in dist.glob("*.whl")] == ["ontop"]
    shutil.copy(wheel_of(dist / "artifacts" / "v3", "base", "v3"), dist)
    assert "there are several wheels of base v3" in build(on_top, "--only", "v3").err


@pytest.mark.parametrize(
    ("abi", "wanted"),
    [("major", "2"), ("minor", "2.9"), ("patch", "2.9.1"), ("none", None)],
)
def test_abi_dependency(base, abi, wanted):
    variant = combine(read_matrix(base))[1]
    after = After("base", base, abi=ABI.index(abi))
    wheel = Path("base-2.9.1-py3-none-any-v3.whl")
    found = [str(item) for item in _with_abi_dependency(variant, after, wheel).settings.properties]
    added = [f"abi_dependency :: base :: {wanted}"] if wanted else []
    assert found == [*map(str, variant.settings.properties), *added]


def test_isolated_builds_have_to_ask_for_it(base, project, build):
    result = build(base, project("ontop", "1", [], AFTER), "--only", "v3")
    assert result.code == 1
    assert "build-system.requires in pyproject.toml does not list base" in result.err


def test_a_failure_below_is_no_build_above(base, on_top, build, tmp_path):
    (base.parent / "backend.py").write_text(
        (base.parent / "backend.py").read_text() + "\nraise SystemExit(1)\n"
    )
    result = build(base, on_top)
    assert result.code == 1
    assert not list((tmp_path / "dist").glob("*.whl"))


# Which go together


SMALLER = """
[variant]
default-priorities.namespace = ["nvidia", "x86_64"]
[axes.cuda.none]
label = "null"
[axes.cuda."12.9"]
label = "cu129"
properties = ["nvidia :: cuda_version_lower_bound :: 12.0"]
"""


def needs(file):
    matrix = read_matrix(file)
    (after,) = matrix.build.after
    found = built_against(matrix, combine(matrix), after)
    return {name: variant.label for name, variant in found.items()}


V4 = '\n[axes.cpu.v4]\nproperties = ["x86_64 :: level :: v4"]\n'
CUDA_ALONE = 'after.base = { matrix = "../base/matrix.toml", axes = ["cuda"] }'


@pytest.mark.parametrize(
    ("below", "above", "after", "expected"),
    [
        (MATRIX, MATRIX, AFTER, {label: label for label in ALL}),
        # Of several that agree in most axes, the first.
        (MATRIX + '\n[axes.blas.one]\nlabel = ""\n[axes.blas.two]\n', MATRIX, AFTER,
         {label: label for label in ALL}),
        (SMALLER, MATRIX, AFTER, {"null": "null", "v3": "null", "cu129_v3": "cu129"}),
        (MATRIX, MATRIX + V4, CUDA_ALONE,
         {"null": "null", "v3": "v3", "v4": "null", "cu129_v3": "cu129_v3",
          "cu129_v4": "cu129_v3"}),
    ],
)  # fmt: skip
def test_which_go_together(project, below, above, after, expected):
    project("base", matrix=below)
    assert needs(project("ontop", matrix=above, after=after)) == expected


@pytest.mark.parametrize(
    ("after", "matrix", "message"),
    [
        (
            AFTER,
            MATRIX + '[axes.cpu.v4]\nproperties = ["x86_64 :: level :: v4"]',
            "build.after.base: no variant of base agrees with v4 in cuda, cpu: exclude it, or let",
        ),
        (
            "after.base = {}",
            MATRIX,
            "build.after.base.matrix: is missing: name the project's matrix file",
        ),
        (
            AFTER + '\nafter.base.axes = ["gpu"]',
            MATRIX,
            "build.after.base.axes: 'gpu' is not an axis of both; those are cuda, cpu",
        ),
        (
            AFTER + "\nafter.base.abi = 'x'",
            MATRIX,
            "build.after.base.abi: 'x' is none of none, major",
        ),
        ("after.base.version = 1", MATRIX, "build.after.base.version: unknown key;"),
        ("after = ['base']", MATRIX, "build.after: expected a table, found ['base']"),
        ("after.'-'.matrix = 'x'", MATRIX, "build.after: '-' is not a valid project name"),
        ("after.base = 'x'", MATRIX, "build.after.base: expected a table, found 'x'"),
    ],
)
def test_errors(base, project, variants, after, matrix, message):
    path = project("ontop", "1", ["base"], after, matrix)
    result = variants("matrix", path)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(f"error: {path}: {message}"), result.err


# What is printed


def test_matrix_of_another_project(base, on_top, variants):
    base.write_text(f'project = "Basis"\n{base.read_text()}')
    message = "build.after.base.matrix: "
    result = variants("matrix", on_top)
    assert result.err.startswith(f"error: {on_top}: {message}"), result.err
    assert result.err.endswith(" is the matrix of basis\n")


def test_formats_for_one_project(base, on_top, variants):
    result = variants("matrix", on_top, base, "--format", "json")
    assert result.code == 2
    assert "--format json is for one project: name one FILE" in result.err


@pytest.mark.parametrize(("name", "count"), [("0.23.0-cuda12.8", 44), ("0.24.0-cuda12.9", 57)])
def test_shipped_torchvision_is_built_against_torch(name, count):
    vision = read_matrix(Path(matrices.__path__[0], f"torchvision-{name}.toml"))
    (after,) = vision.build.after
    assert after.project == "torch"
    variants = combine(vision)
    found = built_against(vision, variants, after)
    assert len(found) == count
    same = {variant.label for variant in combine(read_matrix(after.matrix))}
    for variant in variants:
        needed = found[variant.label]
        assert needed.label == variant.label or variant.label not in same
        assert needed.values["cuda"].name == variant.values["cuda"].name


def test_matrix_beside_the_file_that_is_extended(base, on_top, tmp_path):
    folder = tmp_path / "else" / "where"
    folder.mkdir(parents=True)
    own = folder / "own.toml"
    own.write_text('extends = "../../ontop/matrix.toml"\nproject = "ontop"\n')
    assert needs(own) == {label: label for label in ALL}
