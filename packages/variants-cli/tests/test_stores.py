"""Every store keeps the same promises."""

import hashlib
import os
import re
import urllib.request

import pytest

from support.object_storage import SECRET_KEY
from variants_cli._publishing.errors import PublishError
from variants_cli._publishing.stores import (
    CHUNK,
    DirectoryStore,
    ObjectStore,
    PreconditionFailed,
    file_chunks,
    open_store,
)

LIMIT = 1_000_000


@pytest.fixture
def store(place):
    return open_store(place)


@pytest.fixture
def s3(storage, monkeypatch):
    for name, value in storage.environ().items():
        monkeypatch.setenv(name, value)
    yield storage
    storage.faults = None


def put_file(store, path, source, sha256=None):
    digest = sha256 or hashlib.sha256(source.read_bytes()).hexdigest()
    store.put(path, file_chunks(source, digest))


def test_objects(store):
    assert store.get("a/b/page.html", LIMIT) is None
    assert store.size("a/b/page.html") is None
    assert list(store.paths("a")) == []
    store.put("a/b/page.html", b"one")
    store.put("a/b/page.html", b"three")
    store.put("a/c.txt", b"")
    store.put("ab/d.txt", b"d")
    assert store.get("a/b/page.html", LIMIT).data == b"three"
    assert store.size("a/b/page.html") == 5
    assert set(store.paths("a")) == {"a/b/page.html", "a/c.txt"}
    assert len(list(store.paths(""))) == 3
    store.delete(["a/b/page.html", "a/none", "none/none"])
    store.delete(["a/b/page.html"])
    assert list(store.paths("a")) == ["a/c.txt"]
    with pytest.raises(PublishError, match="larger than 0 bytes"):
        store.get("ab/d.txt", 0)
    for path in ("", "/a", "../a", "a/../../b", "a//b", "a\\b", "./a"):
        with pytest.raises(PublishError, match="is not the path of an object"):
            store.put(path, b"")


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege")
def test_links_in_a_directory(tmp_path):
    """They may lead anywhere: nothing is read, written or removed through one."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "page.html").write_bytes(b"secret")
    store = DirectoryStore(tmp_path / "site")
    store.put("torch/page.html", b"one")
    (tmp_path / "site" / "folder").symlink_to(outside, target_is_directory=True)
    (tmp_path / "site" / "file.html").symlink_to(outside / "page.html")
    for path in ("folder/page.html", "folder/new.html", "file.html"):
        for act in (
            lambda path=path: store.put(path, b"two"),
            lambda path=path: store.get(path, LIMIT),
            lambda path=path: store.delete([path]),
        ):
            with pytest.raises(PublishError, match=r"(folder|file\.html): is a link"):
                act()
    assert [path.name for path in outside.iterdir()] == ["page.html"]
    assert (outside / "page.html").read_bytes() == b"secret"
    assert list(store.paths("")) == ["torch/page.html"]


def test_what_a_publisher_left_that_was_ended(tmp_path):
    """The next one removes it, once it is a day old."""
    folder = tmp_path / "torch"
    folder.mkdir()
    old, new, other = (folder / f".x.whl.{name}.tmp" for name in ("0" * 12, "1" * 12, "own"))
    for path in (old, new, other):
        path.write_bytes(b"")
        os.utime(path, (0, 0))
    os.utime(new)
    store = DirectoryStore(tmp_path)
    assert list(store.paths("")) == ["torch/.x.whl.own.tmp"]
    assert [path for path, _ in store.left()] == [old, new]
    store.put("other/page.html", b"")
    assert (old.exists(), new.exists(), other.exists()) == (False, True, True)
    new.unlink()
    other.unlink()


@pytest.mark.parametrize("size", [0, CHUNK, 2 * CHUNK + 5])
def test_files(store, tmp_path, size):
    source = tmp_path / "torch-2.9.0+cu128-1_x~y!.whl"
    source.write_bytes(os.urandom(size))
    path = f"files/torch/{source.name}"
    put_file(store, path, source)
    assert store.size(path) == size
    assert store.get(path, size).data == source.read_bytes()


@pytest.mark.parametrize("size", [10, 2 * CHUNK])
def test_a_file_that_changed_is_not_written(store, tmp_path, size):
    source = tmp_path / "x.whl"
    source.write_bytes(bytes(size))
    with pytest.raises(PublishError, match=r"x\.whl: changed while it was read"):
        put_file(store, "x.whl", source, sha256="0" * 64)
    assert list(store.paths("")) == []
    with pytest.raises(PublishError, match="No such file"):
        put_file(store, "x.whl", tmp_path / "none.whl", sha256="0" * 64)


def test_conditions(store):
    def put(data, version):
        with pytest.raises(PreconditionFailed):
            store.put_if("page", data, version)

    store.put_if("page", b"one", None)
    put(b"two", None)
    first = store.get("page", LIMIT)
    assert first.data == b"one"
    store.put_if("page", b"two", first.version)
    put(b"three", first.version)
    second = store.get("page", LIMIT)
    assert second.data == b"two"
    store.delete(["page"])
    put(b"four", second.version)
    assert store.get("page", LIMIT) is None


def test_directory_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    store = DirectoryStore(tmp_path / "file" / "place")
    for act in (lambda: store.put("a", b""), lambda: store.put_if("a", b"", None)):
        with pytest.raises(PublishError, match=re.escape(str(tmp_path / "file"))):
            act()
    assert store.get("a", LIMIT) is store.size("a") is None


def test_headers(s3):
    store = ObjectStore("s3://bucket/headers")
    store.put("a.whl", b"x")
    store.put_if("simple/index.html", b"x", None)
    expected = {
        "a.whl": ("application/octet-stream", "public, max-age=31536000, immutable"),
        "simple/index.html": ("text/html; charset=utf-8", "public, max-age=60"),
    }
    for path, headers in expected.items():
        with urllib.request.urlopen(f"{s3.url}/bucket/headers/{path}") as answer:
            found = answer.headers["Content-Type"], answer.headers["Cache-Control"]
            assert found == headers


REFUSED = "the storage refused: check the permissions of the credentials: AWS_ACCESS_KEY_ID"


@pytest.mark.parametrize(
    ("bucket", "status", "message"),
    [
        ("bucket", 403, REFUSED),
        ("bucket", 401, REFUSED),
        ("bucket", 400, "400 Bad Request"),
        ("missing", None, "there is no such bucket: create it first"),
    ],
)
def test_refusals(s3, bucket, status, message):
    s3.faults = lambda method, path, number: status
    store = ObjectStore(f"s3://{bucket}/refused")
    acts = [
        lambda: store.put("page", b"x"),
        lambda: store.put_if("page", b"x", None),
        lambda: store.get("page", LIMIT),
        lambda: list(store.paths("")),
    ]
    if status:
        acts.append(lambda: store.delete(["page"]))
    for act in acts:
        with pytest.raises(PublishError, match=message) as raised:
            act()
        assert SECRET_KEY not in str(raised.value)
        assert "\n" not in str(raised.value)


CREDENTIALS = "has credentials: set AWS_ACCESS_KEY_ID"
NO_URL = "s3://bucket/prefix"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("s3://", NO_URL),
        ("s3:///prefix", NO_URL),
        ("https://bucket/x", NO_URL),
        ("s3://bucket/x?y=1", NO_URL),
        ("s3://bucket/x#y", NO_URL),
        ("s3://key:secret@bucket/x", CREDENTIALS),
        ("az://container/x", "no credentials were found: set AWS_ACCESS_KEY_ID"),
    ],
)
def test_urls(url, message, monkeypatch):
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME", raising=False)
    with pytest.raises(PublishError, match=message) as raised:
        ObjectStore(url)
    assert "secret" not in str(raised.value)
