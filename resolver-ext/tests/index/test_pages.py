"""Pages of the simple API, read and written; what strangers may put in them."""

import json
import re
from dataclasses import replace
from urllib.parse import urljoin, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolvelib_variants.index.errors import InvalidPage
from resolvelib_variants.index.pages import (
    HTML,
    JSON,
    Page,
    PageFile,
    html_page,
    html_projects,
    json_page,
    json_projects,
    read_page,
)

URL = "https://index.example/simple/demo/"
WHEEL = "demo-1.0-py3-none-any.whl"
PLACE = f"https://index.example/files/{WHEEL}"


def from_json(*files, **page):
    tree = {"meta": {"api-version": "1.0"}, "name": "demo", "files": list(files), **page}
    return read_page(json.dumps(tree).encode(), JSON, URL, "Demo")


def from_html(text, url=URL, kind="text/html"):
    return read_page(text.encode(), kind, url, "Demo")


def only(page):
    (file,) = page.files
    return file


class TestJSON:
    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            ({}, {}),
            ({"hashes": {"sha256": "ABCDEF"}}, {"hashes": {"sha256": "abcdef"}}),
            ({"hashes": {"sha256": 3, "md5": "x y", "sha1": "ab"}}, {"hashes": {"sha1": "ab"}}),
            ({"hashes": None}, {}),
            ({"requires-python": ">=3.9"}, {"requires_python": ">=3.9"}),
            ({"requires-python": None}, {}),
            ({"requires-python": 3}, {}),
            ({"yanked": True}, {"yanked": ""}),
            ({"yanked": "broken"}, {"yanked": "broken"}),
            ({"yanked": False}, {}),
            ({"yanked": ""}, {"yanked": ""}),
            ({"size": 10}, {"size": 10}),
            ({"size": -1}, {}),
            ({"size": "10"}, {}),
            ({"size": True}, {}),
            ({"upload-time": "2024-01-01T00:00:00Z"}, {"upload_time": "2024-01-01T00:00:00Z"}),
            ({"core-metadata": True}, {"core_metadata": {}}),
            ({"core-metadata": False}, {}),
            ({"core-metadata": {"sha256": "ab"}}, {"core_metadata": {"sha256": "ab"}}),
            ({"data-dist-info-metadata": {"sha256": "ab"}}, {"core_metadata": {"sha256": "ab"}}),
            ({"dist-info-metadata": True}, {"core_metadata": {}}),
            ({"core-metadata": False, "dist-info-metadata": True}, {}),
            ({"provenance": "/p"}, {"provenance": "https://index.example/p"}),
            ({"provenance": None}, {}),
            ({"gpg-sig": True}, {"gpg_sig": True}),
            ({"gpg-sig": "yes"}, {}),
        ],
    )
    def test_attributes(self, given, expected):
        page = from_json({"filename": WHEEL, "url": f"/files/{WHEEL}", **given})
        assert only(page) == PageFile(WHEEL, PLACE, **expected)

    @pytest.mark.parametrize(
        ("address", "expected"),
        [
            (f"/files/{WHEEL}", PLACE),
            (f"../../files/{WHEEL}", PLACE),
            (f"//other.example/{WHEEL}", f"https://other.example/{WHEEL}"),
            (f"http://other.example:8080/{WHEEL}", f"http://other.example:8080/{WHEEL}"),
            (f"{WHEEL}#sha256=00", f"{URL}{WHEEL}"),
            ("", URL),
        ],
    )
    def test_links_are_relative_to_the_page(self, address, expected):
        assert only(from_json({"filename": WHEEL, "url": address})).url == expected

    @pytest.mark.parametrize(
        "entry",
        [
            None,
            3,
            [],
            {},
            {"filename": WHEEL},
            {"url": "x"},
            {"filename": 3, "url": "x"},
            {"filename": WHEEL, "url": 3},
            {"filename": "", "url": "x"},
            {"filename": "..", "url": "x"},
            {"filename": "../x.whl", "url": "x"},
            {"filename": "a/b.whl", "url": "x"},
            {"filename": "a\\b.whl", "url": "x"},
            {"filename": "a\0.whl", "url": "x"},
            {"filename": "a\r\nb.whl", "url": "x"},
            {"filename": WHEEL, "url": "file:///etc/passwd"},
            {"filename": WHEEL, "url": "javascript:alert(1)"},
            {"filename": WHEEL, "url": "ftp://host/x"},
            {"filename": WHEEL, "url": "http://"},
            {"filename": WHEEL, "url": "http://["},
            {"filename": WHEEL, "url": "http://host:port/"},
            {"filename": WHEEL, "url": "http://host:99999999/"},
        ],
    )
    def test_what_is_wrong_with_one_file_costs_that_file(self, entry):
        good = {"filename": "good-1.0.tar.gz", "url": "good-1.0.tar.gz"}
        assert only(from_json(entry, good)).filename == "good-1.0.tar.gz"

    def test_page(self):
        page = from_json(
            versions=["1.0", 3, "2.0"],
            **{
                "project-status": {"status": "deprecated", "reason": "see other"},
                "alternate-locations": ["https://a/"],
                "meta": {"api-version": "1.4", "tracks": ["https://b/"]},
            },
        )
        assert page == Page(
            "demo", (), ("1.0", "2.0"), "deprecated", "see other", ("https://a/",), ("https://b/",)
        )

    @pytest.mark.parametrize(
        "body",
        [
            b"", b"<html>", b"[]", b"{}", b'{"files": []}', b'{"meta": {}, "files": []}',
            b'{"meta": {"api-version": "1.0"}}', b'{"meta": {"api-version": "1.0"}, "files": {}}',
            b'{"meta": {"api-version": "2.0"}, "files": []}',
            b'{"meta": {"api-version": 1}, "files": []}', b"\xff", b"[" * 200_000,
        ],
    )  # fmt: skip
    def test_no_page(self, body):
        with pytest.raises(InvalidPage, match=rf"^{re.escape(URL)}: "):
            read_page(body, JSON, URL)

    def test_the_message_hides_credentials(self):
        with pytest.raises(InvalidPage) as caught:
            read_page(b"", JSON, "https://me:secret@index.example/simple/")
        assert "secret" not in str(caught.value)


