import hashlib
import html.parser
import json
import os
import re
import tarfile
import time
import zipfile
from functools import partial
from urllib.parse import unquote

import pytest
from filelock import FileLock
from packaging.version import Version

from pep_variants.formats.reader import read_metadata
from variants_cli.indexing.static_index import INVENTORY

V3 = {"x86_64": {"level": ["v3"]}}
V4 = {"x86_64": {"level": ["v4"]}}
UPLOAD_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"
OLD = "https://variants-schema.wheelnext.dev/"


@pytest.fixture
def dist(tmp_path, build_wheel, variant_json):
    """A directory with two projects, one of them with variants of two versions."""
    folder = tmp_path / "dist"
    build = partial(build_wheel, folder=folder)
    build("example_pkg-1.0-py3-none-any.whl", requires_python=">=3.8,<4")
    build("example_pkg-1.0-py3-none-any-null.whl", variant=variant_json("null"))
    build("example_pkg-1.0-py3-none-any-x86_64_v3.whl", variant=variant_json("x86_64_v3", V3))
    build("example_pkg-1.0-py3-none-any-x86_64_v4.whl", variant=variant_json("x86_64_v4", V4))
    build("example_pkg-0.9+cu128-py3-none-any-null.whl", variant=variant_json("null"))
    build("other-2.0-py3-none-any.whl", folder=folder / "more")
    return folder


class Links(html.parser.HTMLParser):
    """What a client sees of an HTML page: URL, text and attributes of each link."""

    def __init__(self, text):
        super().__init__()
        self.found = {}
        self.current = None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag == "a":
            self.current = dict(attrs)

    def handle_data(self, data):
        if self.current is not None:
            self.found[data] = self.current
            self.current = None


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def snapshot(folder):
    # The inventory says when files were changed, too; its lock stays, empty.
    own = (INVENTORY, f"{INVENTORY}.lock")
    files = (path for path in folder.rglob("*") if path.is_file() and path.name not in own)
    return {path: path.read_bytes() for path in files}


def aged(folder, seconds=60):
    """Make everything in *folder* look as if it had lain there for a while."""
    then = time.time() - seconds
    for path in folder.rglob("*.whl"):
        os.utime(path, (then, then))


def test_metadata_of_every_version(dist, variants):
    result = variants("index", dist)
    assert (result.code, result.err) == (0, "")
    assert result.out == (
        f"{dist / 'simple'}: 2 projects, 6 wheels, 2 versions with variants; 14 files changed\n"
    )
    written = json.loads((dist / "example_pkg-1.0-variants.json").read_text())
    assert written == {
        "$schema": "https://variants-schema.wheelnext.dev/peps/825/v0.1.1.json",
        "default-priorities": {"namespace": ["x86_64"]},
        "variants": {"null": {}, "x86_64_v3": V3, "x86_64_v4": V4},
    }
    written = json.loads((dist / "example_pkg-0.9+cu128-variants.json").read_text())
    assert written["variants"] == {"null": {}}
    assert not list(dist.rglob("other-*-variants.json"))


def test_html_page(dist, variants):
    variants("index", dist)
    page = dist / "simple" / "example-pkg" / "index.html"
    links = Links(page.read_text()).found
    assert sorted(links) == [
        "example_pkg-0.9+cu128-py3-none-any-null.whl",
        "example_pkg-0.9+cu128-variants.json",
        "example_pkg-1.0-py3-none-any-null.whl",
        "example_pkg-1.0-py3-none-any-x86_64_v3.whl",
        "example_pkg-1.0-py3-none-any-x86_64_v4.whl",
        "example_pkg-1.0-py3-none-any.whl",
        "example_pkg-1.0-variants.json",
    ]
    for name, attributes in links.items():
        url, _, fragment = attributes["href"].partition("#")
        file = (page.parent / unquote(url)).resolve()
        assert file == dist / name
        assert fragment == f"sha256={sha256(file)}"
        assert re.fullmatch(UPLOAD_TIME, attributes["data-upload-time"])
        if name.endswith(".json"):
            assert attributes.keys() == {"href", "data-upload-time"}
            continue
        core_metadata = file.with_name(f"{name}.metadata")
        assert attributes["data-core-metadata"] == f"sha256={sha256(core_metadata)}"
        assert b"Name: example_pkg" in core_metadata.read_bytes()
    plain = links["example_pkg-1.0-py3-none-any.whl"]
    assert plain["data-requires-python"] == ">=3.8,<4"
    assert "%2B" in links["example_pkg-0.9+cu128-py3-none-any-null.whl"]["href"]
    assert Links((dist / "simple" / "index.html").read_text()).found == {
        "example-pkg": {"href": "example-pkg/"},
        "other": {"href": "other/"},
    }


