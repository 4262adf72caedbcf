"""`variants publish --to` and `variants storage`: batches, several publishers at once, kills."""

import hashlib
import os
import re
import signal
import subprocess
import sys
from collections import defaultdict
from functools import partial
from urllib.parse import unquote

import pytest

from pep_variants.labels import split_label
from pep_variants.metadata import read_metadata
from support.loopback import served_folder
from variants_cli._publishing import transaction
from variants_cli._publishing.errors import Conflict, PublishError
from variants_cli._publishing.release_contents import read_releases
from variants_cli._publishing.stored_index import BASE, StoredIndex
from variants_cli._publishing.stores import open_store
from variants_index.pages import HTML, JSON, read_page, read_projects

COMMAND = [sys.executable, "-c", "from variants_cli.main import main; main()", "publish"]
DOCUMENT = "demo-1.0-variants.json"
PAGE = "simple/demo/index.v1_json"


def publish(place, folder, store=None):
    """Publish what *folder* holds, in this process."""
    target = StoredIndex(store or open_store(str(place)))
    return transaction.publish(target, read_releases(folder), lambda text: None)


class Reader:
    """Reads an index in a store as its clients do, and checks that everything agrees."""

    def __init__(self, place):
        self.store = open_store(str(place))

    def get(self, path):
        found = self.store.get(path, 100_000_000)
        return None if found is None else found.data

    def page(self, project="demo", name="index.v1_json"):
        data = self.get(f"simple/{project}/{name}")
        if data is None:
            return None
        kind = JSON if name.endswith("json") else HTML
        return read_page(data, kind, f"{BASE}simple/{project}/{name}", project)

    def projects(self):
        """The names on both lists of projects."""
        lists = (("index.html", HTML), ("index.v1_json", JSON))
        return [read_projects(self.get(f"simple/{name}"), kind, BASE) for name, kind in lists]

    def labels(self, name="index.v1_json"):
        """The labels of each version; everything that the page lists is there and agrees."""
        page = self.page(name=name)
        documents, wheels = {}, defaultdict(set)
        for file in page.files if page is not None else ():
            path = unquote(file.url.removeprefix(BASE))
            data = self.get(path)
            assert hashlib.sha256(data).hexdigest() == file.hashes["sha256"], file.url
            if file.filename.endswith("-variants.json"):
                documents[file.filename] = set(read_metadata(data, path).variants)
            elif file.filename.endswith(".whl"):
                metadata = self.get(path + ".metadata")
                assert hashlib.sha256(metadata).hexdigest() == file.core_metadata["sha256"]
                if (label := split_label(file.filename)[1]) is not None:
                    release = "-".join(file.filename.split("-")[:2])
                    wheels[f"{release}-variants.json"].add(label)
        assert documents == dict(wheels)
        return documents

    def settled(self):
        """The labels, where HTML and JSON pages agree."""
        labels = self.labels()
        page, html = self.page(), self.page(name="index.html")
        urls = [sorted(file.url for file in shown.files) for shown in (page, html)]
        assert urls[0] == urls[1]
        assert all("demo" in names for names in self.projects())
        return labels


@pytest.fixture
def dist(batch):
    batch("dist", None, version="0.9")
    return batch("dist", "v3", "v4", "null", None)


def objects_in(place, folder=""):
    """Paths and versions of the objects in a store."""
    store = open_store(place)
    return {path: store.get(path, 1_000_000).version for path in store.paths(folder)}


# The commands.


