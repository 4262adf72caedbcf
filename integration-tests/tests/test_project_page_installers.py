"""Installers and a browser over the pages of projects that people read."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pip._internal.index.collector import IndexContent, parse_links

from conformance.field.standin import pages
from support.environments import clean_environ
from support.loopback import served_folder
from support.wheels import Wheel
from variants_cli.project_pages import render
from variants_index.pages import HTML, Page, PageFile, html_page, html_projects, read_page

BROWSER = next(
    filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "google-chrome"))), None
)
DOCUMENT = {
    "$schema": "https://variants-schema.wheelnext.dev/peps/825/v0.1.1.json",
    "default-priorities": {"namespace": ["nvidia", "x86_64"]},
    "variants": {
        "cu126": {"nvidia": {"cuda_version_lower_bound": ["12.6"]}},
        "cu130": {"nvidia": {"cuda_version_lower_bound": ["13.0"], "sm_arch": ["90_real"]}},
        "v3": {"x86_64": {"level": ["v3"]}},
        "null": {},
    },
}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An index of static files with the pages alone that people read; its URL."""
    folder = tmp_path_factory.mktemp("index")
    files = []
    for version in ("1.0", "2.0"):
        for label in (None, *DOCUMENT["variants"]):
            single = {**DOCUMENT, "variants": {label: DOCUMENT["variants"].get(label)}}
            wheel = Wheel("gpu", version, label, variant_json=single if label else None)
            (folder / wheel.filename).write_bytes(wheel.build())
            size = (folder / wheel.filename).stat().st_size
            yanked = version == "2.0" and label in (None, "v3")
            more = {"yanked": "broken <a href='x.whl'>"} if yanked else {}
            files.append(PageFile(wheel.filename, f"../../{wheel.filename}", size=size, **more))
        name = f"gpu-{version}-variants.json"
        (folder / name).write_text(json.dumps(DOCUMENT), "utf-8")
        files.append(PageFile(name, f"../../{name}"))
    documents = {name: json.dumps(DOCUMENT).encode() for name in (f.filename for f in files)}
    (folder / "simple" / "gpu").mkdir(parents=True)
    body = render(Page("gpu", tuple(files)), documents)
    (folder / "simple" / "gpu" / "index.html").write_bytes(body)
    (folder / "simple" / "index.html").write_bytes(html_projects(["gpu"]))
    with served_folder(folder) as url:
        yield f"{url}simple/"


