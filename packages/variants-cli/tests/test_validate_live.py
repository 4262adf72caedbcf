"""A project page on a live index: what is wrong with it is found over HTTP, too."""

import json
import os
import re
from functools import partial

import pytest

from support.loopback import served_folder

V3 = {"x86_64": {"level": ["v3"]}}
V4 = {"x86_64": {"level": ["v4"]}}


@pytest.fixture
def dist(tmp_path, build_wheel, variant_json, variants):
    folder = tmp_path / "dist"
    build = partial(build_wheel, folder=folder)
    build("example_pkg-1.0-py3-none-any.whl")
    for tags in ("py3-none-any", "py3-none-win_amd64"):
        build(f"example_pkg-1.0-{tags}-null.whl", variant=variant_json("null"))
        build(f"example_pkg-1.0-{tags}-x86_64_v3.whl", variant=variant_json("x86_64_v3", V3))
    assert variants("index", folder).code == 0
    return folder


@pytest.fixture
def url(dist, monkeypatch):
    """The page of the project, served as static files."""
    for name in list(os.environ):
        if name.startswith("PIP_"):
            monkeypatch.delenv(name)
    with served_folder(dist) as url:
        yield f"{url}simple/example-pkg/"


def codes(result):
    return sorted({item["code"] for item in result.json["findings"]})


def test_good_page(url, variants):
    # The page, the metadata, and one wheel of each of two labels; or all four.
    assert variants("validate", url).out == "4 files checked: 0 errors, 0 warnings\n"
    result = variants("validate", url, "--every-wheel")
    assert result.out == "6 files checked: 0 errors, 0 warnings\n"


def test_no_page(url, variants):
    result = variants("validate", url.replace("example-pkg", "other"))
    assert result.code == 1
    assert "not found (HTTP status 404)" in result.err


def test_changed_metadata(dist, url, variants):
    path = dist / "example_pkg-1.0-variants.json"
    path.write_text(path.read_text() + " ")
    result = variants("validate", url, "--json")
    assert codes(result) == ["index-metadata-missing", "page-mismatch"]
    assert result.json["findings"][0]["file"].endswith(path.name)


def test_metadata_that_is_gone(dist, url, variants):
    (dist / "example_pkg-1.0-variants.json").unlink()
    result = variants("validate", url.replace("://", "://user:hunter2@"), "--json")
    assert codes(result) == ["index-metadata-missing", "page-file-missing"]
    assert "hunter2" not in result.out + result.err


def test_wheels_that_say_something_else(dist, url, build_wheel, variant_json, variants):
    name = "example_pkg-1.0-py3-none-any-x86_64_v3.whl"
    build_wheel(name, folder=dist, variant=variant_json("x86_64_v3", V4))
    result = variants("validate", url, "--json")
    # The server gives no parts: the whole wheel was downloaded, and has another hash.
    assert codes(result) == ["page-mismatch"]
    page = dist / "simple" / "example-pkg" / "index.html"
    page.write_text(page.read_text().replace("#sha256=", "#"))
    result = variants("validate", url, "--json")
    assert codes(result) == ["hash-missing", "index-mismatch"]


def test_labels_and_entries(dist, url, variants):
    page = dist / "simple" / "example-pkg" / "index.html"
    more = "".join(
        f'<a href="{name}#sha256={"0" * 64}">{name}</a>'
        for name in (
            "example_pkg-1.0-py3-none-any-UPPER.whl",
            "example_pkg-1.0-py3-none-any.whl",
            "example_pkg-2.0-py3-none-any-null.whl",
        )
    )
    page.write_text(page.read_text().replace("</body>", f"{more}</body>"))
    (dist / "example_pkg-1.0-variants.json").write_text(
        json.dumps(
            {
                "$schema": "https://variants-schema.wheelnext.dev/peps/825/v0.1.1.json",
                "default-priorities": {"namespace": ["x86_64"]},
                "variants": {"null": {}, "x86_64_v4": V4},
            }
        )
    )
    page.write_text(re.sub(r"(variants\.json)#sha256=\w+", r"\1", page.read_text()))
    result = variants("validate", url, "--json")
    assert codes(result) == [
        "hash-missing",
        "index-metadata-missing",
        "invalid-filename",
        "label-not-indexed",
        "label-without-wheel",
        "listed-twice",
        "page-file-missing",
    ]
