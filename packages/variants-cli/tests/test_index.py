"""`variants index`: pages and metadata of a directory; what a run keeps, writes again, removes."""

import hashlib
import html
import json
import os
import re
import tarfile
import time
import zipfile
from datetime import datetime, timedelta, timezone
from functools import partial
from urllib.parse import unquote

import pytest
from filelock import FileLock

from variants_cli._indexing.static_index import INVENTORY

V3 = {"x86_64": {"level": ["v3"]}}
V4 = {"x86_64": {"level": ["v4"]}}
UPLOAD_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"
PLAIN = "example_pkg-1.0-py3-none-any.whl"
NULL = "example_pkg-1.0-py3-none-any-null.whl"
WHEEL3 = "example_pkg-1.0-py3-none-any-x86_64_v3.whl"
WHEEL4 = "example_pkg-1.0-py3-none-any-x86_64_v4.whl"
LOCAL = "example_pkg-0.9+cu128-py3-none-any-null.whl"
DOCUMENT = "example_pkg-1.0-variants.json"
OTHER = "other-2.0-py3-none-any.whl"


@pytest.fixture
def dist(tmp_path, build_wheel, variant_json):
    """A directory with two projects, one of them with variants of two versions."""
    folder = tmp_path / "dist"
    build = partial(build_wheel, folder=folder)
    build(PLAIN, requires_python=">=3.8,<4")
    build(NULL, variant=variant_json("null"))
    build(WHEEL3, variant=variant_json("x86_64_v3", V3))
    build(LOCAL, variant=variant_json("null"))
    build(OTHER, folder=folder / "more")
    then = time.time() - 60  # as if they had lain there for a while, so that they are cached
    for path in folder.rglob("*.whl"):
        os.utime(path, (then, then))
    return folder


def links(path):
    """What a client sees of an HTML page: attributes of each link, by its text."""
    found = re.findall(r"<a ([^>]*)>([^<]*)</a>", path.read_text())
    return {
        text: {key: html.unescape(value) for key, value in re.findall(r'([\w-]+)="([^"]*)"', tag)}
        for tag, text in found
    }


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def snapshot(folder):
    # The inventory says when files were changed, too; its lock stays, empty.
    own = (INVENTORY, f"{INVENTORY}.lock")
    files = (path for path in folder.rglob("*") if path.is_file() and path.name not in own)
    return {path: path.read_bytes() for path in files}


def files_of(dist, project="example-pkg"):
    page = json.loads((dist / "simple" / project / "index.v1_json").read_bytes())
    return {file["filename"]: file for file in page["files"]}


def times(dist, project="example-pkg"):
    return {name: file["upload-time"] for name, file in files_of(dist, project).items()}


def test_pages_and_metadata(dist, variants):
    result = variants("index", dist)
    assert result == (
        0,
        f"{dist / 'simple'}: 2 projects, 5 wheels, 2 versions with variants; 15 files changed\n",
        "",
    )
    assert json.loads((dist / DOCUMENT).read_text()) == {
        "$schema": "https://variants-schema.wheelnext.dev/peps/825/v0.1.1.json",
        "default-priorities": {"namespace": ["x86_64"]},
        "variants": {"null": {}, "x86_64_v3": V3},
    }
    documents = ["example_pkg-0.9+cu128-variants.json", DOCUMENT]
    assert json.loads((dist / documents[0]).read_text())["variants"] == {"null": {}}
    assert not list(dist.rglob("other-*-variants.json"))

    folder = dist / "simple" / "example-pkg"
    shown = links(folder / "index.html")
    page = json.loads((folder / "index.v1_json").read_text())
    assert page["meta"] == {"api-version": "1.4"}
    assert page["name"] == "example-pkg"
    assert page["versions"] == ["0.9+cu128", "1.0"]
    names = [file["filename"] for file in page["files"]]
    assert names == sorted(shown) == sorted([LOCAL, NULL, WHEEL3, PLAIN, *documents])
    for file in page["files"]:
        name, attributes = file["filename"], shown[file["filename"]]
        url, _, fragment = attributes["href"].partition("#")
        path = (folder / unquote(url)).resolve()
        if name in documents:  # one that no later run changes
            assert path == folder / "metadata" / sha256(dist / name)[:16] / name
        else:
            assert path == dist / name
        assert fragment == f"sha256={sha256(path)}"
        assert re.fullmatch(UPLOAD_TIME, attributes["data-upload-time"])
        assert file["upload-time"] == attributes["data-upload-time"]
        assert file["url"] == url
        assert file["hashes"] == {"sha256": sha256(path)}
        assert file["size"] == path.stat().st_size
        if name in documents:
            assert attributes.keys() == {"href", "data-upload-time"}
            assert file.keys() == {"filename", "url", "hashes", "size", "upload-time"}
            continue
        beside = path.with_name(f"{name}.metadata")
        assert attributes["data-core-metadata"] == f"sha256={sha256(beside)}"
        assert file["core-metadata"] == {"sha256": sha256(beside)}
        assert b"Name: example_pkg" in beside.read_bytes()
    assert shown[PLAIN]["data-requires-python"] == ">=3.8,<4"
    assert files_of(dist)[PLAIN]["requires-python"] == ">=3.8,<4"
    assert "%2B" in shown[LOCAL]["href"]

    assert links(dist / "simple" / "index.html") == {
        "example-pkg": {"href": "example-pkg/"},
        "other": {"href": "other/"},
    }
    assert json.loads((dist / "simple" / "index.v1_json").read_text()) == {
        "meta": {"api-version": "1.4"},
        "projects": [{"name": "example-pkg"}, {"name": "other"}],
    }


