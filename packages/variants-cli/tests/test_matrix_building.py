"""Building matrices, with a real frontend and a small build backend that is part of the project.

Several projects in one run, too: their order, which variants go together, what is built on what.
"""

import json
import os
import platform
import signal
import subprocess
import sys
import zipfile
from functools import partial
from pathlib import Path

import pytest
from filelock import FileLock

from pep_variants._wheelfile.wheel import read_wheel_metadata
from support.build_projects import told, wheel_of, write_project
from support.waiting import wait_until
from variants_cli import matrices
from variants_cli._matrix import building
from variants_cli._matrix.building import Plan, with_other_projects
from variants_cli._matrix.combination import built_against, combine
from variants_cli._matrix.model import BuildError
from variants_cli._matrix.reading import read_matrix

MATRIX = """
[variant]
default-priorities.namespace = ["x86_64"]

[axes.cpu.baseline]
label = "null"

[axes.cpu.v2]
properties = ["x86_64 :: level :: v2"]
environment = { LEVEL = "2", CFLAGS = ["-march=x86-64-v2"] }

[axes.cpu.v3]
properties = ["x86_64 :: level :: v3"]
environment = { LEVEL = "3", CFLAGS = ["-march=x86-64-v3"] }
config-settings = { key = ["one", "two"] }
"""
LABELS = ["null", "v2", "v3"]


@pytest.fixture
def project(tmp_path):
    return write_project(tmp_path / "sample", MATRIX).parent


@pytest.fixture
def matrix(variants, tmp_path):
    """Build matrices into one directory."""

    def matrix(*arguments):
        return variants("matrix", *arguments, "--build", "-o", tmp_path / "dist")

    return matrix


@pytest.fixture
def build(project, matrix):
    """Build the project's matrix."""
    return partial(matrix, project / "matrix.toml")


def name(label):
    return f"sample-1.0-py3-none-any-{label}.whl"


def progress(result):
    """How each variant ended, without times."""
    lines = [line.split() for line in result.err.splitlines() if line.startswith("[")]
    return {line[1]: " ".join(line[2:4]) for line in lines}


def test_build(build, tmp_path, monkeypatch):
    monkeypatch.setenv("CFLAGS", "-g")
    result = build()
    assert result.code == 0, result.err
    dist = tmp_path / "dist"
    *paths, index = result.out.splitlines()
    assert paths == [str(dist / name(label)) for label in LABELS]
    assert index.startswith(f"{dist / 'simple'}: 1 project, 3 wheels, 1 version with variants")
    assert told(dist, "sample", "null")["CFLAGS"] == "-g"
    assert told(dist, "sample", "v2") == {
        "CFLAGS": "-g -march=x86-64-v2",
        "LEVEL": "2",
        "CUDA": None,
        "settings": {},
    }
    assert told(dist, "sample", "v3")["LEVEL"] == "3"
    assert told(dist, "sample", "v3")["settings"] == {"key": ["one", "two"]}
    tree = json.loads((dist / "sample-1.0-variants.json").read_text())
    assert tree["variants"] == {
        "null": {},
        "v2": {"x86_64": {"level": ["v2"]}},
        "v3": {"x86_64": {"level": ["v3"]}},
    }
    assert progress(result) == dict.fromkeys(LABELS, "built in")
    kept = sorted(path.name for path in (tmp_path / "dist-build").iterdir())
    assert kept == [
        *("lock", "null.log", "sample-null.json", "sample-v2.json", "sample-v3.json"),
        *("sdist", "sdist.log", "v2.log", "v3.log"),
    ]


