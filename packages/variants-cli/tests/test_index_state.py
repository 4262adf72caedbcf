"""What an index keeps from run to run: upload times; what goes."""

import http.server
import json
import os
import re
import subprocess
import sys
import time
from datetime import datetime, timedelta, timezone
from functools import partial

import pytest

from support.loopback import serving
from variants_cli.indexing.static_index import INVENTORY

V3 = {"x86_64": {"level": ["v3"]}}
V4 = {"x86_64": {"level": ["v4"]}}
PLAIN = "example_pkg-1.0-py3-none-any.whl"
NULL = "example_pkg-1.0-py3-none-any-null.whl"
WHEEL = "example_pkg-1.0-py3-none-any-x86_64_v3.whl"
DOCUMENT = "example_pkg-1.0-variants.json"
OTHER = "other-2.0-py3-none-any.whl"


@pytest.fixture
def dist(tmp_path, build_wheel, variant_json):
    folder = tmp_path / "dist"
    build = partial(build_wheel, folder=folder)
    build(PLAIN)
    build(NULL, variant=variant_json("null"))
    build(WHEEL, variant=variant_json("x86_64_v3", V3))
    build(OTHER)
    aged(folder)
    return folder


def aged(folder):
    """Make the wheels look as if they had lain there for a while, so that they are cached."""
    then = time.time() - 60
    for path in folder.rglob("*.whl"):
        os.utime(path, (then, then))


def page_of(dist, project="example-pkg", output=None):
    return json.loads(((output or dist / "simple") / project / "index.v1_json").read_bytes())


def files_of(dist, project="example-pkg", output=None):
    return {file["filename"]: file for file in page_of(dist, project, output)["files"]}


def times(dist, **options):
    return {name: file["upload-time"] for name, file in files_of(dist, **options).items()}


def test_upload_times_are_those_of_the_first_run(dist, variants, build_wheel, variant_json):
    start = datetime.now(timezone.utc)
    variants("index", dist)
    before = times(dist)
    assert len(set(before.values())) == 1
    first = datetime.fromisoformat(before[WHEEL].replace("Z", "+00:00"))
    assert start - timedelta(seconds=1) < first <= datetime.now(timezone.utc)
    for arguments in ((), ("--fresh",), ("--base-url", "https://files.example/")):
        assert variants("index", dist, *arguments).code == 0
        assert times(dist) == before
    (dist / "simple" / INVENTORY).unlink()
    variants("index", dist)
    assert times(dist) == before

    new = WHEEL.replace("x86_64_v3", "x86_64_v4")
    build_wheel(new, folder=dist, variant=variant_json("x86_64_v4", V4))
    variants("index", dist)
    after = times(dist)
    assert after.pop(new) > before[WHEEL]
    assert after == before  # the document's, too


def test_a_directory_that_moves_keeps_its_times(tmp_path, dist, variants):
    variants("index", dist)
    before = times(dist)
    moved = dist.rename(tmp_path / "moved")
    assert variants("index", moved).out.endswith("; 0 files changed\n")
    assert times(moved) == before


def test_a_wheel_with_other_contents_is_another_file(dist, variants, build_wheel, variant_json):
    variants("index", dist)
    before = files_of(dist)
    build_wheel(WHEEL, folder=dist, variant=variant_json("x86_64_v3", V4), description="again")
    assert variants("index", dist).code == 0
    after = files_of(dist)
    assert after[WHEEL]["upload-time"] > before[WHEEL]["upload-time"]
    assert after[NULL] == before[NULL]
    assert json.loads((dist / DOCUMENT).read_bytes())["variants"]["x86_64_v3"] == V4


def test_deleted_variant_wheels_take_the_metadata_with_them(dist, variants):
    """P13: what validate says to do about it is enough."""
    variants("index", dist)
    for name in (NULL, WHEEL):
        (dist / name).unlink()
    found = variants("validate", dist, "--json").json["findings"]
    assert found
    assert all(f"variants index --fresh {dist}" in item["remedy"] for item in found
               if item["severity"] == "error")  # fmt: skip
    result = variants("index", dist)
    assert result.code == 0
    assert not (dist / DOCUMENT).exists()
    assert not [path for path in dist.rglob("*.metadata") if not path.with_suffix("").exists()]
    assert variants("validate", dist).out.endswith("checked: 0 errors, 0 warnings\n")


def test_one_deleted_variant_leaves_the_others(dist, variants):
    variants("index", dist)
    (dist / WHEEL).unlink()
    variants("index", dist)
    assert json.loads((dist / DOCUMENT).read_bytes())["variants"] == {"null": {}}
    assert variants("validate", dist).out.endswith("checked: 0 errors, 0 warnings\n")


