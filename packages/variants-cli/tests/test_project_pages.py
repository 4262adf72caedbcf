"""Pages of projects for people: the links in them are those that installers know."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from variants_cli.project_pages import render
from variants_cli.project_pages.wording import size, sizes
from variants_index.pages import JSON, Page, PageFile, html_page, read_page

FIELD = Path("/work/shared/data/variants-index")
URL = "https://index.example/simple/gpu/"
HOSTILE = "</script><script>alert(1)</script><!-- \"'&"

DOCUMENT = {
    "$schema": "https://variants-schema.wheelnext.dev/peps/825/v0.1.1.json",
    "default-priorities": {"namespace": ["nvidia", "x86_64"]},
    "variants": {
        "cu126": {"nvidia": {"cuda_version_lower_bound": ["12.6"]}},
        "cu128": {"nvidia": {"cuda_version_lower_bound": ["12.8"], "sm_arch": ["90_real"]}},
        "v3": {"x86_64": {"level": ["v3"], "avx2": ["on"]}},
        "null": {},
    },
}


def document(version="2.0", **changes):
    return {f"gpu-{version}-variants.json": json.dumps({**DOCUMENT, **changes}).encode()}


def wheel(label="", version="2.0", **more):
    name = f"gpu-{version}-py3-none-any{f'-{label}' if label else ''}.whl"
    return PageFile(name, name, {"sha256": "0" * 64}, **more)


def page(*files, **more):
    return Page("gpu", files, **more)


def full_page():
    """Return a page with every attribute of a file."""
    return page(
        wheel("cu128", size=741_000_000, upload_time="2026-02-03T04:05:06Z"),
        wheel("cu126", requires_python=">=3.10", yanked='broken "<&'),
        wheel("v3", core_metadata={"sha256": "1" * 64}, provenance="https://index.example/p?a=1&b"),
        wheel("null", core_metadata={}, gpg_sig=False),
        wheel(),
        PageFile("gpu-2.0.tar.gz", "../../gpu-2.0.tar.gz", {"md5": "0" * 32}, yanked=""),
        PageFile("gpu-2.0-variants.json", "../../gpu-2.0-variants.json", {"sha256": "2" * 64}),
        wheel(version="1.0"),
        PageFile("gpu-2.0.exe", "gpu-2.0.exe"),
        status="deprecated",
        status_reason="use <other>",
        tracks=("https://other.example/simple/gpu/",),
    )


def same_files(one, other):
    return sorted(one.files, key=str) == sorted(other.files, key=str)


def read(body):
    return read_page(body, "text/html", URL, "gpu")


class TestLinks:
    def test_our_reader(self):
        found = read(render(full_page(), document()))
        expected = read(html_page(full_page()))
        assert same_files(found, expected)
        assert (found.status, found.status_reason) == ("deprecated", "use <other>")
        assert found.tracks == expected.tracks

    def test_pip(self):
        from pip._internal.index.collector import IndexContent, parse_links

        def links(body):
            content = IndexContent(body, "text/html", "utf-8", URL)
            return {
                (link.url, link.hash, link.requires_python, link.yanked_reason,
                 str(link.metadata_file_data))
                for link in parse_links(content)
            }  # fmt: skip

        found = links(render(full_page(), document()))
        assert found == links(html_page(full_page()))
        assert len(found) == 9

    @pytest.mark.skipif(not FIELD.is_dir(), reason="needs the published index")
    @pytest.mark.parametrize("project", ["torch", "numpy", "cupy", "vllm-ascend", "triton"])
    def test_published(self, project):
        folder = FIELD / project
        url = f"https://index.example/simple/{project}/"
        given = read_page((folder / "index.v1.json").read_bytes(), JSON, url, project)
        documents = {path.name: path.read_bytes() for path in folder.glob("*-variants.json")}
        body = render(given, documents)
        expected = read_page(html_page(given), "text/html", url, project)
        assert same_files(read_page(body, "text/html", url, project), expected)
        assert len(body) < 2 * len(html_page(given)) + 80_000

    def test_no_other_links(self):
        body = render(full_page(), document()).decode()
        assert body.count("<a ") == len(full_page().files)
        assert "<base" not in body

    def test_equal_bytes(self):
        assert render(full_page(), document()) == render(full_page(), document())


class _Text(HTMLParser):
    """The text of a page, without style and script."""

    def __init__(self):
        super().__init__()
        self.found, self.silent, self.tags = [], 0, []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.silent += tag in ("script", "style")

    def handle_endtag(self, tag):
        self.silent -= tag in ("script", "style")

    def handle_data(self, data):
        if not self.silent:
            self.found.append(data)


def text_of(body):
    reader = _Text()
    reader.feed(body.decode())
    return re.sub(r"\s+", " ", " ".join(reader.found))


class TestText:
    def test_what_people_read(self):
        text = text_of(render(full_page(), document()))
        for words in (
            "needs CUDA driver 12.8 or newer",
            "built for compute capability 9.0",
            "needs x86-64-v3",
            "nothing: fits every machine",
            "741 MB · 2026-02-03",
            'yanked: broken "<&',
            "This project is deprecated",
            "Reason: use <other>",
            "2 versions, newest 2.0",
        ):
            assert words in text

    def test_best_variant_first(self):
        labels = re.findall(r"data-label=(\w+)", render(full_page(), document()).decode())
        assert labels == ["cu128", "cu126", "v3", "null"]

    def test_newest_version_first(self):
        files = [wheel(version=version) for version in ("1.9", "1.10", "2.0rc1", "0.1")]
        found = re.findall(r"<h2>([^<]+)</h2>", render(page(*files), {}).decode())
        assert found == ["2.0rc1", "1.10", "1.9", "0.1"]

    @pytest.mark.parametrize(
        ("documents", "said"),
        [
            ({}, "the index does not say what these variants need"),
            ({"gpu-2.0-variants.json": b"{"}, "not valid JSON"),
            (document(**{"$schema": "https://x.example/v9.0.0.json"}), "9.0.0"),
        ],
    )
    def test_unusable_metadata(self, documents, said):
        text = text_of(render(full_page(), documents))
        assert "The variant wheels of this version cannot be used" in text
        assert said in text

    def test_label_without_metadata(self):
        given = page(wheel("other"), wheel("cu128"), *full_page().files[-3:-2])
        assert "not known" in text_of(render(given, document()))

    def test_index_url(self):
        body = render(page(wheel()), {}, index_url="https://index.example/simple/")
        assert "pip install --index-url https://index.example/simple/ gpu" in text_of(body)


class TestHostile:
    def test_nothing_ends_the_markup(self):
        given = page(
            PageFile(f"gpu-2.0{HOSTILE}.whl", f"https://index.example/{HOSTILE}"),
            wheel("cu128", yanked=HOSTILE, requires_python=HOSTILE, upload_time=HOSTILE),
            *full_page().files[-3:-2],
            status=HOSTILE,
            status_reason=HOSTILE,
        )
        documents = document(**{"default-priorities": {"namespace": ["nvidia", "x86_64", HOSTILE]}})
        plain = _Text()
        plain.feed(render(page(wheel("cu128")), document()).decode())
        reader = _Text()
        reader.feed(render(given, documents).decode())
        scripts = [tag for tag, _ in reader.tags if tag == "script"]
        assert len(scripts) <= [tag for tag, _ in plain.tags].count("script")


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1000, "1.00 kB"),
        (12_345, "12.3 kB"),
        (741_000_000, "741 MB"),
        (999_499_999, "999 MB"),
        (999_600_000, "1.00 GB"),
        (2_134_000_000, "2.13 GB"),
        (5 * 10**15, "5000 TB"),
    ],
)
def test_size(number, text):
    assert size(number) == text


def test_sizes():
    assert sizes([]) == ""
    assert sizes([5000, 5000]) == "5.00 kB"
    assert sizes([7000, 5000]) == "5.00 kB to 7.00 kB"
