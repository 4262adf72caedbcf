"""Tests, benchmarks and memory limits of a matrix: real environments, a small build backend."""

import json
import os
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pep_variants.model.filename import parse_filename
from variants_cli.matrix import build_process, memory
from variants_cli.matrix.build_plan import BuildError
from variants_cli.matrix.memory import (
    MemoryWatch,
    machine_memory,
    parallel_builds,
    read_size,
    shown_size,
    tree_memory,
)
from variants_cli.matrix.performance_gate import compare, interval_rank, last_number, shown

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
    if "LIBRARY" in os.environ:
        files["sample.so"] = pathlib.Path(os.environ["LIBRARY"]).read_bytes()
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
PRINT = "python -c 'import sample; print(\"x\"); print(sample.FIGURE)'"


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
            *("matrix", project / "matrix.toml", "--build", "--no-isolation", "--no-index"),
            *("--frontend", "build", "-o", tmp_path / "dist"),
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
        "assert sys.prefix == os.environ['VIRTUAL_ENV'] != sys.base_prefix\n"
        "assert 'project' not in os.getcwd() and 'PYTHONPATH' not in os.environ\n"
        "print(os.environ['VARIANT'], sys.argv[1], os.path.basename(sys.argv[2]))\n"
    )
    table = "test = 'python {project}/check.py {label} {wheel}'\n"
    result = build(table, only=("*",))
    assert result.code == 0, result.err
    lines = result.err.splitlines()
    assert [line for line in lines if "tested" in line] == [
        "null tested",
        "fast tested",
        "slow tested",
        "note: elsewhere: not tested here: needs other :: gpu = big, but nothing of 'other' is "
        "supported",
    ] or "note: elsewhere: not tested here: " in result.err
    assert labels(tmp_path / "dist") == ["elsewhere", "fast", "null", "slow"]
    log = (tmp_path / "dist-build" / "fast-test.log").read_text().splitlines()
    assert log[1] == "fast fast sample-1.0-py3-none-any-fast.whl"
    assert not list((tmp_path / "dist-build").glob("tree-*"))

    # What passed is not tested again, unless the wheel or the test changes.
    log = tmp_path / "dist-build" / "fast-test.log"
    log.unlink()
    assert "fast tested" in build(table, only=("fast",)).err
    assert not log.exists()
    with (project / "check.py").open("a") as stream:
        stream.write("# changed\n")
    assert build(table, only=("fast",)).code == 0
    assert log.exists()


def test_a_failing_test_fails_the_variant(build, tmp_path):
    command = "python -c 'import sample, sys; sample.FIGURE < 3 or sys.exit(\"too slow\")'"
    table = f"test = {json.dumps(command)}\n"
    result = build(table)
    assert result.code == 1
    log = tmp_path / "dist-build" / "slow-test.log"
    assert f"error: slow: the test: exit code 1: see {log}\n" in result.err
    assert "    too slow\n" in result.err
    assert result.err.splitlines()[-1] == (
        "error: 1 of 3 variants could not be built or did not pass: slow; no index was written; "
        "run the same command again to continue"
    )
    assert labels(tmp_path / "dist") == ["fast", "null"]
    assert labels(tmp_path / "dist-build" / "unchecked") == ["slow"]
    # It is not built again, and there once the test passes, or is gone.
    result = build(table.replace("< 3", "< 5"))
    assert result.code == 0
    assert "slow is up to date" in result.err
    assert labels(tmp_path / "dist") == ["fast", "null", "slow"]
    # A test that is new counts for wheels that are there.
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
    assert (
        "error: null: the test: no-such-program not found: install it, or correct build.test\n"
    ) in result.err
    result = build(
        "test = { command = 'python', requires = ['never-there-at-all @ file:///nowhere.whl'] }\n",
        only=("null",),
    )
    assert "error: null: the environment of its test: exit code " in result.err


# The gate.