def test_json_page(dist, variants):
    variants("index", dist)
    folder = dist / "simple" / "example-pkg"
    page = json.loads((folder / "index.v1_json").read_text())
    assert page["meta"] == {"api-version": "1.4"}
    assert page["name"] == "example-pkg"
    assert page["versions"] == ["0.9+cu128", "1.0"]
    links = Links((folder / "index.html").read_text()).found
    assert [file["filename"] for file in page["files"]] == sorted(links)
    for file in page["files"]:
        url, _, fragment = links[file["filename"]]["href"].partition("#sha256=")
        assert file["url"] == url
        assert file["hashes"] == {"sha256": fragment}
        assert file["size"] == (dist / file["filename"]).stat().st_size
    assert page["files"][-2]["requires-python"] == ">=3.8,<4"
    assert page["files"][-2]["core-metadata"]["sha256"]
    assert page["files"][-1].keys() == {"filename", "url", "hashes", "size", "upload-time"}
    assert {re.sub(UPLOAD_TIME, "T", file["upload-time"]) for file in page["files"]} == {"T"}
    assert json.loads((dist / "simple" / "index.v1_json").read_text()) == {
        "meta": {"api-version": "1.4"},
        "projects": [{"name": "example-pkg"}, {"name": "other"}],
    }


def test_second_run_changes_nothing(dist, variants):
    variants("index", dist)
    before = snapshot(dist)
    times = {path: path.stat().st_mtime_ns for path in before}
    result = variants("index", dist)
    assert result.out.endswith("; 0 files changed\n")
    assert snapshot(dist) == before
    assert {path: path.stat().st_mtime_ns for path in before} == times


def test_pages_elsewhere_and_base_url(tmp_path, dist, variants):
    out = tmp_path / "web" / "simple"
    result = variants("index", dist, "-o", out, "--base-url", "https://example.org/w/")
    assert result.code == 0
    links = Links((out / "other" / "index.html").read_text()).found
    url = links["other-2.0-py3-none-any.whl"]["href"].partition("#")[0]
    assert url == "https://example.org/w/more/other-2.0-py3-none-any.whl"
    assert not (dist / "simple").exists()

    variants("index", dist, "-o", out)
    links = Links((out / "other" / "index.html").read_text()).found
    url = links["other-2.0-py3-none-any.whl"]["href"].partition("#")[0]
    assert url == "../../../dist/more/other-2.0-py3-none-any.whl"


def test_projects_that_are_gone_lose_their_page(dist, variants):
    variants("index", dist)
    foreign = dist / "simple" / "handmade"
    foreign.mkdir()
    (foreign / "index.html").write_text("<a href='x'>x</a>")
    (dist / "more" / "other-2.0-py3-none-any.whl").unlink()
    variants("index", dist)
    assert not (dist / "simple" / "other").exists()
    assert (foreign / "index.html").exists()
    assert "other" not in (dist / "simple" / "index.html").read_text()


