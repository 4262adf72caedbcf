"""Pages of projects for people: the links in them are those that installers know."""

import base64
import hashlib
import html
import json
import re
from html.parser import HTMLParser

import pytest

from pep_variants import limits
from pep_variants.detect.known_machines import BY_NAME
from variants_cli.pages import project_page
from variants_cli.pages.project_page import render
from variants_index.pages import Page, PageFile, html_page, read_page

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
        wheel("null", core_metadata={}),
        wheel(),
        PageFile("gpu-2.0.tar.gz", "../../gpu-2.0.tar.gz", {"md5": "0" * 32}, yanked=""),
        PageFile("gpu-2.0-variants.json", "../../gpu-2.0-variants.json", {"sha256": "2" * 64}),
        wheel(version="1.0"),
        PageFile("gpu-2.0.exe", "gpu-2.0.exe"),
        status="deprecated",
        status_reason="use <other>",
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

    def test_no_other_links(self):
        body = render(full_page(), document()).decode()
        assert body.count("<a ") == len(full_page().files)
        assert "<base" not in body

    def test_too_large_for_readers(self, monkeypatch):
        monkeypatch.setattr(limits, "PAGE_BYTES", 20_000)
        assert render(full_page(), document()) == html_page(full_page())

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
            "741.0 MB · 2026-02-03",
            'yanked: broken "<&',
            "This project is deprecated",
            "Reason: use <other>",
            "2 versions, newest 2.0",
        ):
            assert words in text

    def test_best_variant_first(self):
        body = render(full_page(), document()).decode()
        labels = re.findall(r'<th class="label" scope="row">(\w+)', body)[:4]
        assert labels == ["cu128", "cu126", "v3", "null"]

    def test_newest_version_first(self):
        files = [wheel(version=version) for version in ("1.9", "1.10", "2.0rc1", "0.1")]
        found = re.findall(r"<h2>([\d.rc]+)</h2>", render(page(*files), {}).decode())
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


class TestMachines:
    """The table of what the known machines get."""

    def rows(self, given, documents):
        body = render(given, documents).decode()
        table = re.search(r'(?s)id="machines".*?</table>', body)
        cells = re.compile(r'class="soft">([^<]+)</span></td><td[^>]*>([^<]+)</td><td>([^<]+)<')
        return {name: (gets, why) for name, gets, why in cells.findall(table[0])} if table else {}

    def test_what_the_engine_chooses(self):
        rows = self.rows(full_page(), document())
        assert set(rows) == set(BY_NAME)
        why = "CUDA driver 12.8 or newer, compute capability 9.0"
        assert rows["h100-zen4"] == ("cu128", why)
        # The wheel for CUDA 12.6 is yanked.
        assert rows["rtx-3090-alderlake"][0] == "v3"
        assert rows["gh200-grace"][0] == "cu128"
        assert rows["cpu-graviton3"] == ("null", "fits every machine")

    def test_wheels_of_the_machine_alone(self):
        def tagged(tags, label=""):
            name = f"gpu-2.0-cp312-cp312-{tags}{f'-{label}' if label else ''}.whl"
            return PageFile(name, name)

        listed = full_page().files[6]
        given = page(
            tagged("manylinux_2_28_x86_64", "cu128"),
            tagged("macosx_11_0_arm64"),
            tagged("win_amd64", "v3"),
            listed,
        )
        rows = self.rows(given, document())
        assert rows["h100-zen4"][0] == "cu128"
        assert rows["gh200-grace"][0] == "nothing"
        assert rows["cpu-zen4"][0] == "nothing"
        assert rows["apple-m1"][0] == "no variant"
        rows = self.rows(page(*given.files, PageFile("gpu-2.0.tar.gz", "x")), document())
        assert rows["gh200-grace"][0] == "no variant"

    def test_newest_final_version(self):
        named = {version: document(version) for version in ("2.0", "2.1rc1", "2.2")}
        files = [wheel("cu128"), wheel("cu128", "2.1rc1"), wheel("cu128", "2.2", yanked="")]
        files += [PageFile(name, name) for each in named.values() for name in each]
        documents = {name: data for each in named.values() for name, data in each.items()}
        assert "Which variant of 2.0 would my" in text_of(render(page(*files), documents))

    def test_only_where_there_is_a_choice(self):
        assert self.rows(page(wheel(), wheel(version="1.0")), {}) == {}
        assert self.rows(full_page(), {}) == {}

    def test_same_on_every_machine(self, monkeypatch):
        body = render(full_page(), document())
        project_page._known_machines.cache_clear()
        monkeypatch.setattr("platform.machine", lambda: "riscv64")
        monkeypatch.setattr("platform.system", lambda: "Windows")
        monkeypatch.setenv("NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION", "11.8")
        monkeypatch.setenv("AMD_VARIANT_PROVIDER_FORCE_GFX_ARCH", "gfx90a")
        assert render(full_page(), document()) == body


class TestPolicy:
    def test_allows_its_own_style_alone(self):
        body = render(full_page(), document()).decode()
        policy = html.unescape(re.search(r'Content-Security-Policy" content="([^"]+)"', body)[1])
        (style,) = re.findall(r"(?s)<style>(.*?)</style>", body)
        digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        assert policy == (
            f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
        )
        assert "<script" not in body
        # Neither handlers nor styles in attributes, which the policy would forbid.
        assert not re.search(r"<[^>]+\s(on[a-z]+|style)=", body)


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
        body = render(given, documents)
        reader.feed(body.decode())
        assert {tag for tag, _ in reader.tags} <= {tag for tag, _ in plain.tags} | {"ul", "li"}
        assert "script" not in {tag for tag, _ in reader.tags}