def test_the_gate(build, tmp_path):
    table = f"benchmark.command = {json.dumps(PRINT)}\nbenchmark.rounds = 3\n"
    result = build(table, only=("*",))
    assert result.code == 1
    assert (
        "error: slow: refused, as it is slower than null: 4 against 2, 2.000 times as long "
        "(2.000 to 2.000): correct its flags, leave it out, or pass --no-gate\n"
    ) in result.err
    assert result.err.splitlines()[-4:-1] == [
        "variant  figure  of null  ratio  95 % interval",
        "fast     1       2        0.500  0.500 to 0.500  faster",
        "slow     4       2        2.000  2.000 to 2.000  slower",
    ]
    assert "note: elsewhere: not measured here: " in result.err
    assert labels(tmp_path / "dist") == ["elsewhere", "fast", "null"]
    assert labels(tmp_path / "dist-build" / "unchecked") == ["slow"]
    found = json.loads((tmp_path / "dist-build" / "checks.json").read_text())
    assert found["slow"]["benchmark"]["pairs"] == [[2.0, 4.0]] * 3
    assert found["fast"]["benchmark"]["verdict"] == "faster"

    # Measured once for all; the same wheel passes without the gate, or with more tolerance.
    log = tmp_path / "dist-build" / "slow-benchmark.log"
    log.unlink()
    assert build(table, only=("slow",)).code == 1
    result = build(table, "--no-gate", only=("slow",))
    assert result.code == 0
    assert "warning: slow is slower than null: kept, as --no-gate says\n" in result.err
    assert labels(tmp_path / "dist") == ["elsewhere", "fast", "null", "slow"]
    assert build(f"{table}benchmark.tolerance = 1.5\n", only=("slow",)).code == 0
    assert not log.exists()
    assert build(table, "--fresh", only=("slow",)).code == 1
    assert log.exists()


def test_a_variant_that_has_to_be_faster(build, tmp_path):
    table = "[build.benchmark]\ncommand = 'python -c \"print(2.5)\"'\nrounds = 3\n"
    result = build(table, only=("null", "fast"))
    assert result.code == 0
    assert "note: fast is not faster than null: is it worth a wheel?\n" in result.err
    result = build(f"{table}require = 'faster'\n", only=("null", "fast"))
    assert result.code == 1
    assert "error: fast: refused, as it is not faster than null: 2.5 against 2.5, 1" in result.err
    assert labels(tmp_path / "dist") == ["null"]


def test_no_baseline(build):
    table = f"benchmark = {json.dumps(PRINT)}\n"
    result = build(table, only=("fast",))
    assert result.code == 0
    assert ("note: fast: not measured: there is no wheel 'null' to compare it with\n") in result.err


def test_another_baseline(build):
    table = f"[build.benchmark]\ncommand = {json.dumps(PRINT)}\nrounds = 2\nbaseline = 'fast'\n"
    result = build(table, "--no-gate")
    assert "null     2       1        2.000" in result.err
    assert "slow     4       1        4.000" in result.err


def test_time_is_measured_where_no_number_is_printed(build, project, tmp_path):
    (project / "bench.py").write_text(
        "import sample\nfor i in range(int(sample.FIGURE * 400_000)): pass\nprint('done')"
    )
    table = "[build.benchmark]\ncommand = 'python {project}/bench.py'\nrounds = 7\n"
    result = build(table, only=("null", "slow", "fast"))
    found = json.loads((tmp_path / "dist-build" / "checks.json").read_text())
    measured = {label: found[label]["benchmark"] for label in ("fast", "slow")}
    assert measured["fast"]["measure"] == ("wall" if sys.platform == "win32" else "cpu")
    assert measured["fast"]["unit"] == "s"
    assert measured["fast"]["ratio"] < 1 < measured["slow"]["ratio"], result.err


@pytest.mark.parametrize(
    ("command", "more", "problem"),
    [
        ("python -c 'print(0)'", "measure = 'printed'\n",
         "error: null: the benchmark printed no positive number on its last line"),
        ("python -c 'raise SystemExit(1)'", "", "null: the benchmark: exit code 1"),
    ],
)  # fmt: skip
def test_benchmarks_that_fail(build, command, more, problem):
    result = build(
        f"[build.benchmark]\ncommand = {json.dumps(command)}\n{more}", only=("null", "fast")
    )
    assert result.code == 1
    assert problem.replace("fast: the benchmark printed", "the benchmark printed") in result.err