def test_publish(variants, place, dist):
    result = variants("publish", dist, "--to", place, "--dry-run")
    assert result.code == 0, result.err
    assert re.search(r"demo-1.0-py3-none-any-v3.whl: .*, to be uploaded\n", result.out)
    assert objects_in(place) == {}
    result = variants("publish", dist, "--to", place)
    assert result.code == 0, result.err
    assert result.out.endswith(f"\n5 files uploaded, 0 there before, verified: {place}\n")
    assert Reader(place).settled() == {DOCUMENT: {"v3", "v4", "null"}}
    objects, page = objects_in(place, "files"), Reader(place).get(PAGE)
    tree = variants("publish", dist, "--to", place, "--json").json
    assert (tree["target"], [entry["filename"] for entry in tree["metadata"]]) == (
        place, [DOCUMENT],
    )  # fmt: skip
    assert {file["state"] for file in tree["files"]} == {"already there"}
    assert (objects_in(place, "files"), Reader(place).get(PAGE)) == (objects, page)
    assert not [path for path in objects_in(place) if "probe" in path]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--to", "{dist}"], "is in "),
        (["--to", "{dist}/sub"], "see variants index"),
        (["--to", "x", "--repository-url", "https://x.example"], "exclude each other"),
        (["--to", "x", "--repository", "pypi"], "exclude each other"),
        (["--to", __file__], "is a file: give a directory, or a URL such as s3://"),
        (["--to", "ftp://x"], "ftp://x: is neither a directory nor an s3://, gs:// or az:// URL"),
    ],
)
def test_places(variants, dist, options, message):
    result = variants("publish", dist, *(text.format(dist=dist) for text in options))
    assert result.code in (1, 2)
    assert message in result.err
    assert result.err.count("\n") == 1
    assert not (dist / "simple").exists()


def listed(variants, place):
    files = variants("storage", place, "demo", "--json").json["files"]
    return {file["filename"]: file for file in files}


def test_yank(variants, place, dist):
    publish(place, dist)
    result = variants("storage", place, "demo", "--yank", "demo-1.0-*=broken", "--yank=demo-0.9*")
    assert (result.code, result.out) == (0, "demo: 5 files changed\n")
    files = listed(variants, place)
    yanked = {name for name, file in files.items() if file["yanked"] == "broken"}
    assert len(yanked) == 4
    assert files["demo-0.9-py3-none-any.whl"]["yanked"] == ""
    assert files[DOCUMENT]["yanked"] is None
    assert Reader(place).settled()
    html = Reader(place).page(name="index.html").files
    assert {file.filename for file in html if file.yanked == "broken"} == yanked
    for count in ("1 file", "0 files"):
        result = variants("storage", place, "Demo", "--unyank", "demo-1.0-py3-none-any.whl")
        assert result.out == f"demo: {count} changed\n"
    assert listed(variants, place)["demo-1.0-py3-none-any.whl"]["yanked"] is None


def test_remove(variants, place, dist):
    publish(place, dist)
    result = variants("storage", place, "demo", "--remove", "*-v4.whl", "--remove", "demo-0.9*")
    assert (result.code, result.out) == (0, "demo: 3 files changed\n")
    assert Reader(place).settled() == {DOCUMENT: {"v3", "null"}}
    variants("storage", place, "demo", "--remove", "*-v3.whl", "--remove", "*-null.whl")
    assert Reader(place).settled() == {}
    assert list(listed(variants, place)) == ["demo-1.0-py3-none-any.whl"]
    publish(place, dist)
    assert Reader(place).settled() == {DOCUMENT: {"v3", "v4", "null"}}


def test_lists_and_what_is_not_there(variants, tmp_path, dist):
    place = tmp_path / "place"
    publish(place, dist)
    size = f"{sum(file.size for file in Reader(place).page('demo').files):,}"
    assert variants("storage", place).out.split() == ["demo", "6", size, "active"]
    assert variants("storage", place, "--json").json == [{"name": "demo", "files": 6}]
    assert variants("storage", place, "demo").out.count("\n") == 6
    (left := place / f".demo.whl.{'0' * 12}.tmp").write_bytes(b"12345")
    assert f"{left}: 5 bytes of a publisher that" in variants("storage", place).err
    left.unlink()
    before = Reader(place).get(PAGE)
    for arguments, message in (
        (["demo", "--yank", "demo-2.0*"], "'demo-2.0*': no file of demo has this name"),
        (["demo", "--unyank", DOCUMENT], f"'{DOCUMENT}': no file of demo has this name"),
        (["demo", "--remove", DOCUMENT], f"'{DOCUMENT}': no file of demo has this name"),
        (["other", "--yank", "x"], "there is no project 'other'"),
        (["other"], "there is no project other"),
        (["--yank", "x"], "which project?"),
    ):
        result = variants("storage", place, *arguments)
        assert result.code in (1, 2)
        assert message in result.err
    assert Reader(place).get(PAGE) == before


