"""`variants publish` is killed at every step, and the same command brings it to its end."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import zipfile
from functools import partial
from pathlib import Path

import pytest

from support.upload_server import RECEIVED, RECEIVING, STORED, Fault, upload_index

V3 = {"x86_64": {"level": ["v3"]}}
V4 = {"x86_64": {"level": ["v4"]}}
NAME = "example_pkg-1.0-py3-none-any"
DOCUMENT = "example_pkg-1.0-variants.json"
V3_WHEEL, V4_WHEEL = f"{NAME}-x86_64_v3.whl", f"{NAME}-x86_64_v4.whl"
FILES = [DOCUMENT, V3_WHEEL, V4_WHEEL, f"{NAME}-null.whl", f"{NAME}.whl"]
COMMAND = [sys.executable, "-c", "from variants_cli.main import main; main()", "publish"]


@pytest.fixture
def dist(tmp_path, build_wheel, variant_json):
    folder = tmp_path / "dist"
    # Larger than what the sockets between hold: a kill comes in the middle of the file.
    build = partial(build_wheel, folder=folder, files={"data": os.urandom(3_000_000)})
    build(f"{NAME}.whl")
    build(f"{NAME}-null.whl", variant=variant_json("null"))
    build(V3_WHEEL, variant=variant_json("x86_64_v3", V3))
    build(V4_WHEEL, variant=variant_json("x86_64_v4", V4))
    return folder


@pytest.fixture
def index(tmp_path):
    with upload_index(tmp_path / "index") as running:
        yield running


def started(folder, index, *more):
    return subprocess.Popen(
        [*COMMAND, str(folder), "--repository-url", index.url, *more],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip


def killed_at(index, folder, wanted):
    """Publish *folder*; kill the command when the index comes to the stage and file *wanted*."""
    processes = []
    known = threading.Event()

    def kill(stage, filename):
        if (stage, filename) == wanted:
            known.wait(30)
            processes[0].kill()

    index.hook = kill
    processes.append(started(folder, index))
    known.set()
    processes[0].communicate(timeout=60)
    index.hook = lambda stage, filename: None
    killed = -signal.SIGKILL if os.name == "posix" else 1
    assert processes[0].returncode == killed


@pytest.mark.parametrize(
    ("stage", "filename"),
    [
        (RECEIVED, DOCUMENT), (STORED, DOCUMENT),
        (RECEIVING, V3_WHEEL), (STORED, V3_WHEEL), (RECEIVED, V4_WHEEL),
        (RECEIVING, f"{NAME}-null.whl"), (STORED, f"{NAME}.whl"),
    ],
    ids=lambda value: value.removeprefix("example_pkg-1.0-"),
)  # fmt: skip
def test_resumed(dist, index, stage, filename):
    killed_at(index, dist, (stage, filename))
    before = set(index.files)
    index.uploads.clear()
    again = started(dist, index, "--json")
    out, err = again.communicate(timeout=60)
    assert again.returncode == 0, err
    assert set(index.files) == set(FILES)
    for path in dist.glob("*.whl"):
        assert index.read(path.name) == path.read_bytes()
    assert index.labels(DOCUMENT) == {"null", "x86_64_v3", "x86_64_v4"}
    # Nothing that had arrived is sent again.
    assert not before & set(index.sent)
    assert json.loads(out)["verified"]


def test_answer_lost_without_hashes(dist, index):
    """The page says that a file of its name is there, and its contents that it is the same."""
    index.hashes = False
    killed_at(index, dist, (STORED, V3_WHEEL))
    index.uploads.clear()
    again = started(dist, index)
    _, err = again.communicate(timeout=60)
    assert again.returncode == 0, err
    assert V3_WHEEL not in index.sent


def test_two_publishers_at_once(tmp_path, index, build_wheel, variant_json):
    """Each has its own variants of one version; none is lost, whoever comes last."""
    folders = []
    labels = {f"v{number}": [f"v{number}"] for number in (2, 3, 4)}
    for label, values in labels.items():
        folder = tmp_path / label
        variant = variant_json(label, {"x86_64": {"level": values}})
        build_wheel(f"{NAME}-{label}.whl", folder=folder, variant=variant)
        folders.append(folder)
    processes = [started(folder, index) for folder in folders]
    for process in processes:
        _, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
    assert index.labels(DOCUMENT) == set(labels)


def test_the_same_twice_at_once(dist, index):
    processes = [started(dist, index) for _ in range(2)]
    for process in processes:
        _, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
    assert set(index.files) == set(FILES)


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
def test_progress_bars(dist, index):
    """On stderr, where a person looks; stdout stays JSON."""
    import pty

    index.faults[V3_WHEEL] = [Fault(stage=RECEIVING), Fault(503)]

    master, slave = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, str(dist), "--repository-url", index.url, "--json"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=slave, text=True,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "200", "TWINE_USERNAME": ""},
    )  # fmt: skip
    os.close(slave)
    seen = []

    def read():
        with contextlib.suppress(OSError):  # the other end is closed
            while data := os.read(master, 65536):
                seen.append(data)

    reader = threading.Thread(target=read)
    reader.start()
    out, _ = process.communicate(timeout=60)
    reader.join()
    os.close(master)
    shown = b"".join(seen).decode()
    assert process.returncode == 0, shown
    assert json.loads(out)["verified"]
    assert "3.0/3.0 MB" in shown
    assert "again in" in shown


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts memory as Linux does")
def test_memory_is_constant(tmp_path, index, build_wheel, variant_json):
    """A wheel of 100 MB is never in memory."""
    folder = tmp_path / "large"
    data = bytes(100_000_000)
    build_wheel(
        V3_WHEEL, folder=folder, files={"data": data}, method=zipfile.ZIP_STORED,
        variant=variant_json("x86_64_v3", V3),
    )  # fmt: skip
    peaks = []
    processes = []

    def look(stage, filename):
        if (stage, filename) == (STORED, V3_WHEEL):
            # Not ru_maxrss: before exec, a child has the memory of the tests.
            status = Path(f"/proc/{processes[0].pid}/status").read_text()
            peaks.append(int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]))

    index.hook = look
    processes.append(started(folder, index))
    _, err = processes[0].communicate(timeout=60)
    assert processes[0].returncode == 0, err
    assert max(peaks) < 120_000  # KiB; about 45,000, whatever the size