def test_statistics():
    assert [interval_rank(count) for count in (1, 2, 5, 6, 8, 9, 12, 15)] == [
        1, 1, 1, 1, 1, 2, 3, 4,
    ]  # fmt: skip
    # One disturbed round of nine decides nothing.
    pairs = [(1.0, 1.1)] * 7 + [(1.0, 0.2), (1.0, 9.0)]
    found = compare("x", pairs, "s", 0.01)
    assert (found.ratio, found.low, found.high) == pytest.approx((1.1, 1.1, 1.1))
    assert found.is_slower
    assert not compare("x", pairs, "s", 0.2).is_slower
    # The interval reaches down to the baseline: no evidence.
    assert compare("x", [(1.0, 0.99), (1.0, 1.2), (1.0, 1.3)], "", 0.01).verdict == "as fast"
    assert compare("x", [(1.0, 0.8)] * 3, "", 0.01).verdict == "faster"
    for pairs in ([], [(1.0, 0.0)], [(1.0, float("nan"))], [(-1.0, 1.0)]):
        with pytest.raises(ValueError, match="positive"):
            compare("x", pairs, "", 0.01)


@pytest.mark.parametrize(
    ("output", "number"),
    [
        ("1.5", 1.5),
        ("x\n 2e-3 \n\n", 0.002),
        ("", None),
        ("1 s", None),
        ("nan", None),
        ("-1", None),
    ],
)
def test_last_number(output, number):
    assert last_number(output) == number


def test_shown():
    values = [shown(value, "s") for value in (12.345, 0.0123, 4.5e-6, 2e-9)]
    assert values == ["12.3 s", "12.3 ms", "4.5 µs", "2 ns"]
    assert shown(0.00451234, "") == "0.00451"


# Memory.


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("16GB", 16 * 10**9), ("16 gb", 16 * 10**9), ("512MiB", 512 * 2**20), ("1.5g", 15 * 10**8),
        ("2Ti", 2 * 2**40), ("1000", 1000), ("", None), ("0", None), ("many", None), ("1 XB", None),
        ("-1GB", None),
    ],
)  # fmt: skip
def test_sizes(text, size):
    if size is not None:
        assert read_size(text) == size
        return
    with pytest.raises(ValueError):
        read_size(text)


def test_shown_size():
    assert (shown_size(16 * 10**9), shown_size(512 * 2**20)) == ("16.0 GB", "537 MB")


def test_parallel_builds():
    assert parallel_builds(4, 0, 10) == 4
    assert parallel_builds(4, 3, None) == 4
    assert parallel_builds(4, 3, 10) == 3
    assert parallel_builds(4, 30, 10) == 1


def test_machine_memory(tmp_path):
    real = machine_memory(())
    assert real is None or real > 10**8
    limit, none = tmp_path / "limit", tmp_path / "none"
    limit.write_text("1000000\n")
    none.write_text("max\n")
    assert machine_memory((none, tmp_path / "missing", limit)) == 1_000_000
    assert machine_memory((none,)) == real


def test_tree_memory(tmp_path):
    """A tree of processes: by session, by descent, one that ended, one that is another's."""
    processes = {
        10: (1, 10, 100),  # the root
        11: (10, 10, 20),
        12: (11, 12, 3),  # a session of its own, but a descendant
        13: (1, 10, 50),  # its parent has ended
        14: (1, 14, 1000),
    }
    for pid, (parent, session, size) in processes.items():
        folder = tmp_path / str(pid)
        folder.mkdir()
        (folder / "stat").write_text(f"{pid} (a ) b) S {parent} {pid} {session} 0 0")
        (folder / "status").write_text(
            f"Name:\tx\nRssAnon:\t{size} kB\nRssFile:\t999 kB\nRssShmem:\t1 kB\n"
        )
    (tmp_path / "15").mkdir()
    (tmp_path / "self").mkdir()
    assert tree_memory(10, tmp_path) == (100 + 20 + 3 + 50 + 4) * 1024
    watch = MemoryWatch(1024 * 100, tmp_path)
    assert watch.exceeded(10)
    with pytest.raises(BuildError, match=r"v3: took 0 MB of memory, more than build\.memory"):
        watch.check("v3")
    assert not MemoryWatch(0, tmp_path).exceeded(10)
    assert not MemoryWatch(1, tmp_path / "no-proc").exceeded(10)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="there is no /proc here")