class TestHTML:
    @pytest.mark.parametrize(
        ("attributes", "expected"),
        [
            ("", {}),
            ('data-requires-python="&gt;=3.9,&lt;4"', {"requires_python": ">=3.9,<4"}),
            ('data-requires-python=""', {}),
            ("data-yanked", {"yanked": ""}),
            (
                'data-upload-time="2012-07-24T16:34:31.159215Z"',
                {"upload_time": "2012-07-24T16:34:31.159215Z"},
            ),
            ('data-yanked="bad &amp; old"', {"yanked": "bad & old"}),
            ('data-core-metadata="true"', {"core_metadata": {}}),
            ('data-core-metadata="false"', {}),
            ('data-core-metadata="sha256=ABCD"', {"core_metadata": {"sha256": "abcd"}}),
            ('data-dist-info-metadata="sha256=ab"', {"core_metadata": {"sha256": "ab"}}),
            (
                'data-core-metadata="sha256=ab" data-dist-info-metadata="true"',
                {"core_metadata": {"sha256": "ab"}},
            ),
            ('data-provenance="/p"', {"provenance": "https://index.example/p"}),
            ('data-gpg-sig="false"', {"gpg_sig": False}),
            ("DATA-YANKED='x'", {"yanked": "x"}),
        ],
    )
    def test_attributes(self, attributes, expected):
        page = from_html(f'<a href="/files/{WHEEL}" {attributes}>{WHEEL}</a>')
        assert only(page) == PageFile(WHEEL, PLACE, **expected)

    @pytest.mark.parametrize(
        ("fragment", "expected"),
        [
            ("#sha256=ABCD", {"sha256": "abcd"}),
            ("#md5=00", {"md5": "00"}),
            ("#sha256=ab&subdirectory=x", {"sha256": "ab"}),
            ("#subdirectory=x&sha256=ab", {"sha256": "ab"}),
            ("#sha256=", {}),
            ("#sha256=xyz", {}),
            ("#blake2=ab", {}),
            ("", {}),
        ],
    )
    def test_hash(self, fragment, expected):
        page = from_html(f'<a href="/files/{WHEEL}{fragment}">x</a>')
        assert only(page) == PageFile(WHEEL, PLACE, expected)

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            (f'<base href="https://b.example/x/"><a href="{WHEEL}">', f"https://b.example/x/{WHEEL}"),
            (f'<base href="../"><a href="{WHEEL}">', f"https://index.example/simple/{WHEEL}"),
            (f'<a href="{WHEEL}"><base href="/late/">', f"https://index.example/late/{WHEEL}"),
            (f"<a href='  {WHEEL}  '>", f"{URL}{WHEEL}"),
            (f"<A HREF={WHEEL}>", f"{URL}{WHEEL}"),
        ],
    )  # fmt: skip
    def test_links(self, text, expected):
        assert only(from_html(text)).url == expected

    def test_the_name_is_that_of_the_url_whatever_the_text_says(self):
        page = from_html(f'<a href="demo-1.0%2Blocal-py3-none-any.whl?x=1#a">{WHEEL}</a>')
        assert only(page).filename == "demo-1.0+local-py3-none-any.whl"

    @pytest.mark.parametrize(
        "href", ["", "https://index.example/", "..", "x/..%2Fy.whl", "a%00.whl", "mailto:a@b",
                 "file:///x.whl", "javascript:x.whl", "http://[", "http://h:p/x.whl"],
    )  # fmt: skip
    def test_links_that_are_no_files(self, href):
        assert from_html(f'<a href="{href}">x</a><a>y</a>').files == ()

    def test_local_pages_may_link_to_local_files(self):
        page = from_html(f'<a href="{WHEEL}">x</a>', url="file:///srv/links.html")
        assert only(page).url == f"file:///srv/{WHEEL}"

    @pytest.mark.parametrize("text", ["", "<", "<a", "<a href=", "\0" * 100, "<!["])
    def test_broken(self, text):
        assert read_or_error(text.encode(), "text/html") in ((), InvalidPage)

    @pytest.mark.parametrize(
        "part",
        ["<a ", "<a href='", '<a b="', "<!--", "</a", "<!", "<![", "<?", "&", "<a/", "<script>"],
    )
    def test_long_and_broken_takes_no_longer_than_long(self, part):
        """Each of them took hours once, or would."""
        assert read_or_error(part.encode() * 100_000, "text/html") in ((), InvalidPage)

    @pytest.mark.parametrize(
        ("charset", "body"),
        [
            ("latin-1", f'<a data-yanked="é" href="{WHEEL}">'.encode("latin-1")),
            ("utf-8", f'<a data-yanked="é" href="{WHEEL}">'.encode()),
            ("strange", f'<a data-yanked="é" href="{WHEEL}">'.encode()),
        ],
    )
    def test_charset(self, charset, body):
        assert only(read_page(body, f"text/html; charset={charset}", URL)).yanked == "é"

    def test_status_and_version(self):
        meta = '<meta name="pypi:{}" content="{}">'
        page = from_html(
            meta.format("repository-version", "1.3")
            + meta.format("project-status", "archived")
            + meta.format("project-status-reason", "done")
        )
        assert (page.status, page.status_reason) == ("archived", "done")
        with pytest.raises(InvalidPage, match=r"version '2\.0'"):
            from_html(meta.format("repository-version", "2.0"))


