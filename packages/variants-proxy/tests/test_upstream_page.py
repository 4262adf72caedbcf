"""Which pages are handed on unread: none that reading would have made anything else of."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pep_variants.model.label import METADATA_SUFFIX, split_label
from variants_index.pages import JSON, PageFile, html_page, json_page, read_page
from variants_proxy.upstream.upstream_page import UpstreamPage

URL = "https://index.example/simple/app/"
PLAIN = "https://files.example/a/app-1.0-py3-none-any.whl"
LABELLED = "https://files.example/a/app-1.0-py3-none-any-cu128.whl"


def html(*urls, more=""):
    return "".join(f'<a href="{url}"{more}>x</a><br/>\n' for url in urls).encode()


def tree(*urls, **more):
    files = [{"filename": url.rpartition("/")[2], "url": url, **more} for url in urls]
    return json.dumps({"meta": {"api-version": "1.1"}, "files": files}).encode()


@pytest.mark.parametrize(
    ("kind", "body", "expected"),
    [
        ("text/html", b"", "html"),
        ("text/html", html(PLAIN), "html"),
        ("text/html; charset=UTF-8", html(f"{PLAIN}#sha256={'0' * 64}"), "html"),
        ("application/vnd.pypi.simple.v1+html", html(PLAIN), "html"),
        ("text/html", html(PLAIN, more=' data-requires-python="&gt;=3.9" data-yanked'), "html"),
        ("text/html", html(PLAIN.replace("1.0", "1.0-1")), "html"),  # a build tag is no label
        ("text/html", html(PLAIN, LABELLED), None),
        ("text/html", html(LABELLED.replace("-cu", "%2Dcu")), None),
        ("text/html", html(PLAIN, "https://files.example/a/app-1.0-variants.json"), None),
        ("text/html", html("../app-1.0.tar.gz"), "html relative"),
        (
            "text/html",
            html(PLAIN, "../../files/app-1.0-py3-none-any.whl#sha256=00"),
            "html relative",
        ),
        ("text/html", html("//files.example/app-1.0.tar.gz"), "html relative"),
        ("text/html", html("../app-1.0.tar.gz") + b'<base href="/x/">', None),
        ("text/html", html("../" + LABELLED.rpartition("/")[2]), None),
        ("text/html", html("app-1.0-py3-none-any&#45;cu128.whl"), None),
        ("text/html", html("app-1.0-py3-none-any&#45;cu128.whl", PLAIN), None),
        ("text/html", html("file:///app-1.0.tar.gz"), None),
        ("text/html", html(PLAIN) + b"<A HREF='x/y.whl'>", None),
        ("text/html", html(PLAIN, "https://me:secret@files.example/a/app-1.0.zip"), None),
        ("text/html", b"<![" + html(PLAIN), None),
        ("text/html", b'<meta name="pypi:repository-version" content="1.4">', "html"),
        ("text/html", b'<meta name="pypi:repository-version" content="2.0">', None),
        ("text/plain", html(PLAIN), None),
        (JSON, tree(PLAIN), "json"),
        (JSON, tree(PLAIN, provenance=None, yanked=False), "json"),
        (JSON, tree(PLAIN, provenance="../provenance"), "json relative"),
        (JSON, tree(PLAIN, provenance="file:///provenance"), None),
        (JSON, tree(PLAIN, LABELLED), None),
        (JSON, tree("app-1.0-py3-none-any.whl"), "json relative"),
        (JSON, tree("file:///app-1.0-py3-none-any.whl"), None),
        (JSON, tree(PLAIN).replace(b'"1.1"', b'"2.0"'), None),
        (JSON, b"[]", None),
        (JSON, b"{", None),
        ("application/json", tree(PLAIN), None),
    ],
)
def test_forms(kind, body, expected):
    plain = UpstreamPage(body, kind, URL, "app").plain
    assert (plain and plain.form + " relative" * plain.relative) == expected


@pytest.mark.parametrize(("write", "kind"), [(html_page, "text/html"), (json_page, JSON)])
def test_pages_as_tools_write_them(write, kind):
    file = PageFile(
        "app-1.0-py3-none-any.whl", PLAIN, {"sha256": "0" * 64}, ">=3.9,<4", "a & b", 5,
        "2026-01-01T00:00:00Z", {"sha256": "1" * 64}, "https://index.example/p", True,
    )  # fmt: skip
    listing = UpstreamPage(write(read_page(tree(PLAIN), JSON, URL)), kind, URL, "app")
    assert listing.plain
    page = read_page(tree(PLAIN), JSON, URL)
    listing = UpstreamPage(write(type(page)("app", (file,))), kind, URL, "app")
    assert listing.plain
    assert listing.page.files[0].filename == file.filename


PIECES = (
    "<a ", "<A ", "<a\n", "href=", "HREF = ", '"', "'", ">", "</a>", " ", "<!--", "-->", "<base ",
    "#", "https://h/", "http://h:1/p/", "//h/", "../", "app-1.0-py3-none-any", "-cu128",
    "%2dcu128", ".whl", "-variants.json", "app-1.0.tar.gz", "?x", "&#45;cu128", "data-yanked", "=",
    "<", "\\u002d", "<![",
)  # fmt: skip


def is_as_good_unread(listing):
    there = read_page(listing.body, listing.kind, URL)
    elsewhere = read_page(listing.body, listing.kind, "http://elsewhere.example/x/")
    assert listing.plain.relative or there == elsewhere
    for file in there.files:
        assert split_label(file.filename)[1] is None
        assert not file.filename.endswith(METADATA_SUFFIX)


@settings(max_examples=400)
@given(st.lists(st.sampled_from(PIECES), max_size=14))
def test_whatever_is_between_two_links(pieces):
    body = html(PLAIN) + "".join(pieces).encode() + html(PLAIN)
    listing = UpstreamPage(body, "text/html", URL, "app")
    if listing.plain is not None:
        is_as_good_unread(listing)


@settings(max_examples=200)
@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "filename": st.lists(st.sampled_from(PIECES), max_size=4).map("".join),
                "url": st.lists(st.sampled_from(PIECES), max_size=4).map("".join),
            }
        ),
        max_size=3,
    )
)
def test_whatever_json_says(files):
    body = json.dumps({"meta": {"api-version": "1.0"}, "files": files}).encode()
    listing = UpstreamPage(body, JSON, URL, "app")
    if listing.plain is not None:
        is_as_good_unread(listing)


@pytest.mark.parametrize(
    ("names", "newest"),
    [
        ((), None),
        (("app-1.0.tar.gz", "app-x-py3-none-any.whl"), None),
        (("app-1.9-py3-none-any.whl", "app-1.10-py3-none-any.whl", "app-2.tar.gz"), 1),
        (("app-1.0-py3-none-any.whl", "app-1.0-1-py3-none-any.whl"), 0),
    ],
)
@pytest.mark.parametrize("kind", ["text/html", JSON])
def test_the_newest_wheel(kind, names, newest):
    urls = [f"https://files.example/a/{name}" for name in names]
    listing = UpstreamPage(html(*urls) if kind == "text/html" else tree(*urls), kind, URL, "app")
    assert listing.plain.newest == (None if newest is None else listing.page.files[newest])