def test_what_is_done_is_not_done_again(build, project, tmp_path):
    assert build().code == 0
    dist = tmp_path / "dist"
    result = build()
    assert (result.code, progress(result)) == (0, dict.fromkeys(LABELS, "is up"))
    assert len(result.out.splitlines()) == 4

    (dist / name("v2")).unlink()
    with (dist / name("v3")).open("ab") as stream:
        stream.write(b"damaged")
    assert progress(build()) == {"null": "is up", "v2": "built in", "v3": "built in"}

    (tmp_path / "dist-build" / "sample-null.json").write_text("{}")
    (tmp_path / "dist-build" / "sample-v2.json").write_text("no json")
    text = MATRIX.replace("-march=x86-64-v3", "-mavx2")
    (project / "matrix.toml").write_text(text)
    assert progress(build("--only", "v3")) == {"v3": "built in"}
    assert told(dist, "sample", "v3")["CFLAGS"] == "-mavx2"
    assert progress(build()) == {"null": "built in", "v2": "built in", "v3": "is up"}

    (project / "source.txt").write_text("# changed")
    assert progress(build("--only", "v2")) == {"v2": "built in"}
    text = text.replace(":: level :: v2", ":: level :: v1").replace('["x86_64"]', '["x86_64", "b"]')
    (project / "matrix.toml").write_text(text)
    assert progress(build("--only", "v*")) == {"v2": "built in", "v3": "built in"}
    (dist / name("null")).unlink()
    assert progress(build("--only", "v2")) == {"v2": "is up"}
    tree = json.loads((dist / "sample-1.0-variants.json").read_text())
    assert tree["default-priorities"]["namespace"] == ["x86_64", "b"]
    assert tree["variants"]["v2"] == {"x86_64": {"level": ["v1"]}}


def test_a_failure_stops_no_other(build, project, tmp_path):
    source = project / "source.txt"
    source.write_text('if told["LEVEL"] == "2": sys.exit("no v2 today")')
    result = build()
    assert result.code == 1
    assert progress(result) == {"null": "built in", "v2": "FAILED", "v3": "built in"}
    log = tmp_path / "dist-build" / "v2.log"
    assert f"error: v2: exit code 2: see {log}\n" in result.err
    assert "    no v2 today\n" in result.err
    assert result.err.splitlines()[-1] == (
        "error: 1 of 3 variants could not be built: v2; no index was written; "
        "run the same command again to continue"
    )
    assert result.out.splitlines() == [str(tmp_path / "dist" / name(x)) for x in ("null", "v3")]
    assert not (tmp_path / "dist" / "simple").exists()

    (project / "matrix.toml").write_text(MATRIX.replace('LEVEL = "2"', 'LEVEL = "two"'))
    result = build()
    assert result.code == 0
    assert progress(result) == {"null": "is up", "v2": "built in", "v3": "is up"}


def test_settings_that_do_not_reach_the_build(build, project):
    (project / "source.txt").write_text("told.clear(); told['settings'] = {}")
    result = build()
    assert result.code == 0
    assert (
        "warning: null and v2 and v3 install the same files: the build does not use what "
        "distinguishes them\n"
    ) in result.err


def test_hosts(build, project):
    here, elsewhere = "platform_machine != 'nowhere'", "platform_machine == 'nowhere'"
    text = MATRIX.replace("[axes.cpu.v2]", f'[axes.cpu.v2]\nhost = "{elsewhere}"')
    text = text.replace("[axes.cpu.v3]", f'[axes.cpu.v3]\nhost = "{here}"')
    (project / "matrix.toml").write_text(text)
    result = build()
    assert progress(result) == dict.fromkeys(["null", "v3"], "built in")
    assert "note: not built on this machine: v2\n" in result.err
    result = build("--only", "v2")
    assert result.code == 1
    assert result.err.endswith(
        "error: none of the selected variants can be built on this machine\n"
    )


# Where the source comes from.


def test_source_distribution(build, project, tmp_path):
    subprocess.run(
        [sys.executable, "-c", "import backend; backend.build_sdist('..')"], cwd=project, check=True
    )
    sdist = tmp_path / "sample-1.0.tar.gz"
    result = build("--source", sdist, "--only", "v2")
    assert result.code == 0, result.err
    assert told(tmp_path / "dist", "sample", "v2")["LEVEL"] == "2"


def test_nothing_to_build(build, project, tmp_path):
    (project / "backend.py").write_text("raise SystemExit('no backend today')")
    result = build()
    assert result.code == 1
    assert "no backend today" in result.err
    log = tmp_path / "dist-build" / "sdist.log"
    assert result.err.endswith(f"error: the source distribution: exit code 2: see {log}\n")
    with (project / "matrix.toml").open("a") as stream:
        stream.write('[build]\nsource = "gone"\n')
    result = build()
    assert result.code == 1
    message = "no such file or directory: name the source with --source"
    assert result.err.endswith(f"error: {project / 'gone'}: {message}\n")


# Backends that write variant metadata themselves.


