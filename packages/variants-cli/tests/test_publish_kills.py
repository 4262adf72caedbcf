"""`variants publish` is killed at every step, and the same command brings it to its end."""

import os
import re
import signal
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import pytest

from support.upload_server import RECEIVED, RECEIVING, STORED

NAME = "demo-1.0-py3-none-any"
DOCUMENT = "demo-1.0-variants.json"
V3_WHEEL, V4_WHEEL = f"{NAME}-v3.whl", f"{NAME}-v4.whl"
FILES = {DOCUMENT, V3_WHEEL, V4_WHEEL, f"{NAME}-null.whl", f"{NAME}.whl"}
COMMAND = [sys.executable, "-c", "from variants_cli.main import main; main()", "publish"]


@pytest.fixture
def dist(batch):
    # Larger than what the sockets between hold: a kill comes in the middle of the file.
    return batch("dist", None, "null", "v3", "v4", files={"data": os.urandom(3_000_000)})


@pytest.fixture
def index(index):
    index.credentials = None
    return index


def start(folder, index):
    command = [*COMMAND, str(folder), "--repository-url", index.url]
    return subprocess.Popen(command, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def finish(process):
    error = process.communicate(timeout=60)[1]
    assert process.returncode == 0, error


@pytest.mark.parametrize(
    ("stage", "filename", "hashes"),
    [
        (RECEIVED, DOCUMENT, True), (STORED, DOCUMENT, True), (RECEIVING, V3_WHEEL, True),
        (STORED, V3_WHEEL, True), (STORED, V3_WHEEL, False), (RECEIVED, V4_WHEEL, True),
        (RECEIVING, f"{NAME}-null.whl", True), (STORED, f"{NAME}.whl", True),
    ],
    ids=lambda value: str(value).removeprefix("demo-1.0-"),
)  # fmt: skip
def test_resumed(variants, dist, index, stage, filename, hashes):
    """Without hashes, the contents say that a file which is there is the same."""
    index.pages.hashes = hashes
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
        assert index.files[path.name] == path.read_bytes()
    assert index.labels(DOCUMENT) == {"null", "v3", "v4"}
    # Nothing that had arrived is sent again.
    assert not before & set(index.sent)


def test_publishers_at_once(index, batch):
    """Each has its own variants of one version, and one is started twice: none is lost."""
    labels = ("v2", "v3", "v4")
    folders = [batch(label, label) for label in labels]
    for process in [start(folder, index) for folder in (*folders, folders[0])]:
        finish(process)
    assert index.labels(DOCUMENT) == set(labels)
    assert len(index.files) == 4


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts memory as Linux does")
def test_memory_is_constant(index, batch):
    """A wheel of 100 MB is never in memory."""
    files = {"data": bytes(100_000_000)}
    folder = batch("dist", "v3", files=files, method=zipfile.ZIP_STORED)
    peaks, processes = [], []

    def look(*now):
        if now == (STORED, V3_WHEEL):
            # Not ru_maxrss: before exec, a child has the memory of the tests.
            status = Path(f"/proc/{processes[0].pid}/status").read_text()
            peaks.append(int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]))

    index.hook = look
    processes.append(start(folder, index))
    finish(processes[0])
    assert max(peaks) < 120_000  # KiB; about 45,000, whatever the size