def test_a_build_that_takes_too_much(build, project, tmp_path):
    """Its children are stopped, too."""
    (project / "more.txt").write_text(
        "import subprocess, sys, time\n"
        "if os.environ.get('FIGURE') == '4.0':\n"
        "    code = 'x = bytearray(300_000_000); import time; time.sleep(60)'\n"
        "    child = subprocess.Popen([sys.executable, '-c', code])\n"
        f"    pathlib.Path({str(tmp_path / 'child')!r}).write_text(str(child.pid))\n"
        "    child.wait()\n"
    )
    start = time.monotonic()
    result = build("memory = '200MB'\n", only=("null", "slow"))
    assert time.monotonic() - start < 40
    assert result.code == 1
    assert "error: slow: took " in result.err
    assert " of memory, more than build.memory (200 MB), and was stopped: let fewer" in result.err
    assert labels(tmp_path / "dist") == ["null"]
    pid = int((tmp_path / "child").read_text())
    state = Path(f"/proc/{pid}/stat")
    deadline = time.monotonic() + 20
    while state.exists() and "Z" not in state.read_text().rpartition(")")[2].split()[0]:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_fewer_builds_at_a_time(build, project, tmp_path, monkeypatch):
    """Two of them never run at once where the memory is enough for one."""
    monkeypatch.setattr(memory, "_CGROUPS", ())
    (project / "more.txt").write_text(
        f"lock = {str(tmp_path / 'running')!r}\nimport time\n"
        "os.mkdir(lock)\ntime.sleep(0.3)\nos.rmdir(lock)\n"
    )
    result = build("memory = '900TB'\n", "-j", "3")
    assert result.code == 0
    assert "note: building 1 at a time: each may take 900000.0 GB, and there is " in result.err


@pytest.mark.skipif(os.name == "nt", reason="signals of Windows are others")
def test_killed_by_the_kernel(build, project):
    (project / "more.txt").write_text("import signal; os.kill(os.getpid(), signal.SIGKILL)")
    result = build("", only=("null",))
    assert "(killed, perhaps for lack of memory: build.memory limits it)" in result.err or (
        "exit code" in result.err
    )
    assert build_process._OUT_OF_MEMORY.search(
        "g++: fatal error: Killed signal terminated program cc1plus"
    )


@pytest.mark.skipif(
    shutil.which("cc") is None or sys.platform != "linux" or platform.machine() != "x86_64",
    reason="there is no C compiler for Linux on x86-64 here",
)
def test_libraries_are_audited(build, tmp_path, monkeypatch):
    source, library = tmp_path / "x.c", tmp_path / "x.so"
    source.write_text("void f(float *x) { for (int i = 0; i < 999; i++) x[i] *= 3; }\n")
    command = ["cc", "-O3", "-march=x86-64-v3", "-shared", "-fPIC", "-o", library, source]
    subprocess.run(command, check=True)
    monkeypatch.setenv("LIBRARY", str(library))
    result = build("", only=("null",))
    assert result.code == 0
    assert "warning: null: sample.so: has " in result.err
    assert " in functions such as f; the label declares x86-64-v1 [" in result.err
    assert "above-label" not in build("", only=("null",)).err  # it is up to date


# The file.


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ("test = 1\n", "build.test: expected a command or tables, found 1"),
        ("test = ''\n", "build.test.command: there is none: give the command to run"),
        ("test = \"a 'b\"\n", "build.test.command: \"a 'b\" is not a valid command"),
        ("test = { command = 'x', more = 1 }\n", "build.test: unknown key 'more'"),
        ("test = { command = 'x', requires = ['a b c'] }\n",
         "build.test.requires: 'a b c' is not a valid requirement"),
        ("test = { command = 'x', only = 'v3' }\n", "build.test.only: expected a list of strings"),
        ("benchmark = 1\n", "build.benchmark: expected a command or a table, found 1"),
        ("benchmark = { command = 'x', measure = 'speed' }\n",
         "build.benchmark.measure: 'speed' is not a measure; there are auto, printed, cpu, wall"),
        ("benchmark = { command = 'x', require = 'fast' }\n",
         "build.benchmark.require: expected one of as-fast, faster, found 'fast'"),
        ("benchmark = { command = 'x', rounds = 0 }\n",
         "build.benchmark.rounds: expected a whole number from 1 to 1000, found 0"),
        ("benchmark = { command = 'x', tolerance = -1 }\n",
         "build.benchmark.tolerance: expected a share such as 0.02, found -1"),
        ("memory = 'much'\n",
         "build.memory: 'much' is not a size such as '16GB' or '512MiB'"),
        ("memory = 16\n", "build.memory: expected a string, found 16"),
    ],
)  # fmt: skip
def test_wrong_tables(build, table, problem):
    result = build(table)
    assert result.code == 1
    assert problem in result.err