def test_validate_refuses_the_directory(variants, tmp_path, dist):
    """It has files that no page lists any more; what is served is looked at."""
    place = tmp_path / "place"
    publish(place, dist)
    result = variants("validate", place)
    assert result.code == 1
    assert f"{place} was published with variants publish --to" in result.err
    with served_folder(place) as url:
        result = variants("validate", f"{url}simple/demo/")
    assert (result.code, result.err) == (0, "")
    assert result.out.endswith(": 0 errors, 0 warnings\n")


def test_an_index_that_was_made_before_is_continued(variants, dist, batch):
    assert variants("index", dist).code == 0
    before = Reader(dist).page()
    publish(dist, batch("more", "v2"))
    assert Reader(dist).settled() == {DOCUMENT: {"v2", "v3", "v4", "null"}}
    after = {file.filename: file for file in Reader(dist).page().files}
    assert all(after[file.filename] == file for file in before.files if file.filename != DOCUMENT)


# What the index does.


def test_batches(place, batch):
    assert publish(place, batch("first", "v3", None)).merged == set()
    reader = Reader(place)
    assert reader.settled() == {DOCUMENT: {"v3"}}
    before = {file.filename: file for file in reader.page().files}
    done = publish(place, batch("second", "v4", "null"))
    assert done.merged == {DOCUMENT}
    assert reader.settled() == {DOCUMENT: {"v3", "v4", "null"}}
    after = {file.filename: file for file in reader.page().files}
    assert len(after) == 5
    for name, file in before.items():
        assert after[name].upload_time == file.upload_time
        if name != DOCUMENT:
            assert after[name] == file
    assert after[DOCUMENT].hashes == {"sha256": done.documents[DOCUMENT]}
    publish(place, batch("other", "v3", project="other"))
    assert reader.projects() == [("demo", "other")] * 2
    # Clients that hold the page from before find what it lists.
    assert reader.get(before[DOCUMENT].url.removeprefix("https://place.invalid/")) is not None


def test_conflicts_are_found_before_anything_is_written(
    place, batch, tmp_path, build_wheel, variant_json
):
    publish(place, batch("first", "v3", "null"))
    objects, target = objects_in(place), StoredIndex(open_store(place))
    other = read_releases(batch("second", "v3", files={"more.py": "1"}))
    for act in (target.probe, target.commit):
        with pytest.raises(Conflict, match="a published file cannot change") as raised:
            act(other)
        assert place in str(raised.value)
        assert "place.invalid" not in str(raised.value)
    name = "demo-1.0-py3-none-win_amd64-v3.whl"
    tree = variant_json("v3", {"x86_64": {"level": ["v4"]}})
    build_wheel(name, folder=tmp_path / "bad", variant=tree)
    with pytest.raises(Conflict, match=f"{name}.*nothing was changed") as raised:
        publish(place, tmp_path / "bad")
    assert place in str(raised.value)
    assert objects_in(place) == objects


def test_an_index_of_html_pages_is_continued(place, batch):
    links = '<a href="../../old/demo-0.9-py3-none-any.whl#sha256={}">x</a>'.format("a" * 64)
    store = open_store(place)
    store.put("simple/demo/index.html", links.encode())
    store.put("simple/older/index.html", links.replace("demo", "older").encode())
    publish(place, batch("first", "v3"))
    page = Reader(place).page()
    assert page.files[0].filename == "demo-0.9-py3-none-any.whl"
    assert page.files[0].url == "https://place.invalid/old/demo-0.9-py3-none-any.whl"
    assert Reader(place).projects() == [("demo", "older")] * 2