def installed(tmp_path: Path, *command: str) -> list[str]:
    """Run an installer; return what it installed."""
    target = tmp_path / "target"
    done = subprocess.run(
        [sys.executable, "-m", *command, "--target", str(target)],
        capture_output=True,
        text=True,
        check=False,
        env=clean_environ(),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return sorted(path.name.removesuffix(".dist-info") for path in target.glob("*.dist-info"))


@pytest.mark.parametrize(("asked", "found"), [("gpu", "gpu-1.0"), ("gpu==2.0", "gpu-2.0")])
def test_uv(index, tmp_path, asked, found):
    # The file without a label is yanked in 2.0, and the only one for installers without variants.
    command = ("uv", "pip", "install", "--no-cache", "--index-url", index, asked)
    assert installed(tmp_path, *command) == [found]


@pytest.mark.parametrize(("asked", "found"), [("gpu", "gpu-1.0"), ("gpu==2.0", "gpu-2.0")])
def test_pip(index, tmp_path, asked, found):
    command = ("pip", "install", "--no-cache-dir", "--index-url", index, asked)
    assert installed(tmp_path, *command) == [found]


@pytest.mark.parametrize("project", sorted(pages()))
def test_published(project):
    found = pages()[project]
    documents = {name: path.read_bytes() for name, path in found.documents.items()}
    files = tuple(
        PageFile(name, f"../../{name}", {"sha256": "0" * 64})
        for name in (*found.wheels, *documents)
    )
    page = Page(project, files)
    url = f"https://index.example/simple/{project}/"
    body = render(page, documents)
    # Ours, then that of pip: the same links as of a page of links.
    one, other = (read_page(each, HTML, url, project) for each in (body, html_page(page)))
    assert sorted(one.files, key=str) == sorted(other.files, key=str)
    links = [
        {(link.url, link.hash) for link in parse_links(IndexContent(each, HTML, "utf-8", url))}
        for each in (body, html_page(page))
    ]
    assert links[0] == links[1]
    assert len(links[0]) == len(files)
    assert len(body) < 2 * len(html_page(page)) + 80_000


@pytest.mark.skipif(BROWSER is None, reason="needs Chromium")
class TestBrowser:
    """What the script shows, for choices in the fragment of the address."""

    def text(self, tmp_path: Path, url: str) -> str:
        """Return the text of the page when the script has run, and what it logged."""
        done = subprocess.run(
            [
                str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
                f"--user-data-dir={tmp_path}", "--virtual-time-budget=5000",
                "--enable-logging=stderr", url,
            ],
            capture_output=True, text=True, encoding="utf-8", check=False, timeout=60,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "CONSOLE" not in done.stderr, done.stderr  # errors, and what the policy forbids
        body = re.sub(r"(?s)<(script|style|noscript)\b.*?</\1>", "", done.stdout)
        section = re.search(r'(?s)<section class="box" id="choice"[^>]*>.*?</section>', body)
        assert section is not None
        assert " hidden" not in section[0].partition(">")[0]
        return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", section[0])))

    @pytest.mark.parametrize(
        ("fragment", "said"),
        [
            ("machine=h100-sapphirerapids", "Chosen for gpu 2.0: cu130"),
            ("machine=h100-zen4", "needs CUDA driver 13.0 or newer, this one supports up to 12.8"),
            ("machine=mi300x-rocm6.4", "Chosen for gpu 2.0: null"),
            ("machine=mi300x-rocm6.4&version=1.0", "Chosen for gpu 1.0: v3"),
            ("machine=cpu-graviton3", "Chosen for gpu 2.0: null"),
            ("machine=apple-m1", "macOS, Apple silicon, Python 3.14"),
            ("machine=h100-zen4&version=1.0", "Chosen for gpu 1.0: cu126"),
            ("gpu=nvidia-9.0&driver=13.0&cpu=x86_64_v3", "Chosen for gpu 2.0: cu130"),
            ("gpu=nvidia-8.0&driver=12.8&cpu=zen3", "Chosen for gpu 2.0: cu126"),
            ("gpu=nvidia-8.0&driver=1&cpu=zen3", "CUDA 1.0 is outside of what is known"),
            ("gpu=amd-gfx942&rocm=x", "Write the ROCm version like 6.4."),
            ("cpu=x86_64_v2", "Chosen for gpu 2.0: null"),
        ],
    )
    def test_choice(self, index, tmp_path, fragment, said):
        assert said in self.text(tmp_path, f"{index}gpu/#{fragment}")

    @pytest.mark.parametrize(
        "fragment", ["", "#v1.0", "#%", "#machine=<script>", "#machine=", "#="]
    )
    def test_no_choice(self, index, tmp_path, fragment):
        assert "Chosen" not in self.text(tmp_path, f"{index}gpu/{fragment}")

    @pytest.mark.parametrize(
        ("fragment", "said"),
        [
            ("cpu=x86_64_v3", "Chosen for gpu 1.0: t29"),
            ("cpu=x86_64_v3&abi.torch=2.8", "Chosen for gpu 1.0: t28"),
            ("cpu=x86_64_v3&abi.torch=2.8", "is built against torch 2.9, this machine has 2.8"),
            ("cpu=x86_64_v3&abi.torch=2.7", "Chosen for gpu 1.0: t29"),
        ],
    )
    def test_page_on_a_disk(self, tmp_path, fragment, said):
        variants = {f"t{x}": {"abi_dependency": {"torch": [f"2.{x % 10}"]}} for x in (28, 29)}
        document = json.dumps({**DOCUMENT, "variants": {**variants, "null": {}}}).encode()
        names = [f"gpu-1.0-py3-none-any-{label}.whl" for label in (*variants, "null")]
        files = (PageFile(name, name) for name in (*names, "gpu-1.0-variants.json"))
        body = render(Page("gpu", tuple(files)), {"gpu-1.0-variants.json": document})
        path = tmp_path / "index.html"
        path.write_bytes(body)
        assert said in self.text(tmp_path / "browser", f"{path.as_uri()}#{fragment}")

    def test_address_of_the_index(self, index, tmp_path):
        done = subprocess.run(
            [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
             f"--user-data-dir={tmp_path}", "--virtual-time-budget=5000", f"{index}gpu/index.html"],
            capture_output=True, text=True, encoding="utf-8", check=False, timeout=60,
        )  # fmt: skip
        assert f'--index-url <span class="index unknown">{index}</span> gpu' in done.stdout
