"""Publishing to storage: batches, several publishers at once, kills at every point."""

import hashlib
import os
import signal
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest
import storage_publishers
from storage_publishers import Reader, publish, releases_in
from wheel_files import make_variant_json

from variants_cli.publishing.errors import Conflict, PublishError
from variants_cli.publishing.stored_index import StoredIndex
from variants_cli.publishing.stores import open_store

DOCUMENT = "demo-1.0-variants.json"


@pytest.fixture
def batch(tmp_path, build_wheel):
    """Return the function that makes a folder with one variant per label."""

    def make(name, *labels, version="1.0", project="demo", tag="any", content=""):
        folder = tmp_path / name
        for label in labels:
            suffix = "" if label is None else f"-{label}"
            properties = {} if label in (None, "null") else {"x86_64": {"level": [label]}}
            build_wheel(
                f"{project}-{version}-py3-none-{tag}{suffix}.whl",
                folder=folder,
                variant=None if label is None else make_variant_json(label, properties),
                files={f"{project}/content.py": content or f"{label} {tag}"},
            )
        return folder

    return make


def objects_in(place, folder=""):
    """Paths and times of the objects in a store."""
    entries = open_store(place).entries(folder)
    return sorted((entry.path, entry.modified) for entry in entries)


def put(place, path, data):
    store = open_store(place)
    store.put(path, data)
    return store


def test_batches(place, batch):
    _, merged = publish(place, batch("first", "v3", None))
    assert merged == set()
    reader = Reader(place)
    assert reader.settled("demo") == {DOCUMENT: {"v3"}}
    before = {file.filename: file for file in reader.page("demo").files}
    documents, merged = publish(place, batch("second", "v4", "null"))
    assert merged == {DOCUMENT}
    assert reader.settled("demo") == {DOCUMENT: {"v3", "v4", "null"}}
    after = {file.filename: file for file in reader.page("demo").files}
    assert len(after) == 5
    for name, file in before.items():
        assert after[name].upload_time == file.upload_time
        if name != DOCUMENT:
            assert after[name] == file
    assert after[DOCUMENT].hashes == {"sha256": hashlib.sha256(documents[DOCUMENT]).hexdigest()}
    publish(place, batch("other", "v3", project="other"))
    assert reader.projects() == [("demo", "other")] * 2
    # Clients that hold the page from before find what it lists.
    assert reader.get(before[DOCUMENT].url.removeprefix("https://place.invalid/")) is not None


def test_the_same_again_changes_nothing(place, batch):
    folder = batch("first", "v3", "null", None)
    publish(place, folder)
    objects = objects_in(place, "files")
    page = Reader(place).get("simple/demo/index.v1_json")
    publish(place, folder)
    assert Reader(place).get("simple/demo/index.v1_json") == page
    again = objects_in(place, "files")
    assert again == objects
    assert not [path for path, _ in objects_in(place) if "probe" in path]


def test_other_contents_are_refused_before_anything_is_written(place, batch):
    publish(place, batch("first", "v3", "null"))
    page = Reader(place).get("simple/demo/index.v1_json")
    target = StoredIndex(open_store(place))
    with pytest.raises(Conflict, match="a published file cannot change") as raised:
        target.probe(releases_in(batch("second", "v3", content="other")))
    assert place in str(raised.value)
    assert "place.invalid" not in str(raised.value)
    with pytest.raises(Conflict, match="a published file cannot change"):
        target.commit(releases_in(batch("second", "v3", content="other")))
    assert Reader(place).get("simple/demo/index.v1_json") == page


def test_contradicting_metadata_is_refused(place, batch, tmp_path, build_wheel):
    publish(place, batch("first", "v3"))
    tree = make_variant_json("v3", {"x86_64": {"level": ["v4"]}})
    build_wheel("demo-1.0-py3-none-win_amd64-v3.whl", folder=tmp_path / "bad", variant=tree)
    with pytest.raises(Conflict, match="nothing was changed") as raised:
        StoredIndex(open_store(place)).probe(releases_in(tmp_path / "bad"))
    assert place in str(raised.value)
    assert "demo-1.0-py3-none-win_amd64-v3.whl" in str(raised.value)


def test_an_index_of_html_pages_is_continued(place, batch):
    links = '<a href="../../old/demo-0.9-py3-none-any.whl#sha256={}">x</a>'.format("a" * 64)
    put(place, "simple/demo/index.html", links.encode())
    put(place, "simple/older/index.html", links.replace("demo", "older").encode())
    publish(place, batch("first", "v3"))
    page = Reader(place).page("demo")
    assert page.files[0].filename == "demo-0.9-py3-none-any.whl"
    assert page.files[0].url == "https://place.invalid/old/demo-0.9-py3-none-any.whl"
    assert Reader(place).projects() == [("demo", "older")] * 2