@pytest.mark.parametrize(
    ("kind", "is_json"),
    [
        (JSON, True),
        ("application/json", True),
        ("Application/JSON; charset=utf-8", True),
        ("application/vnd.pypi.simple.latest+json", True),
        (HTML, False),
        ("text/html; charset=utf-8", False),
        ("", False),
    ],
)
def test_content_type(kind, is_json):
    tree = {"meta": {"api-version": "1.0"}, "files": [{"filename": WHEEL, "url": "x"}]}
    page = read_page(json.dumps(tree).encode(), kind, URL)
    assert len(page.files) == is_json


pieces = st.sampled_from(
    ["https://h.example", "http://h:80", "http://h:x", "https://h:99999", "//h", "/", "//", ".",
     "..", "a", "b.whl", "%2e", "?q", "#f", " ", "\\", ":", "@", "\t", "é", "file://", "HTTPS://H.example"]
)  # fmt: skip


@given(
    st.lists(st.lists(pieces, max_size=6).map("".join), max_size=6),
    st.sampled_from(
        [URL, "https://me:pw@h.example/x/", "file:///srv/simple/x/", "http://h:8/a?b#c"]
    ),
)
def test_short_cuts_lead_to_the_same_place(addresses, page):
    """Links are joined by the library alone, or by what is known of the ones before."""

    def alone(address):
        return [file.url for file in files_at([address], page)]

    together = [file.url for file in files_at(addresses, page)]
    expected = []
    for address in addresses:
        try:
            url = urljoin(page, address).partition("#")[0]
            parts = urlsplit(url)
            good = parts.port != -1 and (
                parts.scheme == "file"
                if parts.scheme not in ("http", "https")
                else bool(parts.hostname)
            )
            local = parts.scheme == "file" and not page.startswith("file:")
        except ValueError:
            continue
        if good and not local and parts.scheme in ("http", "https", "file"):
            expected.append(url)
    assert together == expected
    assert together == [url for address in addresses for url in alone(address)]