@pytest.mark.parametrize(
    ("properties", "label", "problem"),
    [
        ({"level": ["v2"]}, "v2", ""),
        ({"level": ["v3"]}, "v2", "v2: the backend made sample-1.0-py3-none-any-v2.whl with"),
        ({"level": ["v2"]}, "other", "v2: the backend made sample-1.0-py3-none-any-other.whl with"),
    ],
)
def test_backend_that_knows_variants(
    build, project, variant_json, monkeypatch, tmp_path, properties, label, problem
):
    own = variant_json(label, {"x86_64": properties})
    monkeypatch.setenv("OWN_JSON", json.dumps(own))
    with (project / "matrix.toml").open("a") as stream:
        stream.write(f'[[override]]\nconfig-settings.variant-label = "{label}"\n')
    result = build("--only", "v2")
    assert result.code == bool(problem)
    if problem:
        assert f"error: {problem}" in result.err
        return
    assert told(tmp_path / "dist", "sample", "v2")["settings"] == {"variant-label": "v2"}
    with zipfile.ZipFile(tmp_path / "dist" / name("v2")) as archive:
        assert json.loads(archive.read("sample-1.0.dist-info/variant.json")) == own


# What goes wrong outside.


def test_two_runs(build, tmp_path):
    dist = tmp_path / "dist"
    (tmp_path / "dist-build").mkdir()
    with FileLock(tmp_path / "dist-build" / "lock"):
        result = build()
    assert result.code == 1
    assert result.err.splitlines()[-1] == (
        f"error: {dist}: another build is running: wait for it, or choose another folder"
    )


def runs(pid):
    try:
        # A process that was not waited for yet is dead all the same.
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False