def test_damage_is_reported(place, batch):
    """A broken page is not replaced, and a damaged document not merged."""
    store = open_store(place)
    store.put(PAGE, b"{")
    with pytest.raises(PublishError, match=r"simple/demo/index\.v1_json: is not JSON") as raised:
        publish(place, batch("first", "v3"))
    assert str(raised.value).startswith(place)
    assert store.get(PAGE, 10).data == b"{"
    store.delete([PAGE])
    publish(place, batch("first", "v3"))
    (path,) = [path for path in objects_in(place, "files") if "variants.json" in path]
    store.put(path, b"{}")
    with pytest.raises(PublishError, match="is not the file that the page of its project lists"):
        publish(place, batch("second", "v4"))


class Altered:
    """A store whose writes end the process after so many, or ignore conditions."""

    def __init__(self, store, writes=None):
        self.inner, self.left = store, writes

    def __getattr__(self, name):
        found = getattr(self.inner, name)
        if self.left is None:
            return found if name != "put_if" else lambda path, data, _: self.inner.put(path, data)
        return partial(self.write, found) if name in ("put", "put_if", "delete") else found

    def write(self, act, *arguments):
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self.left -= 1
        return act(*arguments)


def test_storage_that_ignores_conditions_is_refused(place, batch):
    with pytest.raises(PublishError, match="ignores conditions of writes"):
        publish(place, batch("first", "v3"), Altered(open_store(place)))
    assert objects_in(place) == {}


# Several at once, and kills.


def start(place, folder):
    command = [*COMMAND, str(folder), "--to", str(place)]
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, text=True, **streams)


def test_publishers_at_once_lose_nothing(place, batch):
    """Whatever is seen meanwhile is complete, and labels stay."""
    labels = [f"v{number}" for number in range(4)]
    folders = [batch(f"batch-{label}", label, tag=f"linux_{label}") for label in labels]
    publishers = [start(place, folder) for folder in folders]
    reader, seen = Reader(place), set()
    while any(publisher.poll() is None for publisher in publishers):
        found = reader.labels().get(DOCUMENT, set())
        assert seen <= found
        seen = found
        reader.labels("index.html")
    for publisher in publishers:
        error = publisher.communicate()[1]
        assert publisher.returncode == 0, error
    assert Reader(place).settled() == {DOCUMENT: set(labels)}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_before_any_write(tmp_path, batch):
    first, second = batch("first", "v3", "null"), batch("second", "v4", "v2", None)
    publish(tmp_path / "whole", first)
    publish(tmp_path / "whole", second)
    whole = Reader(tmp_path / "whole").page().files
    hashes = [(file.filename, file.hashes) for file in whole]
    for number in range(100):
        place = tmp_path / f"place-{number}"
        publish(place, first)
        child = os.fork()
        if child == 0:
            try:
                publish(place, second, Altered(open_store(str(place)), number))
            finally:
                os._exit(0)
        status = os.waitpid(child, 0)[1]
        reader = Reader(place)
        labels = reader.labels()[DOCUMENT]
        assert labels in ({"v3", "null"}, {"v2", "v3", "v4", "null"})
        assert reader.labels("index.html")[DOCUMENT] <= labels
        publish(place, second)
        assert reader.settled() == {DOCUMENT: {"v2", "v3", "v4", "null"}}
        assert [(file.filename, file.hashes) for file in reader.page().files] == hashes
        if not os.WIFSIGNALED(status):
            break
    assert number > 8


def test_killed_during_a_request_and_resumed(storage, tmp_path, batch, monkeypatch):
    for name, value in storage.environ().items():
        monkeypatch.setenv(name, value)
    second = batch("second", "v4", "v2")
    for number in (1, 5, 9, 14, 18, 22):
        place = f"s3://bucket/{tmp_path.name}-{number}"
        publish(place, batch("first", "v3"))
        publisher = start(place, second)

        def kill(method, path, count, *, last=len(storage.requests) + number, publisher=publisher):
            if count == last:
                publisher.kill()

        storage.faults = kill
        publisher.communicate()
        storage.faults = None
        assert Reader(place).labels()[DOCUMENT] in ({"v3"}, {"v2", "v3", "v4"})
        publish(place, second)
        assert Reader(place).settled() == {DOCUMENT: {"v2", "v3", "v4"}}