def test_metadata_of_a_project_that_is_gone(dist, variants):
    variants("index", dist)
    for name in (PLAIN, NULL, WHEEL):
        (dist / name).unlink()
    result = variants("index", dist, "--json").json
    assert sorted(result["removed"]) == sorted(
        map(str, (
            dist / DOCUMENT, dist / f"{PLAIN}.metadata", dist / f"{NULL}.metadata",
            dist / f"{WHEEL}.metadata", dist / "simple/example-pkg/index.html",
            dist / "simple/example-pkg/index.v1_json",
        ))
    )  # fmt: skip
    assert not (dist / "simple/example-pkg").exists()


def test_metadata_that_is_of_no_wheel_here_is_left(dist, variants):
    stray = dist / "gone-1.0-variants.json"
    stray.write_text((dist / "gone").name)
    result = variants("index", dist)
    assert result.code == 0
    assert stray.exists()


def test_only_what_changed_is_written(dist, variants, build_wheel):
    variants("index", dist)
    pages = [dist / "simple/example-pkg" / name for name in ("index.html", "index.v1_json")]
    for path in pages:
        os.utime(path, (1, 1))
    build_wheel("other-2.1-py3-none-any.whl", folder=dist)
    variants("index", dist)
    # What others did to a page is undone.
    html = pages[0].read_bytes()
    pages[0].write_bytes(b"edited")
    assert variants("index", dist).out.endswith("; 1 file changed\n")
    assert pages[0].read_bytes() == html
    assert pages[1].stat().st_mtime == 1


def test_a_damaged_page_is_not_overwritten(dist, variants, build_wheel):
    variants("index", dist)
    page = dist / "simple/other/index.v1_json"
    page.write_bytes(b"{")
    result = variants("index", dist)
    assert result.code == 1
    assert "upload times are kept in it: restore it, or delete it" in result.err
    assert page.read_bytes() == b"{"
    page.unlink()
    assert variants("index", dist).code == 0


def test_json(dist, variants):
    result = variants("index", dist, "--json")
    assert result.err == ""
    tree = result.json
    changed = tree.pop("changed")
    assert tree == {
        "output": str(dist / "simple"),
        "projects": 2,
        "wheels": 4,
        "source-distributions": 0,
        "versions-with-variants": 1,
        "removed": [],
    }
    assert str(dist / DOCUMENT) in changed
    assert str(dist / "simple" / "index.html") in changed
    assert variants("index", dist, "--json").json["changed"] == []
    (dist / "broken-1-py3-none-any.whl").write_bytes(b"")
    result = variants("index", dist, "--json")
    assert (result.code, result.out) == (1, "")


class Negotiating(http.server.SimpleHTTPRequestHandler):
    """A file server that gives JSON pages to clients that take them."""

    def log_message(self, *args):
        pass

    def send_head(self):
        if self.path.endswith("/"):
            self.path += "index.v1_json"
        return super().send_head()

    def guess_type(self, path):
        if path.endswith(".v1_json"):
            return "application/vnd.pypi.simple.v1+json"
        return super().guess_type(path)


CLIENTS = {
    "pip": ("-m", "pip", "--isolated", "download", "--no-deps", "-d", "{out}", "--no-cache-dir",
            "--disable-pip-version-check", "--index-url", "{url}", "--uploaded-prior-to", "{time}",
            "other"),
    "uv": ("-m", "uv", "pip", "install", "--no-config", "--no-cache", "--python", sys.executable,
           "--no-deps", "--target", "{out}", "--default-index", "{url}",
           "--exclude-newer", "{time}", "other"),
}  # fmt: skip


@pytest.mark.parametrize("client", CLIENTS)
def test_clients_that_leave_out_newer_files(client, tmp_path, dist, variants):
    """P8: pip ``--uploaded-prior-to`` and uv ``--exclude-newer`` see when files came."""
    pytest.importorskip(client)
    variants("index", dist)
    moment = datetime.fromisoformat(times(dist, project="other")[OTHER].replace("Z", "+00:00"))
    for delta, succeeds in ((timedelta(hours=1), True), (timedelta(hours=-1), False)):
        stamp = (moment + delta).strftime("%Y-%m-%dT%H:%M:%SZ")
        with serving(partial(Negotiating, directory=str(dist))) as url:
            words = [
                word.format(out=tmp_path / str(succeeds), url=f"{url}/simple/", time=stamp)
                for word in CLIENTS[client]
            ]
            done = subprocess.run(
                [sys.executable, *words], capture_output=True, text=True, check=False,
                env={**os.environ, "HOME": str(tmp_path), "PIP_CONFIG_FILE": os.devnull},
            )  # fmt: skip
        assert (done.returncode == 0) is succeeds, done.stdout + done.stderr
        if not succeeds:
            assert not re.search("does not provide upload-time|missing an upload", done.stderr)