def test_long_links_take_no_longer_than_long():
    hostile = ["/" + "a" * 10_000 + "!", "/" + "a/" * 10_000 + "!", "https://" + "a." * 10_000]
    assert len(files_at(hostile, URL)) <= 3


def files_at(addresses, page):
    entries = [{"filename": WHEEL, "url": address} for address in addresses]
    tree = {"meta": {"api-version": "1.0"}, "files": entries}
    return read_page(json.dumps(tree).encode(), JSON, page).files


names = st.from_regex(r"[A-Za-z0-9_.+-]{1,20}\.whl", fullmatch=True)
digests = st.dictionaries(
    st.sampled_from(["sha256", "md5"]), st.from_regex("[0-9a-f]{4,64}", fullmatch=True)
)
text = st.text(st.characters(exclude_categories=["C"]), min_size=1, max_size=20)
visible = text.map(str.strip).filter(bool)
files = st.builds(
    PageFile,
    names,
    st.from_regex(r"https://[a-z]{1,9}\.example/[A-Za-z0-9]{1,20}", fullmatch=True),
    digests,
    st.none() | visible,
    st.none() | st.just("") | visible,
    st.none() | st.integers(0, 10**15),
    st.none() | visible,
    st.none() | digests,
    st.none() | st.from_regex(r"https://p\.example/[a-z]{1,9}", fullmatch=True),
    st.none() | st.booleans(),
)
pages = st.builds(
    Page,
    st.just("demo"),
    st.lists(files, max_size=5).map(tuple),
    st.none() | st.lists(visible, max_size=3).map(tuple),
    st.sampled_from(["active", "archived", "quarantined"]),
    st.none(),
    st.lists(visible, max_size=2).map(tuple),
    st.lists(visible, max_size=2).map(tuple),
)


@given(pages)
def test_json_round_trip(page):
    written = json_page(page)
    assert read_page(written, JSON, URL, "demo") == page
    assert json_page(page) == written


@given(pages)
def test_html_round_trip(page):
    """HTML has room for one hash of each kind, and none for sizes and times."""
    named = [
        replace(
            file,
            url=f"{file.url}/{file.filename}".replace("+", "%2B"),
            size=None,
            upload_time=None,
            hashes=one(file.hashes),
            core_metadata=one(file.core_metadata),
        )
        for file in page.files
    ]
    given_page = Page("demo", tuple(named), None, page.status)
    written = html_page(given_page)
    assert read_page(written, "text/html", URL, "demo") == given_page
    assert html_page(given_page) == written


def one(hashes):
    if not hashes:
        return hashes
    name = "sha256" if "sha256" in hashes else next(iter(hashes))
    return {name: hashes[name]}


@given(st.binary(max_size=300), st.sampled_from([JSON, "text/html", "text/html; charset=utf-16"]))
def test_anything_is_a_page_or_an_error(body, kind):
    read_or_error(body, kind)


def read_or_error(body, kind):
    """Return the files, or the class of the error; any other error fails the test."""
    try:
        return read_page(body, kind, URL).files
    except InvalidPage:
        return InvalidPage


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["filename", "url", "hashes", "yanked", "core-metadata", "size", "meta"]),
        inner,
    ),
    max_leaves=10,
)  # fmt: skip


@given(st.lists(json_values, max_size=4), json_values, json_values)
def test_anything_in_the_right_places_is_a_page(entries, status, versions):
    page = from_json(*entries, **{"project-status": status, "versions": versions})
    assert all(isinstance(file, PageFile) for file in page.files)
    read_page(json_page(page), JSON, URL, "demo")


def test_written_values_cannot_break_out():
    hostile = '"><script>alert(1)</script>'
    page = Page("demo", (PageFile(WHEEL, PLACE, {}, hostile, hostile),), None, "archived", hostile)
    written = html_page(page)
    assert b"<script>" not in written
    assert read_page(written, "text/html", URL, "demo") == page


def test_project_lists():
    assert json.loads(json_projects(["a", "b"]))["projects"] == [{"name": "a"}, {"name": "b"}]
    assert b'<a href="a/">a</a>' in html_projects(["a", "<b>"])
    assert b"<b>" not in html_projects(["<b>"])