@pytest.mark.skipif(os.name == "nt", reason="signals of Windows are others")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted(build, project, tmp_path, number):
    """Whatever runs is stopped, and the next run goes on."""
    started = tmp_path / "started"
    (project / "source.txt").write_text(
        f"started = {str(started)!r}\n"
        "if told['LEVEL'] == '2' and not os.path.exists(started):\n"
        "    pathlib.Path(started).write_text(str(os.getpid()))\n"
        "    time.sleep(60)\n"
    )
    script = (
        "import signal, sys\n"
        # Who runs the tests in the background has it ignored.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from variants_cli.main import main; main()"
    )
    command = subprocess.Popen(
        [
            *(sys.executable, "-c", script, "matrix", project / "matrix.toml", "--build"),
            *("-o", tmp_path / "dist"),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert wait_until(lambda: started.exists() and started.read_text())
    backend = int(started.read_text())
    command.send_signal(number)
    _, err = command.communicate(timeout=30)
    assert command.returncode == 128 + number
    assert "Traceback" not in err
    assert wait_until(lambda: not runs(backend))
    assert not list((tmp_path / "dist-build").glob("tree-*"))
    assert progress(build()) == {"null": "is up", "v2": "built in", "v3": "built in"}


def test_what_a_killed_run_left(build, tmp_path):
    left = tmp_path / "dist-build" / "tree-left" / "wheel"
    left.mkdir(parents=True)
    (left / "half.whl").write_bytes(b"half")
    assert build("--only", "v2").code == 0
    assert not left.exists()


def test_no_uv(build, monkeypatch, tmp_path):
    monkeypatch.setattr(building, "find_uv", lambda: "no-such-uv")
    result = build()
    assert result.code == 1
    assert result.err.endswith(
        "error: the source distribution: no-such-uv not found: install it, or name its folder in "
        "PATH\n"
    )


# The test of what was built.


def with_test(project, command):
    with (project / "matrix.toml").open("a") as stream:
        stream.write(f"[build]\ntest = {json.dumps(command)}\n")


def test_what_was_built_is_tested(build, project, tmp_path):
    """In an environment of its own, and again only where it is another wheel or another test."""
    command = "import sample; print(); print(sample.TOLD['LEVEL'], 'GFLOPS')"
    with_test(project, f'python -c "{command}"')
    result = build("--only", "null", "--only", "v2")
    assert result.code == 0, result.err
    assert [line.partition("; ")[2] for line in result.err.splitlines() if line[0] == "["] == [
        "None GFLOPS",
        "2 GFLOPS",
    ]
    log = tmp_path / "dist-build" / "v2-test.log"
    log.unlink()
    again = build("--only", "v2")
    assert "v2 is up to date; 2 GFLOPS" in again.err
    assert not log.exists()
    changed = (project / "matrix.toml").read_text().replace("GFLOPS", "TFLOPS")
    (project / "matrix.toml").write_text(changed)
    assert "v2 is up to date; 2 TFLOPS" in build("--only", "v2").err


def test_a_failed_test(build, project, tmp_path):
    command = "import sample, sys; sys.exit(sample.TOLD['LEVEL'] and 'no GPU')"
    with_test(project, f'python -c "{command}"')
    result = build("--only", "null", "--only", "v2")
    assert (result.code, result.out) == (1, f"{tmp_path / 'dist' / name('null')}\n")
    assert "    no GPU\n" in result.err
    assert result.err.endswith(
        "error: 1 of 2 variants could not be built, or failed the test: v2; no index was written; "
        "run the same command again to continue\n"
    )
    assert not (tmp_path / "dist" / "simple").exists()


def test_builds_for_other_machines_are_not_tested(build, project):
    with (project / "matrix.toml").open("a") as stream:
        stream.write('[axes.cpu.armv9]\nproperties = ["aarch64 :: version :: 9.0a"]\n')
    matrix = (project / "matrix.toml").read_text().replace('["x86_64"]', '["x86_64", "aarch64"]')
    (project / "matrix.toml").write_text(matrix)
    with_test(project, "no-such-command")
    result = build("--only", "armv9" if platform.machine() == "x86_64" else "v3")
    assert result.code == 0, result.err
    assert "; not tested, as this machine lacks what it needs" in result.err


# Several projects.

CUDA = """
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
LABELS_OF_CUDA = ["null", "v3", "cu129_v3"]
AFTER = 'after.base.matrix = "../base/matrix.toml"'


@pytest.fixture
def write(tmp_path):
    """Write a project with a matrix file."""

    def write(name, version="2.9.1", requires=(), after="", matrix=CUDA, dependencies=()):
        text = f"{matrix}\n[build]\n{after}\n"
        return write_project(tmp_path / name, text, version, requires, dependencies)

    return write


@pytest.fixture
def base(write):
    return write("base")


@pytest.fixture
def on_top(write):
    return write("ontop", "0.24.0", ["base"], AFTER)


def test_each_variant_is_built_against_the_one_that_agrees(base, on_top, matrix, tmp_path):
    result = matrix(base, on_top)
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


def test_what_is_needed_is_built_first(base, on_top, matrix, tmp_path):
    """One command, where the source of the other project is named."""
    options = ("--only", "cu129_v3", "--source", f"base={base.parent}")
    result = matrix(on_top, *options)
    assert result.code == 0, result.err
    assert f"matrix.toml: 1 variant, then {on_top}: 1 variant\n" in result.err
    assert told(tmp_path / "dist", "ontop", "cu129_v3")["base"]["CUDA"] == "12.9"
    assert len(list((tmp_path / "dist").glob("base-*.whl"))) == 1
    assert matrix(on_top, *options).err.count("cu129_v3 is up to date") == 2
    for wrong, problem in (
        ((f"base={tmp_path / 'gone'}",), "gone: no such file or directory"),
        ((f"base={base.parent}", f"base={on_top.parent}"), "two for base"),
    ):
        failed = matrix(on_top, *(word for text in wrong for word in ("--source", text)))
        assert (failed.code, problem in failed.err) == (2, True)
    failed = matrix(base, on_top, "--source", base.parent)
    assert "name the project of each --source" in failed.err


def test_variant_markers_in_what_is_built_against(write, on_top, matrix, tmp_path):
    """Installers without variants refuse them."""
    marked = [
        "not-there-1; 'amd' in variant_namespaces",
        "not-there-2; 'x86_64 :: level :: v4' in variant_properties",
        "pluggy>=0.1; python_version >= '3' and 'x86_64' not in variant_namespaces",
    ]
    base = write("base", dependencies=marked)
    result = matrix(base, on_top, "--only", "v3")
    assert result.code == 0, result.err
    assert told(tmp_path / "dist", "ontop", "v3")["base"]["LEVEL"] == "v3"
    with zipfile.ZipFile(wheel_of(tmp_path / "dist", "base", "v3")) as archive:
        metadata = archive.read("base-2.9.1.dist-info/METADATA").decode()
    assert all(f"Requires-Dist: {line}\n" in metadata for line in marked)


def test_what_is_built_is_kept(base, on_top, matrix, tmp_path):
    first = matrix(base, on_top, "--only", "cu129_v3")
    assert first.code == 0, first.err
    again = matrix(base, on_top, "--only", "cu129_v3")
    assert again.err.count("cu129_v3 is up to date") == 2
    # Another base is another build of what is on top of it.
    text = base.read_text().replace('CUDA = "12.9"', 'CUDA = "12.9.1"')
    base.write_text(text)
    changed = matrix(base, on_top, "--only", "cu129_v3")
    assert changed.err.count("cu129_v3 built in") == 2
    assert told(tmp_path / "dist", "ontop", "cu129_v3")["base"]["CUDA"] == "12.9.1"


@pytest.fixture
def planned(on_top, tmp_path):
    """Plan the build of one variant of the project on top, against what is in the directory."""

    def planned():
        read = read_matrix(on_top)
        (variant,) = (variant for variant in combine(read) if variant.label == "v3")
        return with_other_projects(Plan(read, (variant,), tmp_path / "dist"))

    return planned


def test_wheels_that_are_there(base, on_top, planned, batch, tmp_path):
    """As a job of a CI service has them, from the artifacts of an earlier job."""
    dist = tmp_path / "dist"
    dist.mkdir()
    with pytest.raises(BuildError) as missing:
        planned()
    assert str(missing.value) == (
        f"{dist} has no wheel of base v3 to build against: put it there, name its source with "
        "--source base=PATH, or build it before: "
        f"variants matrix {on_top.parent / '../base/matrix.toml'} --only v3 --build -o {dist}"
    )
    batch("dist/artifacts/v3", "v3", "null", project="base", version="2.9.1")
    batch("dist", "v3", project="base", version="2.9.1", tag="nowhere")
    (wheel,) = planned().against["v3"]
    assert wheel == wheel_of(dist / "artifacts" / "v3", "base", "v3")
    batch("dist", "v3", project="base", version="2.9.1")
    with pytest.raises(BuildError, match="there are several wheels of base v3"):
        planned()


@pytest.mark.parametrize(
    ("abi", "wanted"),
    [("major", "2"), ("minor", "2.9"), ("patch", "2.9.1"), ("none", None)],
)
def test_abi_dependency(base, on_top, planned, batch, abi, wanted):
    on_top.write_text(f"{on_top.read_text()}\nafter.base.abi = '{abi}'\n")
    batch("dist", "v3", project="base", version="2.9.1")
    (variant,) = planned().variants
    added = [f"abi_dependency :: base :: {wanted}"] if wanted else []
    assert [*map(str, variant.settings.properties)] == ["x86_64 :: level :: v3", *added]


def test_isolated_builds_have_to_ask_for_it(base, write, matrix):
    result = matrix(base, write("ontop", "1", [], AFTER), "--only", "v3")
    assert result.code == 1
    assert "build-system.requires in pyproject.toml does not list base" in result.err


def test_a_failure_below_is_no_build_above(base, on_top, matrix, tmp_path):
    (base.parent / "backend.py").write_text(
        (base.parent / "backend.py").read_text() + "\nraise SystemExit(1)\n"
    )
    result = matrix(base, on_top)
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
SAME = {label: label for label in LABELS_OF_CUDA}
CUDA_ALONE = 'after.base = { matrix = "../base/matrix.toml", axes = ["cuda"] }'


@pytest.mark.parametrize(
    ("below", "above", "after", "expected"),
    [
        (CUDA, CUDA, AFTER, SAME),
        # Of several that agree in most axes, the first.
        (CUDA + '\n[axes.blas.one]\nlabel = ""\n[axes.blas.two]\n', CUDA, AFTER,
         SAME),
        (SMALLER, CUDA, AFTER, {"null": "null", "v3": "null", "cu129_v3": "cu129"}),
        (CUDA, CUDA + V4, CUDA_ALONE,
         {"null": "null", "v3": "v3", "v4": "null", "cu129_v3": "cu129_v3",
          "cu129_v4": "cu129_v3"}),
    ],
)  # fmt: skip
def test_which_go_together(write, below, above, after, expected):
    write("base", matrix=below)
    assert needs(write("ontop", matrix=above, after=after)) == expected


@pytest.mark.parametrize(
    ("after", "axes", "message"),
    [
        ("after = ['base']", "", "build.after: expected a table, found ['base']"),
        ("after.'-'.matrix = 'x'", "", "build.after: '-' is not a valid project name"),
        (AFTER, V4,
         "build.after.base: no variant of base agrees with v4 in cuda, cpu: exclude it, or let"),
        ("after.base = {}", "",
         "build.after.base.matrix: is missing: name the project's matrix file"),
        (AFTER + '\nafter.base.axes = ["gpu"]', "",
         "build.after.base.axes: 'gpu' is not an axis of both; those are cuda, cpu"),
        (AFTER + "\nafter.base.abi = 'x'", "", "build.after.base.abi: 'x' is none of none, major"),
        ("after.base.version = 1", "", "build.after.base.version: unknown key;"),
        ("after.base = 'x'", "", "build.after.base: expected a table, found 'x'"),
    ],
)  # fmt: skip
def test_errors(base, write, variants, after, axes, message):
    path = write("ontop", "1", ["base"], after, CUDA + axes)
    result = variants("matrix", path)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(f"error: {path}: {message}"), result.err


def test_matrix_of_another_project(base, on_top, variants):
    base.write_text(f'project = "Basis"\n{base.read_text()}')
    result = variants("matrix", on_top)
    assert result.err.startswith(f"error: {on_top}: build.after.base.matrix: "), result.err
    assert result.err.endswith(" is the matrix of basis\n")


def test_matrix_beside_the_file_that_is_extended(base, on_top, tmp_path):
    (tmp_path / "else").mkdir()
    own = tmp_path / "else" / "own.toml"
    own.write_text('extends = "../ontop/matrix.toml"\nproject = "ontop"\n')
    assert needs(own) == SAME


def test_formats_are_for_one_project(base, on_top, variants):
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


# Wheels that something else built, such as cibuildwheel: labels afterwards.


@pytest.fixture
def labelled(variants, project, tmp_path):
    """Run `variants make` on wheels with the project's matrix."""
    options = ("--matrix", project / "matrix.toml", "-o", tmp_path / "dist")
    return partial(variants, "make", *options)


def test_label_of_wheels_built_elsewhere(labelled, variants, build_wheel, tmp_path):
    tags = ("cp312-cp312-manylinux_2_17_x86_64.manylinux2014_x86_64", "cp313-cp313t-win_amd64")
    plain = [build_wheel(f"example_pkg-1.0-{tag}.whl") for tag in tags]
    result = labelled("--only", "v3", *plain)
    assert result.code == 0, result.err
    paths = [tmp_path / "dist" / f"{path.stem}-v3.whl" for path in plain]
    assert result.out.splitlines() == list(map(str, paths))
    for path in paths:
        found = read_wheel_metadata(path, path.name).variants
        assert found == {"v3": {"x86_64": {"level": ("v3",)}}}
    assert variants("unmake", "-o", tmp_path / "back", paths[0]).code == 0
    assert (tmp_path / "back" / plain[0].name).is_file()


def test_labels_by_folder(labelled, build_wheel, tmp_path):
    names = ("null", "v3", "v3")
    tags = ("cp312-cp312-win_amd64", "cp312-cp312-win_amd64", "cp313-cp313t-win_amd64")
    plain = [
        build_wheel(f"example_pkg-1.0-{tag}.whl", folder=tmp_path / "house" / name)
        for name, tag in zip(names, tags, strict=True)
    ]
    result = labelled(*plain)
    assert result.code == 0, result.err
    found = [line.rpartition("-")[2] for line in result.out.splitlines()]
    assert found == ["null.whl", "v3.whl", "v3.whl"]


@pytest.mark.parametrize(
    ("only", "label", "message"),
    [
        ((), None, "its folder 'house' is not the name of a selected variant"),
        (("--only", "v9"), None, "'v9' matches no variant: null, v2, v3"),
        (("--only", "v3"), "v3", "is a variant wheel: unmake it first"),
    ],
)
def test_refused_wheels(labelled, batch, tmp_path, only, label, message):
    result = labelled(*only, *batch("house", label).iterdir())
    assert (result.code, result.out) == (1, "")
    assert message in result.err
    assert not (tmp_path / "dist").exists()


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
def test_options_that_do_not_go_together(variants, project, monkeypatch, options, message):
    monkeypatch.chdir(project)
    result = variants("make", *options)
    assert result.code == 2
    assert message in result.err


def test_abi_dependency_is_not_guessed(labelled, on_top, build_wheel):
    result = labelled("--matrix", on_top, "--only", "v3", build_wheel())
    assert result.code == 0
    assert "warning: " in result.err
    assert "no abi_dependency on base is written" in result.err