def test_json(dist, variants):
    result = variants("index", dist, "--json")
    assert result.err == ""
    tree = result.json
    changed = tree.pop("changed")
    assert tree == {
        "output": str(dist / "simple"),
        "projects": 2,
        "wheels": 5,
        "source-distributions": 0,
        "versions-with-variants": 2,
        "removed": [],
    }
    assert {str(dist / DOCUMENT), str(dist / "simple" / "index.html")} <= set(changed)
    assert variants("index", dist, "--json").json["changed"] == []


def test_pages_elsewhere_and_base_url(tmp_path, dist, variants):
    out = tmp_path / "web" / "simple"
    for options, base in (
        (("--base-url", "https://example.org/w/"), "https://example.org/w"),
        ((), "../../../dist"),
    ):
        assert variants("index", dist, "-o", out, *options).code == 0
        url = links(out / "other" / "index.html")[OTHER]["href"].partition("#")[0]
        assert url == f"{base}/more/{OTHER}"
    assert not (dist / "simple").exists()


def test_source_distributions(tmp_path, dist, variants):
    folder = tmp_path / "example_pkg-1.0"
    folder.mkdir()
    (folder / "PKG-INFO").write_text("Metadata-Version: 2.4\nRequires-Python: >=3.11\n")
    with tarfile.open(dist / "example_pkg-1.0.tar.gz", "w:gz") as archive:
        archive.add(folder, folder.name)
    with zipfile.ZipFile(dist / "other-2.0.zip", "w") as archive:
        archive.write(folder / "PKG-INFO", "other-2.0/PKG-INFO")
    (dist / "notes.zip").write_bytes(b"no distribution")
    (dist / "example_pkg-0.9.tar.gz").write_bytes(b"")
    result = variants("index", dist)
    assert result.code == 1
    assert "example_pkg-0.9.tar.gz: not a usable archive" in result.err
    (dist / "example_pkg-0.9.tar.gz").unlink()
    result = variants("index", dist)
    assert result.code == 0
    assert "5 wheels, 2 source distributions, 2 versions with variants" in result.out
    for project, name in (("example-pkg", "example_pkg-1.0.tar.gz"), ("other", "other-2.0.zip")):
        file = files_of(dist, project)[name]
        assert file["requires-python"] == ">=3.11"
        assert file["hashes"]["sha256"] == sha256(dist / name)
        assert "core-metadata" not in file
        assert not (dist / f"{name}.metadata").exists()


def test_everything_wrong_is_said_and_nothing_written(dist, build_wheel, variant_json, variants):
    build = partial(build_wheel, folder=dist)
    tree = variant_json("x86_64_v3", {"x86_64": {"level": ["v2"]}})
    wrong_v3 = build("example_pkg-1.0-py3-none-win_amd64-x86_64_v3.whl", variant=tree)
    mislabelled = build("a-1-py3-none-any-x.whl", variant=variant_json("y", V3))
    unnamed = build("b-1-py3-none-any.whl", variant=variant_json("y", V3))
    unlabelled = build("c-1-py3-none-any-x.whl")
    (dist / "d-1-py3-none-any.whl").write_bytes(b"no zip")
    (dist / "e-1-py3-none-any-UPPER.whl").write_bytes(b"")
    twice = build(OTHER)
    before = snapshot(dist)
    result = variants("index", dist, "--json")
    assert (result.code, result.out) == (1, "")
    assert snapshot(dist) == before
    lines = result.err.splitlines()
    assert all(line.startswith("error: ") for line in lines)
    for parts in (
        [f"variants.x86_64_v3 differs: {dist / WHEEL3}: ", f"{wrong_v3}: ", "v2", "v3"],
        [f"{mislabelled}: the filename has label 'x', but variant.json describes 'y'"],
        [f"{unnamed}: the filename has no label, but variant.json describes 'y'"],
        [f"{unlabelled}: the filename has label 'x', but the wheel has no variant.json"],
        ["d-1-py3-none-any.whl: not a usable zip archive"],
        ["'UPPER' is not a valid variant label"],
        [f"{dist / 'more' / OTHER} and {twice} have the same name"],
    ):
        assert [line for line in lines if all(part in line for part in parts)], parts
    assert len(lines) == 7