def test_what_did_not_change_is_not_read_again(dist, variants, build_wheel):
    aged(dist)
    variants("index", dist)
    before = snapshot(dist)
    wheel = dist / "more" / "other-2.0-py3-none-any.whl"
    then = wheel.stat()
    # The same size and time: the change would not be noticed.
    wheel.write_bytes(b"x" * then.st_size)
    os.utime(wheel, ns=(then.st_mtime_ns, then.st_mtime_ns))
    assert variants("index", dist).code == 0
    assert snapshot(dist) == {**before, wheel: wheel.read_bytes()}
    assert "not a usable zip archive" in variants("index", dist, "--fresh").err
    os.utime(wheel)
    assert "not a usable zip archive" in variants("index", dist).err


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"format": 1, "body": {}}', b"\xff"])
def test_any_inventory_may_be_there(content, dist, variants):
    aged(dist)
    variants("index", dist)
    inventory = dist / "simple" / INVENTORY
    before = inventory.read_bytes()
    assert before.count(b'.whl"') == 6
    inventory.write_bytes(content)
    result = variants("index", dist)
    assert result.out.endswith("; 0 files changed\n")
    assert inventory.read_bytes() == before


def test_metadata_that_is_gone_is_written_again(dist, variants):
    aged(dist)
    variants("index", dist)
    before = snapshot(dist)
    next(dist.rglob("*.metadata")).unlink()
    assert variants("index", dist).out.endswith("; 1 file changed\n")
    assert snapshot(dist) == before


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
    assert "6 wheels, 2 source distributions, 2 versions with variants" in result.out
    for project, filename in (
        ("example-pkg", "example_pkg-1.0.tar.gz"),
        ("other", "other-2.0.zip"),
    ):
        page = json.loads((dist / "simple" / project / "index.v1_json").read_text())
        (file,) = (file for file in page["files"] if file["filename"] == filename)
        assert file["requires-python"] == ">=3.11"
        assert file["hashes"]["sha256"] == sha256(dist / filename)
        assert "core-metadata" not in file
        assert not (dist / f"{filename}.metadata").exists()


def test_everything_wrong_is_said_and_nothing_written(dist, build_wheel, variant_json, variants):
    build = partial(build_wheel, folder=dist)
    other_v3 = {"x86_64": {"level": ["v2"]}}
    wrong_v3 = build(
        "example_pkg-1.0-py3-none-win_amd64-x86_64_v3.whl",
        variant=variant_json("x86_64_v3", other_v3),
    )
    mislabelled = build("a-1-py3-none-any-x.whl", variant=variant_json("y", V3))
    unnamed = build("b-1-py3-none-any.whl", variant=variant_json("y", V3))
    unlabelled = build("c-1-py3-none-any-x.whl")
    (dist / "d-1-py3-none-any.whl").write_bytes(b"no zip")
    (dist / "e-1-py3-none-any-UPPER.whl").write_bytes(b"")
    twice = build("other-2.0-py3-none-any.whl")
    before = snapshot(dist)
    result = variants("index", dist)
    assert (result.code, result.out) == (1, "")
    assert snapshot(dist) == before
    lines = result.err.splitlines()
    assert all(line.startswith("error: ") for line in lines)
    right_v3 = dist / "example_pkg-1.0-py3-none-any-x86_64_v3.whl"
    for parts in (
        [f"variants.x86_64_v3 differs: {right_v3}: ", f"{wrong_v3}: ", "v2", "v3"],
        [f"{mislabelled}: the filename has label 'x', but variant.json describes 'y'"],
        [f"{unnamed}: the filename has no label, but variant.json describes 'y'"],
        [f"{unlabelled}: the filename has label 'x', but the wheel has no variant.json"],
        ["d-1-py3-none-any.whl: not a usable zip archive"],
        ["'UPPER' is not a valid variant label"],
        [f"{dist / 'more' / twice.name} and {twice} have the same name"],
    ):
        assert [line for line in lines if all(part in line for part in parts)], parts
    assert len(lines) == 7


def test_no_wheels(tmp_path, variants):
    result = variants("index", tmp_path)
    assert result == (1, "", f"error: {tmp_path}: no wheels found\n")
    assert variants("index", tmp_path / "missing").code == 2


