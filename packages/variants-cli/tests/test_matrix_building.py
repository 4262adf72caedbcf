"""Building a matrix: with a real frontend and a small build backend that is part of the project."""

import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest
from build_projects import told, write_project

from variants_cli.matrix import building

RUN = [sys.executable, "-c", "from variants_cli.main import main; main()"]

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
def build(project, variants, tmp_path):
    """Build the project's matrix."""

    def build(*options):
        common = ("--build", "-o", tmp_path / "dist")
        return variants("matrix", project / "matrix.toml", *common, *options)

    return build


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


def test_nothing_to_build(build, project):
    with (project / "matrix.toml").open("a") as stream:
        stream.write('[build]\nsource = "gone"\n')
    result = build()
    assert result.code == 1
    place = project / "gone"
    assert result.err.endswith(
        f"error: {place}: no such file or directory: name the source with --source\n"
    )


def test_source_distribution_cannot_be_made(build, project, tmp_path):
    (project / "backend.py").write_text("raise SystemExit('no backend today')")
    result = build()
    assert result.code == 1
    assert "no backend today" in result.err
    log = tmp_path / "dist-build" / "sdist.log"
    assert result.err.endswith(f"error: the source distribution: exit code 2: see {log}\n")


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


def test_two_runs(build, project, tmp_path):
    meeting = tmp_path / "meeting"
    meeting.mkdir()
    (project / "source.txt").write_text(
        f"folder = {str(meeting)!r}\n"
        "pathlib.Path(folder, 'started').touch()\n"
        "deadline = time.monotonic() + 20\n"
        "while not os.path.exists(os.path.join(folder, 'go')):\n"
        "    assert time.monotonic() < deadline\n"
        "    time.sleep(0.01)\n"
    )
    first = subprocess.Popen(
        [
            *(*RUN, "matrix", project / "matrix.toml", "--build"),
            *("--only", "v2", "-o", tmp_path / "dist"),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _wait_for(lambda: (meeting / "started").exists(), first)
    result = build()
    assert result.code == 1
    dist = tmp_path / "dist"
    assert result.err.splitlines()[-1] == (
        f"error: {dist}: another build is running: wait for it, or choose another folder"
    )
    (meeting / "go").touch()
    assert first.wait(30) == 0


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
    _wait_for(lambda: started.exists() and started.read_text(), command)
    backend = int(started.read_text())
    command.send_signal(number)
    _, err = command.communicate(timeout=30)
    assert command.returncode == 128 + number
    assert "Traceback" not in err
    _wait_for(lambda: not _runs(backend))
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


def _wait_for(condition, process=None):
    deadline = time.monotonic() + 30
    while not condition():
        assert process is None or process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _runs(pid):
    try:
        # A process that was not waited for yet is dead all the same.
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
