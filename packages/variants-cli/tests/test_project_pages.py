"""Pages of projects for people: the links in them are those that installers know."""

import base64
import hashlib
import html
import json
import re
from html.parser import HTMLParser

import pytest

from pep_variants import limits
from variants_cli.project_pages import choice_data, machines, render
from variants_cli.project_pages.wording import size, sizes
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


def data_of(body):
    found = re.search(rb'<script type="application/json" id="data">(.*?)</script>', body, re.DOTALL)
    return found and json.loads(found[1])


class TestScript:
    def test_only_where_there_is_a_choice(self):
        body = render(page(wheel(), wheel(version="1.0")), {})
        assert b"<script" not in body
        assert b"<noscript" not in body

    def test_policy_allows_what_is_there(self):
        body = render(full_page(), document()).decode()
        policy = html.unescape(re.search(r'Content-Security-Policy" content="([^"]+)"', body)[1])
        for pattern in (r"(?s)<script>(.*?)</script>", r"(?s)<style>(.*?)</style>"):
            (content,) = re.findall(pattern, body)
            digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
            assert f"'sha256-{digest}'" in policy
        assert policy.startswith("default-src 'none'")
        assert "unsafe" not in policy
        # Neither handlers nor styles in attributes, which the policy would forbid.
        assert not re.search(r"<[^>]+\s(on[a-z]+|style)=", body.partition("<script")[0])

    def test_script_is_no_markup(self):
        (script,) = re.findall(rb"(?s)<script>(.*?)</script>", render(full_page(), document()))
        # The parser of uv looks for tags in scripts, too.
        assert not re.search(rb"<[A-Za-z!/?]", script)
        assert b"innerHTML" not in script
        assert len(script) < 30_000

    def test_files_are_in_the_order_of_the_page(self):
        body = render(full_page(), document()).decode()
        (release, older) = data_of(body.encode())["releases"]
        assert (release["version"], older["version"]) == ("2.0", "1.0")
        assert release["labels"] == ["cu128", "cu126", "v3", "null", None, None]
        assert [row for row, *_ in release["files"]] == [0, 1, 2, 3, 4, 5]
        labels = re.findall(r"data-(?:label|kind)=(\w+)", body)
        assert labels[:6] == ["cu128", "cu126", "v3", "null", "wheels", "source"]

    def test_python_of_files(self):
        def fits(requires, name="gpu-2.0-py3-none-any-cu128.whl"):
            files = (PageFile(name, name, requires_python=requires), wheel("null"))
            data = data_of(render(page(*files, *full_page().files[-3:-2]), document()))
            kind = data["releases"][0]["files"][0][1]
            width = len(data["pythons"])
            places = data["kinds"][kind][:width]
            return [p for p, place in zip(data["pythons"], places, strict=True) if place >= 0]

        assert fits(None) == ["3.14", "3.13", "3.12", "3.11", "3.10"]
        assert fits(">=3.12") == ["3.14", "3.13", "3.12"]
        assert fits(">=3.12.4,<3.14") == ["3.13", "3.12"]
        assert fits("nonsense") == fits(None)
        assert fits(None, "gpu-2.0-cp39-cp39-manylinux_2_28_x86_64-cu128.whl") == ["3.9"]
        assert fits(None, "gpu-2.0-cp312-abi3-manylinux_2_28_x86_64-cu128.whl") == fits(">=3.12")

    def test_systems_without_files_are_left_out(self):
        name = "gpu-2.0-cp312-cp312-win_amd64-cu128.whl"
        data = data_of(render(page(PageFile(name, name), *full_page().files[-3:-2]), document()))
        assert data["systems"] == [["windows-x86_64", "Windows, x86-64"]]

    def test_late_releases(self):
        files = [wheel("cu128"), wheel("cu128", "2.1rc1"), wheel("cu128", "2.2", yanked="")]
        data = data_of(render(page(*files), document()))
        late = {release["version"]: release.get("late") for release in data["releases"]}
        assert late == {"2.2": True, "2.1rc1": True, "2.0": None}

    def test_problem(self):
        data = data_of(render(full_page(), {}))
        assert data["releases"][0]["problem"] == "the index does not say what these variants need"

    def test_same_on_every_machine(self, monkeypatch):
        body = render(full_page(), document())
        for cache in (choice_data._target, choice_data._place, machines.machine_tree):
            cache.cache_clear()
        monkeypatch.setattr("platform.machine", lambda: "riscv64")
        monkeypatch.setattr("platform.system", lambda: "Windows")
        monkeypatch.setenv("NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION", "11.8")
        monkeypatch.setenv("AMD_VARIANT_PROVIDER_FORCE_GFX_ARCH", "gfx90a")
        assert render(full_page(), document()) == body


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
        scripts = [tag for tag, _ in reader.tags if tag == "script"]
        assert len(scripts) == [tag for tag, _ in plain.tags].count("script") == 2
        assert data_of(body)["project"] == "gpu"


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
