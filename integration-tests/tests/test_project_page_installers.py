"""Installers and a browser over the pages of projects that people read."""

from __future__ import annotations

import json
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
from variants_cli.pages.project_page import render
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
def test_browser(index, tmp_path):
    """A browser lays it out, and the page breaks no rule of its own policy."""
    done = subprocess.run(
        [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
         f"--user-data-dir={tmp_path}", "--virtual-time-budget=5000", "--enable-logging=stderr",
         f"{index}gpu/"],
        capture_output=True, text=True, encoding="utf-8", check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "CONSOLE" not in done.stderr, done.stderr
    assert "Which variant of 2.0 would my machine get?" in done.stdout