def test_directories_that_are_refused(tmp_path, dist, variants):
    assert variants("index", tmp_path / "missing").code == 2
    (tmp_path / "empty").mkdir()
    result = variants("index", tmp_path / "empty")
    assert result == (1, "", f"error: {tmp_path / 'empty'}: no wheels found\n")
    lock = dist / "simple" / f"{INVENTORY}.lock"
    lock.parent.mkdir()
    with FileLock(lock):
        result = variants("index", dist)
    message = f"{dist / 'simple'}: another variants index is writing it: wait for its end"
    assert result == (1, "", f"error: {message}\n")
    place = tmp_path / "place"
    assert variants("publish", dist, "--to", place).code == 0
    before = snapshot(place)
    result = variants("index", place)
    assert result.code == 1
    assert f"change them with variants storage {place}" in result.err
    assert snapshot(place) == before


# From run to run.


def test_what_did_not_change_is_not_read_again(dist, variants):
    variants("index", dist)
    before = snapshot(dist)
    wheel = dist / "more" / OTHER
    then = wheel.stat()
    # The same size and time: the change would not be noticed.
    wheel.write_bytes(b"x" * then.st_size)
    os.utime(wheel, ns=(then.st_mtime_ns, then.st_mtime_ns))
    assert variants("index", dist).code == 0
    assert snapshot(dist) == {**before, wheel: wheel.read_bytes()}
    assert "not a usable zip archive" in variants("index", dist, "--fresh").err
    os.utime(wheel)
    assert "not a usable zip archive" in variants("index", dist).err


@pytest.mark.parametrize("content", [b"[]", b"{}", b'{"format": 1, "body": {}}', b"\xff"])
def test_any_inventory_may_be_there(content, dist, variants):
    variants("index", dist)
    inventory = dist / "simple" / INVENTORY
    before = inventory.read_bytes()
    assert before.count(b'.whl"') == 5
    inventory.write_bytes(content)
    assert variants("index", dist).out.endswith("; 0 files changed\n")
    assert inventory.read_bytes() == before


def test_upload_times_are_those_of_the_first_run(
    tmp_path, dist, variants, build_wheel, variant_json
):
    start = datetime.now(timezone.utc)
    variants("index", dist)
    before = times(dist)
    assert len(set(before.values())) == 1
    first = datetime.fromisoformat(before[WHEEL3].replace("Z", "+00:00"))
    assert start - timedelta(seconds=1) < first <= datetime.now(timezone.utc)
    for arguments in (("--fresh",), ("--base-url", "https://files.example/"), ()):
        assert variants("index", dist, *arguments).code == 0
        assert times(dist) == before
    moved = dist.rename(tmp_path / "moved")
    assert variants("index", moved).out.endswith("; 0 files changed\n")
    (moved / "simple" / INVENTORY).unlink()
    build_wheel(WHEEL4, folder=moved, variant=variant_json("x86_64_v4", V4))
    variants("index", moved)
    after = times(moved)
    assert after.pop(WHEEL4) > before[WHEEL3]
    assert after == before  # the document's, too


def test_a_wheel_with_other_contents_is_another_file(dist, variants, build_wheel, variant_json):
    variants("index", dist)
    before = files_of(dist)
    build_wheel(WHEEL3, folder=dist, variant=variant_json("x86_64_v3", V4), description="again")
    assert variants("index", dist).code == 0
    after = files_of(dist)
    assert after[WHEEL3]["upload-time"] > before[WHEEL3]["upload-time"]
    assert after[NULL] == before[NULL]
    assert json.loads((dist / DOCUMENT).read_bytes())["variants"]["x86_64_v3"] == V4