def test_contradiction_between_later_wheels_names_these_two(
    tmp_path, build_wheel, variant_json, variants
):
    for tag, level in (("a", "v1"), ("b", "v2"), ("c", "v3")):
        label = "other" if tag == "a" else "same"
        build_wheel(
            f"example_pkg-1.0-py3-none-{tag}-{label}.whl",
            variant=variant_json(label, {"x86_64": {"level": [level]}}),
        )
    result = variants("index", tmp_path)
    assert "none-a-" not in result.err
    assert "none-b-same" in result.err
    assert "none-c-same" in result.err


def indexed(tmp_path, build_wheel, variants, trees):
    """Index one wheel per tree and return what was written, as a tree and as read."""
    for number, tree in enumerate(trees):
        (label,) = tree["variants"]
        label = "null" if label == "00000000" else label
        build_wheel(f"p-1-{number}-py3-none-any-{label}.whl", variant=tree)
    result = variants("index", tmp_path)
    assert result.code == 0, result.err
    data = (tmp_path / "p-1-variants.json").read_text()
    return json.loads(data), read_metadata(data, "")


def test_namespaces_and_providers_of_the_wheels_are_joined(
    tmp_path, build_wheel, variant_json, variants
):
    provider = {"a": {"requires": ["acme"]}}
    more = {**provider, "b": {"static-properties": {"f": ["1"]}}}
    first = variant_json("x", {"a": {"f": ["1"]}}, ("a",), providers=provider)
    second = variant_json("y", {"b": {"f": ["1"]}}, ("a", "b"), providers=more)
    for tree in (first, second):
        tree["$schema"] = f"{OLD}v0.2.0.json"
    tree, _ = indexed(tmp_path, build_wheel, variants, [first, second])
    assert tree["$schema"] == f"{OLD}v0.2.0.json"
    assert tree["default-priorities"] == {"namespace": ["a", "b"]}
    assert tree["providers"] == more
    assert list(tree["variants"]) == ["x", "y"]


def test_old_wheels_get_new_metadata_where_it_says_the_same(
    tmp_path, build_wheel, variant_json, variants
):
    providers = {
        "a": {"requires": ["acme>=1"], "plugin-api": "acme", "enable-if": "os_name == 'posix'"}
    }
    trees = [
        variant_json(label, {"a": {"f": [label]}}, ("a",), providers=providers)
        for label in ("x", "y")
    ]
    for tree in trees:
        tree["$schema"] = f"{OLD}v0.0.3.json"
    tree, read = indexed(tmp_path, build_wheel, variants, trees)
    assert tree["$schema"] == f"{OLD}v0.2.0.json"
    assert tree["providers"]["a"]["requires"] == ["acme>=1; os_name == 'posix'"]
    assert set(read.variants) == {"x", "y"}


@pytest.mark.parametrize("schema", [OLD, f"{OLD}v0.0.2.json", f"{OLD}v0.0.3.json"])
def test_old_wheels_stay_old_where_new_metadata_cannot_say_it(
    tmp_path, build_wheel, variant_json, variants, schema
):
    null = "00000000" if schema == OLD else "null"
    trees = [
        variant_json(
            label, {"a": {"f": [label]}} if label == "x" else {}, ("a", "b")[:count],
            providers={"a": {"requires": ["acme"]}},
        )
        for label, count in (("x", 1), (null, 2))
    ]  # fmt: skip
    for tree in trees:
        tree["$schema"] = schema
        tree["default-priorities"]["feature"] = {"a": ["f", "g"]}
        tree["default-priorities"]["property"] = {"a": {"f": ["y", "x"]}}
    tree, read = indexed(tmp_path, build_wheel, variants, trees)
    assert tree["$schema"] == schema
    assert tree["default-priorities"] == {
        "namespace": ["a", "b"],
        "feature": {"a": ["f", "g"]},
        "property": {"a": {"f": ["y", "x"]}},
    }
    assert read.variants == {"x": {"a": {"f": ("x",)}}, "null": {}}


