"""`variants publish` is killed at every step, and the same command brings it to its end."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import pytest

from support.upload_server import RECEIVED, RECEIVING, STORED, Fault, upload_index

NAME = "example_pkg-1.0-py3-none-any"
DOCUMENT = "example_pkg-1.0-variants.json"
V3_WHEEL, V4_WHEEL = f"{NAME}-x86_64_v3.whl", f"{NAME}-x86_64_v4.whl"
FILES = {DOCUMENT, V3_WHEEL, V4_WHEEL, f"{NAME}-null.whl", f"{NAME}.whl"}
COMMAND = [sys.executable, "-c", "from variants_cli.main import main; main()", "publish"]


@pytest.fixture
def build(tmp_path, build_wheel, variant_json):
    """Write the wheel of a label to a folder."""

    def build(label, folder="dist", **more):
        level = label.removeprefix("x86_64_")
        properties = {} if label == "null" else {"x86_64": {"level": [level]}}
        variant = variant_json(label, properties) if label else None
        name = f"{NAME}-{label}.whl" if label else f"{NAME}.whl"
        build_wheel(name, folder=tmp_path / folder, variant=variant, **more)
        return tmp_path / folder

    return build


@pytest.fixture
def dist(build):
    # Larger than what the sockets between hold: a kill comes in the middle of the file.
    data = {"data": os.urandom(3_000_000)}
    for label in ("", "null", "x86_64_v3", "x86_64_v4"):
        folder = build(label, files=data)
    return folder


@pytest.fixture
def index(tmp_path):
    with upload_index(tmp_path / "index") as running:
        yield running


def start(folder, index, *more, **streams):
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    return subprocess.Popen(
        [*COMMAND, str(folder), "--repository-url", index.url, *more], text=True, **streams
    )


def finish(process):
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return out


@pytest.mark.parametrize(
    ("stage", "filename", "hashes"),
    [
        (RECEIVED, DOCUMENT, True), (STORED, DOCUMENT, True), (RECEIVING, V3_WHEEL, True),
        (STORED, V3_WHEEL, True), (STORED, V3_WHEEL, False), (RECEIVED, V4_WHEEL, True),
        (RECEIVING, f"{NAME}-null.whl", True), (STORED, f"{NAME}.whl", True),
    ],
    ids=lambda value: str(value).removeprefix("example_pkg-1.0-"),
)  # fmt: skip
def test_resumed(variants, dist, index, stage, filename, hashes):
    """Without hashes, the contents say that a file which is there is the same."""
    index.hashes = hashes
    processes, known = [], threading.Event()

    def kill(*now):
        if now == (stage, filename):
            known.wait(30)
            processes[0].kill()

    index.hook = kill
    processes.append(start(dist, index))
    known.set()
    processes[0].communicate(timeout=60)
    assert processes[0].returncode == (-signal.SIGKILL if os.name == "posix" else 1)
    index.hook = lambda stage, filename: None
    before = set(index.files)
    index.uploads.clear()
    again = variants("publish", dist, "--repository-url", index.url, "--json")
    assert again.json["verified"], again.err
    assert set(index.files) == FILES
    for path in dist.glob("*.whl"):
        assert index.read(path.name) == path.read_bytes()
    assert index.labels(DOCUMENT) == {"null", "x86_64_v3", "x86_64_v4"}
    # Nothing that had arrived is sent again.
    assert not before & set(index.sent)


def test_publishers_at_once(index, build):
    """Each has its own variants of one version, and one is started twice: none is lost."""
    labels = ("v2", "v3", "v4")
    folders = [build(label, folder=label) for label in labels]
    for process in [start(folder, index) for folder in (*folders, folders[0])]:
        finish(process)
    assert index.labels(DOCUMENT) == set(labels)
    assert len(index.files) == 4


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
def test_progress_bars(dist, index):
    """On stderr, where a person looks; stdout stays JSON."""
    import pty

    index.faults[V3_WHEEL] = [Fault(stage=RECEIVING), Fault(503)]
    master, slave = pty.openpty()
    environ = {**os.environ, "TERM": "xterm", "COLUMNS": "200", "TWINE_USERNAME": ""}
    process = start(
        dist, index, "--json", stdin=subprocess.DEVNULL, stderr=slave, env=environ
    )  # fmt: skip
    os.close(slave)
    shown = []

    def read():
        while True:
            try:
                shown.append(os.read(master, 65536))
            except OSError:  # the other end is closed
                return

    reader = threading.Thread(target=read)
    reader.start()
    assert json.loads(finish(process))["verified"]
    reader.join()
    os.close(master)
    text = b"".join(shown).decode()
    assert "3.0/3.0 MB" in text
    assert "again in" in text


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts memory as Linux does")
def test_memory_is_constant(index, build):
    """A wheel of 100 MB is never in memory."""
    data = {"data": bytes(100_000_000)}
    folder = build("x86_64_v3", files=data, method=zipfile.ZIP_STORED)
    peaks, processes = [], []

    def look(stage, filename):
        if (stage, filename) == (STORED, V3_WHEEL):
            # Not ru_maxrss: before exec, a child has the memory of the tests.
            status = Path(f"/proc/{processes[0].pid}/status").read_text()
            peaks.append(int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]))

    index.hook = look
    processes.append(start(folder, index))
    finish(processes[0])
    assert max(peaks) < 120_000  # KiB; about 45,000, whatever the size
