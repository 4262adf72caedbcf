"""`variants publish --to` and `variants storage` as their users run them."""

import json
import re

import pytest
from storage_publishers import Reader
from wheel_files import make_variant_json

from support.loopback import served_folder
from variants_cli.publishing.stored_index import StoredIndex
from variants_cli.publishing.stores import open_store

DOCUMENT = "demo-1.0-variants.json"


@pytest.fixture
def dist(tmp_path, build_wheel):
    folder = tmp_path / "dist"
    for label in ("v3", "v4", "null"):
        properties = {} if label == "null" else {"x86_64": {"level": [label]}}
        build_wheel(
            f"demo-1.0-py3-none-any-{label}.whl",
            folder=folder,
            variant=make_variant_json(label, properties),
        )
    build_wheel("demo-0.9-py3-none-any.whl", folder=folder)
    build_wheel("demo-1.0-py3-none-any.whl", folder=folder)
    return folder


@pytest.fixture
def published(variants, place, dist):
    result = variants("publish", dist, "--to", place)
    assert result.code == 0, result.err
    return StoredIndex(open_store(place))


def listed(variants, place):
    return {
        file["filename"]: file
        for file in variants("storage", place, "demo", "--json").json["files"]
    }


def test_publish(variants, place, dist, tmp_path):
    result = variants("publish", dist, "--to", place)
    assert result.code == 0, result.err
    assert result.out.endswith(f"\n5 files uploaded, 0 there before, verified: {place}\n")
    assert Reader(place).settled("demo") == {DOCUMENT: {"v3", "v4", "null"}}
    result = variants("publish", dist, "--to", place)
    assert result.out.endswith(f"\n0 files uploaded, 5 there before, verified: {place}\n")
    tree = variants("publish", dist, "--to", place, "--dry-run", "--json").json
    assert {file["state"] for file in tree["files"]} == {"already there"}


def test_dry_run_writes_nothing(variants, place, dist):
    result = variants("publish", dist, "--to", place, "--dry-run")
    assert result.code == 0, result.err
    assert re.search(r"demo-1.0-py3-none-any-v3.whl: .*, to be uploaded\n", result.out)
    assert list(open_store(place).entries("")) == []


@pytest.mark.parametrize("inside", ["", "sub"])
def test_a_directory_cannot_be_published_to_itself(variants, dist, inside):
    result = variants("publish", dist, "--to", dist / inside)
    assert result.code == 2
    assert "is in " in result.err
    assert "variants index" in result.err
    assert not (dist / "simple").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--to", "x", "--repository-url", "https://x.example"], "exclude each other"),
        (["--to", "x", "--repository", "pypi"], "exclude each other"),
        (["--to", "ftp://x"], "ftp://x: is neither a directory nor an s3://, gs:// or az:// URL"),
        (["--to", "s3://"], "is neither a directory nor an s3://, gs:// or az:// URL"),
    ],
)
def test_places(variants, dist, options, message):
    result = variants("publish", dist, *options)
    assert result.code in (1, 2)
    assert message in result.err
    assert result.err.count("\n") == 1


def test_yank(variants, published, place):
    result = variants(
        "storage", place, "demo", "--yank", "demo-1.0-*=broken", "--yank", "demo-0.9*"
    )
    assert (result.code, result.out) == (0, "demo: 5 files changed\n")
    files = listed(variants, place)
    yanked = {name for name, file in files.items() if file["yanked"] == "broken"}
    assert len(yanked) == 4
    assert files["demo-0.9-py3-none-any.whl"]["yanked"] == ""
    assert files[DOCUMENT]["yanked"] is None
    assert Reader(place).settled("demo")
    html = Reader(place).page("demo", "index.html").files
    assert {file.filename for file in html if file.yanked == "broken"} == yanked
    result = variants("storage", place, "Demo", "--unyank", "demo-1.0-py3-none-any.whl")
    assert result.out == "demo: 1 file changed\n"
    assert listed(variants, place)["demo-1.0-py3-none-any.whl"]["yanked"] is None
    again = variants("storage", place, "demo", "--unyank", "demo-1.0-py3-none-any.whl")
    assert again.out == "demo: 0 files changed\n"


def test_remove(variants, published, place, dist):
    result = variants("storage", place, "demo", "--remove", "*-v4.whl", "--remove", "demo-0.9*")
    assert (result.code, result.out) == (0, "demo: 3 files changed\n")
    assert Reader(place).settled("demo") == {DOCUMENT: {"v3", "null"}}
    assert (
        variants("storage", place, "demo", "--remove", "*-v3.whl", "--remove", "*-null.whl").code
        == 0
    )
    assert Reader(place).settled("demo") == {}
    assert list(listed(variants, place)) == ["demo-1.0-py3-none-any.whl"]
    # Published again, it is there again.
    assert variants("publish", dist, "--to", place).code == 0
    assert Reader(place).settled("demo") == {DOCUMENT: {"v3", "v4", "null"}}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["demo", "--yank", "demo-2.0*"], "'demo-2.0*': no file of demo has this name"),
        (["demo", "--unyank", DOCUMENT], f"'{DOCUMENT}': no file of demo has this name"),
        (["demo", "--remove", DOCUMENT], f"'{DOCUMENT}': no file of demo has this name"),
        (["other", "--yank", "x"], "there is no project 'other'"),
        (["other"], "there is no project other"),
        (["--yank", "x"], "which project?"),
    ],
)
def test_what_is_not_there(variants, published, place, arguments, message):
    before = Reader(place).get("simple/demo/index.v1_json")
    result = variants("storage", place, *arguments)
    assert result.code in (1, 2)
    assert message in result.err
    assert Reader(place).get("simple/demo/index.v1_json") == before


def test_lists(variants, published, place):
    assert variants("storage", place).out.split() == [
        "demo",
        "6",
        f"{sum(file.size for file in Reader(place).page('demo').files):,}",
        "active",
    ]
    assert variants("storage", place, "--json").json == [{"name": "demo", "files": 6}]
    assert variants("storage", place, "demo").out.count("\n") == 6


def test_json_of_publish(variants, place, dist):
    tree = json.loads(variants("publish", dist, "--to", place, "--json").out)
    assert tree["target"] == place
    assert [entry["filename"] for entry in tree["metadata"]] == [DOCUMENT]
    assert {file["state"] for file in tree["files"]} == {"uploaded"}


def test_validate_refuses_the_directory(variants, tmp_path, dist):
    """It has files that no page lists any more; what is served is looked at."""
    place = tmp_path / "place"
    assert variants("publish", dist, "--to", place).code == 0
    result = variants("validate", place)
    assert result.code == 1
    assert f"{place} was published with variants publish --to" in result.err
    with served_folder(place) as url:
        result = variants("validate", f"{url}simple/demo/")
    assert (result.code, result.err) == (0, "")
    assert result.out.endswith(": 0 errors, 0 warnings\n")


def test_an_index_that_was_made_before_is_continued(variants, tmp_path, dist, build_wheel):
    assert variants("index", dist).code == 0
    before = Reader(dist).page("demo")
    tree = make_variant_json("v2", {"x86_64": {"level": ["v2"]}})
    build_wheel("demo-1.0-py3-none-any-v2.whl", folder=tmp_path / "more", variant=tree)
    assert variants("publish", tmp_path / "more", "--to", dist).code == 0
    assert Reader(dist).settled("demo") == {DOCUMENT: {"v2", "v3", "v4", "null"}}
    after = {file.filename: file for file in Reader(dist).page("demo").files}
    assert all(after[file.filename] == file for file in before.files if file.filename != DOCUMENT)
