"""Start tags: those of ordinary pages as html.parser reads them, and any bytes at all."""

from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from variants_index.errors import InvalidPage
from variants_index.pages import read_page, read_projects
from variants_index.pages.html_reader import start_tags

NAMES = ("href", "data-yanked", "data-requires-python")
URL = "https://index.example/simple/demo/"


class Reference(HTMLParser):
    """What pip reads pages with."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.links = []

    def handle_starttag(self, tag, attrs):
        if tag == "a":
            first = dict(reversed(attrs))
            self.links.append({name: first[name] for name in first if name in NAMES})


attributes = st.sampled_from(
    ['href="x.whl"', "href='y&amp;z.whl'", "href=q.whl", "HREF = 'r.whl'", 'href="s t.whl"',
     'href="../../a/b#sha256=00"', "data-yanked", 'data-yanked=""', 'data-yanked="a>b"',
     "DATA-YANKED = 'r'", 'data-requires-python="&gt;=3.8,&lt;4"', "rel=internal", 'class="a b"']
)  # fmt: skip
links = st.builds(
    "<{}{}{}{}".format,
    st.sampled_from(["a", "A"]),
    st.sampled_from([" ", "\n", "\t "]),
    st.lists(attributes, max_size=4).map(" ".join),
    st.sampled_from([">", " >", " />"]),
)
others = st.sampled_from(
    ["text", "<br>", "<br/>", "\n", "&lt;a href=x&gt;", '<!-- <a href="no"> -->', "</a>", "<p>",
     "<!doctype html>", '<h1 title="<a href=no>">', "a < b", "1 > 0", "<abbr href=no>",
     '<script>var a = "<a href=no>";</script>', "<style>a</style>"]
)  # fmt: skip


@given(st.lists(links | others, max_size=8).map("".join))
def test_ordinary_pages_read_as_before(text):
    reference = Reference()
    reference.feed(text)
    found = [tag.attributes for tag in start_tags(text.encode(), ("a",), NAMES)]
    assert found == reference.links


pieces = st.sampled_from(
    ["<", ">", "<a", "<a ", "</a", "<!", "<!--", "-->", "<![CDATA[", "]]>", "<?", "&", "&#", "&#x",
     "9" * 20, "href", "=", '"', "'", "/", " ", "\0", "\x85", "é", "\ud7ff", "<base href='",
     "<meta ", "file:///", "//", "http://[", "\\", "name=pypi:repository-version content=1",
     "<script>", "x"]
)  # fmt: skip


@given(
    st.lists(pieces, max_size=30).map(lambda parts: "".join(parts).encode()) | st.binary(),
    st.sampled_from(["", "text/html", "text/html; charset=latin-1", "text/html; charset=utf-7"]),
)
def test_whatever_comes_is_a_page_or_an_error(body, kind):
    for read in (read_page, read_projects):
        try:
            read(body, kind, URL)
        except InvalidPage:
            pass