def test_a_page_that_was_read_before_stays_right(dist, variants, build_wheel, variant_json):
    """Clients that have it fetch the metadata that it has the hash of, for a day."""
    folder = dist / "simple" / "example-pkg"

    def document(page):
        (entry,) = (each for each in page["files"] if each["filename"] == DOCUMENT)
        path = folder / unquote(entry["url"])
        return path, path.exists() and sha256(path) == entry["hashes"]["sha256"]

    def page():
        return json.loads((folder / "index.v1_json").read_text())

    variants("index", dist)
    first = page()
    os.utime(document(first)[0], (1, 1))  # listed for long
    build_wheel(WHEEL4, folder=dist, variant=variant_json("x86_64_v4", V4))
    variants("index", dist)
    (old, is_right), (new, is_new_right) = document(first), document(page())
    assert (old != new, is_right, is_new_right) == (True, True, True)
    assert "checked: 0 errors" in variants("validate", dist).out
    for path in (old, new):
        os.utime(path, (1, 1))
    build_wheel("example_pkg-1.1-py3-none-any.whl", folder=dist)
    variants("index", dist)
    assert (old.parent.exists(), new.exists()) == (False, True)


def test_deleted_variant_wheels_take_the_metadata_with_them(dist, variants):
    """P13: what validate says to do about it is enough."""
    stray = dist / "gone-1.0-variants.json"
    variants("index", dist)
    (dist / WHEEL3).unlink()
    variants("index", dist)
    assert json.loads((dist / DOCUMENT).read_bytes())["variants"] == {"null": {}}
    (dist / NULL).unlink()
    found = variants("validate", dist, "--json").json["findings"]
    remedies = [item["remedy"] for item in found if item["severity"] == "error"]
    assert remedies
    assert all(f"variants index --fresh {dist}" in remedy for remedy in remedies)
    assert variants("index", dist).code == 0
    assert not (dist / DOCUMENT).exists()
    assert not [path for path in dist.rglob("*.metadata") if not path.with_suffix("").exists()]
    assert "checked: 0 errors" in variants("validate", dist).out
    stray.write_text("of no wheel here")
    assert variants("index", dist).code == 0
    assert stray.exists()


def test_projects_that_are_gone_lose_their_files(dist, variants):
    variants("index", dist)
    foreign = dist / "simple" / "handmade"
    foreign.mkdir()
    (foreign / "index.html").write_text("<a href='x'>x</a>")
    pages = [dist / "simple/other" / name for name in ("index.html", "index.v1_json")]
    (dist / "more" / OTHER).unlink()
    removed = variants("index", dist, "--json").json["removed"]
    assert sorted(removed) == sorted(map(str, (dist / "more" / f"{OTHER}.metadata", *pages)))
    assert not (dist / "simple" / "other").exists()
    assert (foreign / "index.html").exists()
    assert "other" not in (dist / "simple" / "index.html").read_text()


def test_only_what_changed_is_written(dist, variants, build_wheel):
    variants("index", dist)
    before = snapshot(dist)
    pages = [dist / "simple/example-pkg" / name for name in ("index.html", "index.v1_json")]
    next(dist.glob("*.metadata")).unlink()
    assert variants("index", dist).out.endswith("; 1 file changed\n")
    os.utime(pages[1], (1, 1))
    pages[0].write_bytes(b"edited")
    assert variants("index", dist).out.endswith("; 1 file changed\n")
    assert snapshot(dist) == before
    build_wheel("other-2.1-py3-none-any.whl", folder=dist)
    variants("index", dist)
    assert pages[1].stat().st_mtime == 1


def test_a_damaged_page_is_not_overwritten(dist, variants):
    variants("index", dist)
    page = dist / "simple/other/index.v1_json"
    page.write_bytes(b"{")
    result = variants("index", dist)
    assert result.code == 1
    assert "upload times are kept in it: restore it, or delete it" in result.err
    assert page.read_bytes() == b"{"
    page.unlink()
    assert variants("index", dist).code == 0


def test_a_null_variant_that_is_labelled_in_zeros(tmp_path, build_wheel, variant_json, variants):
    """As torch 2.8.0 was published: the document spells the label as the filename does."""
    schema = {"$schema": "https://variants-schema.wheelnext.dev/v0.0.3.json"}
    for label, properties in (("00000000", {}), ("x86_64_v3", V3)):
        variant = {**variant_json(label), **schema, "variants": {label: properties}}
        path = build_wheel(f"example_pkg-1.0-py3-none-any-{label}.whl", variant=variant)
        assert "problem" not in variants("inspect", path).out
    result = variants("index", tmp_path)
    assert result.code == 0, result.err
    tree = json.loads((tmp_path / DOCUMENT).read_text())
    assert set(tree["variants"]) == {"00000000", "x86_64_v3"}
    assert "label-mismatch" not in variants("validate", tmp_path).out