def test_a_broken_page_is_not_replaced(place, batch):
    store = put(place, "simple/demo/index.v1_json", b"{")
    with pytest.raises(PublishError, match=r"simple/demo/index\.v1_json: is not JSON") as raised:
        publish(place, batch("first", "v3"))
    assert str(raised.value).startswith(place)
    assert store.get("simple/demo/index.v1_json", 10).data == b"{"


def test_a_damaged_document_is_reported(place, batch):
    publish(place, batch("first", "v3"))
    (path,) = [path for path, _ in objects_in(place, "files") if "variants.json" in path]
    put(place, path, b"{}")
    with pytest.raises(PublishError, match="is not the file that the page of its project lists"):
        publish(place, batch("second", "v4"))


class Forgetful:
    """A store that ignores conditions, as some servers do."""

    def __init__(self, store):
        self.inner = store

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def put_if(self, path, data, version):
        self.inner.put(path, data)


def test_storage_that_ignores_conditions_is_refused(place, batch):
    store = Forgetful(open_store(place))
    target = StoredIndex(store)
    with pytest.raises(PublishError, match="ignores conditions of writes"):
        target.probe(releases_in(batch("first", "v3")))
    assert list(store.entries("")) == []


def start(place, folder):
    program = Path(storage_publishers.__file__)
    return subprocess.Popen(
        [sys.executable, str(program), str(place), str(folder)], stderr=subprocess.PIPE, text=True
    )


def watched(place, stop, problems):
    """Read the index until told to stop; whatever is seen is complete, and labels stay."""
    reader = Reader(place)
    seen = set()
    while not stop.is_set():
        try:
            for name in ("index.v1_json", "index.html"):
                labels = reader.labels("demo", name).get(DOCUMENT, set())
                if name == "index.v1_json":
                    assert seen <= labels
                    seen = labels
        except Exception as problem:
            problems.append(repr(problem))
            return


def test_publishers_at_once_lose_nothing(place, batch):
    labels = [f"v{number}" for number in range(6)]
    folders = [batch(f"batch-{label}", label, tag=f"linux_{label}") for label in labels]
    stop, problems = threading.Event(), []
    reader = threading.Thread(target=watched, args=(place, stop, problems))
    reader.start()
    publishers = [start(place, folder) for folder in folders]
    for publisher in publishers:
        error = publisher.communicate()[1]
        assert publisher.returncode == 0, error
    stop.set()
    reader.join()
    assert problems == []
    assert Reader(place).settled("demo") == {DOCUMENT: set(labels)}


class Killed:
    """A store whose process ends before a write."""

    def __init__(self, store, writes):
        self.inner, self.left = store, writes

    def __getattr__(self, name):
        found = getattr(self.inner, name)
        return partial(self.write, found) if name in ("put", "put_if", "delete") else found

    def write(self, act, *arguments):
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self.left -= 1
        return act(*arguments)


def hashes(place):
    return [(file.filename, file.hashes) for file in Reader(place).page("demo").files]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_before_any_write(tmp_path, batch):
    first, second = batch("first", "v3", "null"), batch("second", "v4", "v2", None)
    publish(tmp_path / "whole", first)
    publish(tmp_path / "whole", second)
    expected = hashes(tmp_path / "whole")
    outcomes = []
    for number in range(100):
        place = tmp_path / f"place-{number}"
        publish(place, first)
        child = os.fork()
        if child == 0:
            store = Killed(open_store(str(place)), number)
            target = StoredIndex(store)
            try:
                publish(place, second, target)
            finally:
                os._exit(0)
        status = os.waitpid(child, 0)[1]
        reader = Reader(place)
        labels = reader.labels("demo")[DOCUMENT]
        assert reader.labels("demo", "index.html")[DOCUMENT] <= labels
        outcomes.append(labels)
        publish(place, second)
        assert reader.settled("demo") == {DOCUMENT: {"v2", "v3", "v4", "null"}}
        assert hashes(place) == expected
        if not os.WIFSIGNALED(status):
            break
    assert number > 8
    assert all(labels in ({"v3", "null"}, {"v2", "v3", "v4", "null"}) for labels in outcomes)


def test_killed_during_a_request_and_resumed(storage, tmp_path, batch, monkeypatch):
    for name, value in storage.environ().items():
        monkeypatch.setenv(name, value)
    second = batch("second", "v4", "v2")
    for number in (1, 5, 9, 14, 18, 22):
        place = f"s3://bucket/{tmp_path.name}-{number}"
        publish(place, batch("first", "v3"))
        publisher = start(place, second)
        before = len(storage.requests)

        def kill(method, path, count, *, last=before + number, publisher=publisher):
            if count == last:
                publisher.kill()
            return None

        storage.faults = kill
        publisher.communicate()
        storage.faults = None
        assert Reader(place).labels("demo")[DOCUMENT] in ({"v3"}, {"v2", "v3", "v4"})
        publish(place, second)
        assert Reader(place).settled("demo") == {DOCUMENT: {"v2", "v3", "v4"}}