def test_generations_that_cannot_be_joined(tmp_path, build_wheel, variant_json, variants):
    old = variant_json("x", {"a": {"f": ["1"]}}, ("a",))
    old["$schema"] = f"{OLD}peps/825/v0.1.0.json"
    old["default-priorities"]["feature"] = {"a": ["f"]}
    build_wheel("p-1-1-py3-none-any-x.whl", variant=old)
    build_wheel("p-1-2-py3-none-any-y.whl", variant=variant_json("y", {"a": {"f": ["2"]}}, ("a",)))
    result = variants("index", tmp_path)
    assert result.code == 1
    assert "default-priorities.feature: wheels of several format versions cannot" in result.err


def test_versions_are_in_order(tmp_path, build_wheel, variants):
    versions = ["1.10", "1.9", "2.0rc1", "1.0.post1"]
    for version in versions:
        build_wheel(f"p-{version}-py3-none-any.whl")
    variants("index", tmp_path)
    page = json.loads((tmp_path / "simple" / "p" / "index.v1_json").read_text())
    found = [file["filename"].split("-")[1] for file in page["files"]]
    assert found == page["versions"] == sorted(versions, key=Version)


ZEROS = {"$schema": f"{OLD}v0.0.3.json", "variants": {"00000000": {}}}


def test_a_null_variant_that_is_labelled_in_zeros(tmp_path, build_wheel, variant_json, variants):
    """As the field published torch 2.8.0: the document spells the label as the filename does."""
    build = partial(build_wheel, folder=tmp_path / "dist")
    zeros = build(
        "example_pkg-1.0-py3-none-any-00000000.whl",
        variant={**variant_json("00000000"), **ZEROS},
    )
    build(
        "example_pkg-1.0-py3-none-any-x86_64_v3.whl",
        variant={**variant_json("x86_64_v3", V3), "$schema": ZEROS["$schema"]},
    )
    result = variants("index", tmp_path / "dist")
    assert result.code == 0, result.err
    (path,) = (tmp_path / "dist").glob("*-variants.json")
    tree = json.loads(path.read_text())
    assert set(tree["variants"]) == {"00000000", "x86_64_v3"}
    metadata = read_metadata(path.read_bytes(), path.name)
    assert metadata.label_of("00000000") == "null"
    done = variants("validate", tmp_path / "dist")
    assert "label-mismatch" not in done.out, done.out
    assert "problem" not in variants("inspect", zeros).out


def test_zeros_beside_another_format_version(tmp_path, build_wheel, variant_json, variants):
    build = partial(build_wheel, folder=tmp_path / "dist")
    build(
        "example_pkg-1.0-py3-none-any-00000000.whl",
        variant={**variant_json("00000000"), **ZEROS},
    )
    build("example_pkg-1.0-py3-none-any-x86_64_v3.whl", variant=variant_json("x86_64_v3", V3))
    result = variants("index", tmp_path / "dist")
    assert result.code == 1
    assert "variants.00000000: wheels of several format versions" in result.err
    assert "label null" in result.err


def test_one_run_at_a_time(dist, variants):
    lock = dist / "simple" / f"{INVENTORY}.lock"
    lock.parent.mkdir()
    with FileLock(lock):
        result = variants("index", dist)
    assert result.code == 1
    assert result.err == (
        f"error: {dist / 'simple'}: another variants index is writing it: wait for its end\n"
    )
    assert variants("index", dist).code == 0


def test_a_published_directory_is_left_alone(dist, variants, tmp_path):
    place = tmp_path / "place"
    assert variants("publish", dist, "--to", place).code == 0
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    result = variants("index", place)
    assert result.code == 1
    assert f"change them with variants storage {place}" in result.err
    assert {path: path.read_bytes() for path in place.rglob("*") if path.is_file()} == before
