"""Releases of GitHub as storage: faults of the server, kills, names that are not possible."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
import storage_publishers
from storage_publishers import Reader, publish, releases_in
from wheel_files import make_variant_json

from support.github_server import TOKEN, add_release, github_server
from variants_cli.publishing.errors import Conflict, PublishError
from variants_cli.publishing.places import open_target

PLACE = "github-releases:octo/demo@v1"
WHEEL = "demo-1.0+local-py3-none-any-v3.whl"


@pytest.fixture
def github(monkeypatch):
    monkeypatch.delenv("GH_TOKEN", raising=False)
    with github_server() as running:
        for name, value in running.environ().items():
            monkeypatch.setenv(name, value)
        yield running


@pytest.fixture
def dist(tmp_path, build_wheel):
    folder = tmp_path / "dist"
    tree = make_variant_json("v3", {"x86_64": {"level": ["v3"]}})
    build_wheel(WHEEL, folder=folder, variant=tree, files={"demo/data": os.urandom(300_000).hex()})
    build_wheel("demo-1.0+local-py3-none-any.whl", folder=folder)
    return folder


def opened(tmp_path, place=PLACE, **options):
    target = open_target(place, os.environ, pages=f"github-pages:{tmp_path / 'pages'}", **options)
    target._files._assets._api._pause = 0.01  # the pauses are for GitHub
    return target


def check(github, tmp_path, dist):
    """Everything is there, once, and the page lists it where it is."""
    page = Reader(f"github-pages:{tmp_path / 'pages'}").page("demo")
    contents = {asset["browser_download_url"]: asset["content"] for asset in github.assets.values()}
    for file in page.files:
        if file.filename.endswith(".json"):
            assert file.url.startswith("https://place.invalid/files/demo/")
            continue
        assert contents[file.url] == (dist / file.filename).read_bytes()
        digest = hashlib.sha256(contents[file.url + ".metadata"]).hexdigest()
        assert file.core_metadata == {"sha256": digest}
    assert len(page.files) == 3
    assert sorted(github.names().values()) == ["uploaded"] * 4
    assert (tmp_path / "pages" / ".nojekyll").exists()


def test_release(github, tmp_path, dist):
    publish(None, dist, opened(tmp_path))
    check(github, tmp_path, dist)
    uploads = [path for method, path in github.requests if method == "POST"]
    assert len(uploads) == 4
    publish(None, dist, opened(tmp_path))
    assert len([path for method, path in github.requests if method == "POST"]) == 4


def test_release_of_a_pushed_tag_is_made(github, tmp_path, dist):
    github.releases.clear()
    publish(None, dist, opened(tmp_path))
    check(github, tmp_path, dist)
    github.releases.clear()
    github.tags.clear()
    with pytest.raises(PublishError, match=r"there is no tag v1, .*push the tag first"):
        publish(None, dist, opened(tmp_path))


@pytest.mark.parametrize("fault", ["half", "lost", 502, 503, 429])
@pytest.mark.parametrize("digests", [True, False])
def test_uploads_that_break_off(github, tmp_path, dist, fault, digests):
    github.digests = digests
    tried = []

    def once(method, path, number):
        if method != "POST" or path in tried:
            return None
        tried.append(path)
        return fault

    github.fault = once
    publish(None, dist, opened(tmp_path))
    assert len(tried) == 4
    check(github, tmp_path, dist)


@pytest.mark.parametrize("status", [500, 502, 429])
def test_answers_that_are_tried_again(github, tmp_path, dist, status):
    github.fault = lambda method, path, number: status if number % 2 and method != "POST" else None
    publish(None, dist, opened(tmp_path))
    check(github, tmp_path, dist)


def test_progress_of_an_upload_that_starts_again(github, tmp_path, dist):
    target = opened(tmp_path)
    releases = releases_in(dist)
    target.probe(releases)
    file = next(file for file in releases[0].files if file.filename == WHEEL)
    github.fault = lambda method, path, number: "half" if number == 7 else None
    sent = []
    target.upload(file, sent.append)
    assert sum(sent) == file.distribution.size


@pytest.mark.parametrize("number", range(1, 9))
def test_killed_and_resumed(github, tmp_path, dist, number):
    code = (
        "import storage_publishers as s, os, sys; from variants_cli.publishing.places import "
        "open_target; s.publish(None, sys.argv[1], open_target(sys.argv[2], os.environ, "
        "pages=sys.argv[3]))"
    )
    pages = f"github-pages:{tmp_path / 'pages'}"
    publisher = subprocess.Popen(
        [sys.executable, "-c", code, dist, PLACE, pages],
        cwd=Path(storage_publishers.__file__).parent,
    )

    def kill(method, path, count):
        if count != number:
            return None
        publisher.kill()
        publisher.wait()
        return "half" if method == "POST" else None

    github.fault = kill
    publisher.communicate()
    github.fault = None
    # The last request looks once more for what the page, which is written by then, lists.
    assert (Reader(pages).page("demo") is None) == (number < 8)
    publish(None, dist, opened(tmp_path))
    check(github, tmp_path, dist)


@pytest.mark.parametrize("digests", [True, False])
def test_another_asset_of_the_same_name(github, tmp_path, dist, digests):
    github.digests = digests
    publish(None, dist, opened(tmp_path))
    path = dist / "demo-1.0+local-py3-none-any.whl"
    data = bytearray(path.read_bytes())
    data[-1:] = b""
    for asset in github.assets.values():
        if asset["name"] == path.name:
            changed = bytes(len(asset["content"]))
            asset["content"] = changed
            asset["digest"] = f"sha256:{hashlib.sha256(changed).hexdigest()}" if digests else None
    with pytest.raises(Conflict, match="a published file cannot change") as raised:
        opened(tmp_path).probe(releases_in(dist))
    assert "/octo/demo/releases/download/v1/demo-1.0%2Blocal-py3" in str(raised.value)


def test_name_that_is_renamed(github, tmp_path, build_wheel):
    build_wheel("demo-1!2.0-py3-none-any.whl", folder=tmp_path / "epoch")
    with pytest.raises(PublishError, match=r"GitHub renames demo-1!2\.0-py3-none-any\.whl"):
        publish(None, tmp_path / "epoch", opened(tmp_path))
    assert not github.assets


@pytest.mark.parametrize(
    ("place", "environ", "message"),
    [
        ("github-releases:octo/demo", {}, "is not github-releases:OWNER/REPOSITORY@TAG"),
        ("github-releases:octo@v1", {}, "is not github-releases:OWNER/REPOSITORY@TAG"),
        (PLACE, {"GITHUB_TOKEN": ""}, "set GH_TOKEN to a token that may write contents"),
        (PLACE, {"GH_TOKEN": "wrong"}, r"Bad credentials, status 401\): may the token"),
        ("github-releases:octo/none@v1", {}, "there is no tag v1, or the token cannot read"),
    ],
)
def test_what_is_refused_at_once(github, tmp_path, dist, monkeypatch, place, environ, message):
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(PublishError, match=message) as raised:
        opened(tmp_path, place).probe(releases_in(dist))
    assert TOKEN not in str(raised.value)
    assert not github.assets
    assert not (tmp_path / "pages").exists()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"draft": True}, "the release is a draft: publish it first"),
        ({"immutable": True}, "the release is immutable"),
        ({"upload_url": "http://elsewhere.example/x{?name}"}, "not below the same domain"),
        ({"upload_url": "https://127.0.0.1/x{?name}"}, "not below the same domain"),
    ],
)
def test_releases_that_cannot_be_changed(github, tmp_path, dist, values, message):
    add_release(github, "v1", **values)
    with pytest.raises(PublishError, match=message):
        publish(None, dist, opened(tmp_path))


def test_places_that_do_not_fit(tmp_path):
    with pytest.raises(PublishError, match="say with --pages where the pages"):
        open_target(PLACE, {"GITHUB_TOKEN": "x"})
    with pytest.raises(PublishError, match="--pages is for github-releases"):
        open_target(str(tmp_path), {}, pages="pages")
    with pytest.raises(PublishError, match="is neither a directory nor"):
        open_target("ftp://x/y", {})


def test_files_that_git_does_not_push(tmp_path, build_wheel):
    folder = tmp_path / "dist"
    path = build_wheel("demo-1.0-py3-none-any.whl", folder=folder)
    releases = releases_in(folder)
    with path.open("ab") as stream:
        stream.truncate(101 * 1024**2)
    from dataclasses import replace

    file = releases[0].files[0]
    item = replace(file.distribution, size=path.stat().st_size)
    large = [replace(releases[0], files=(replace(file, distribution=item),))]
    with pytest.raises(PublishError, match="105,906,176 bytes: GitHub refuses files of more than"):
        open_target(f"github-pages:{tmp_path / 'pages'}", {}).probe(large)


def test_the_lock_of_a_checkout_is_not_pushed(tmp_path, dist):
    pages = tmp_path / "pages"
    subprocess.run(["git", "init", "-q", pages], check=True)
    publish(f"github-pages:{pages}", dist)
    names = sorted(path.name for path in pages.iterdir())
    assert names == [".git", ".nojekyll", "files", "simple"]
    Reader(f"github-pages:{pages}").settled("demo")
