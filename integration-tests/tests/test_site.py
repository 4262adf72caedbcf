"""The documentation site: `make docs` without a warning, and every link and anchor of its pages.

CI runs it with the site that it builds; `test_documents` has the links of the documents.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from urllib.parse import unquote, urlencode, urlsplit

import click
import pytest

from pep_variants.internal import KNOWN_MACHINES
from support.environments import ROOT

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(
        find_spec("sphinx") is None, reason="Sphinx is installed on Python 3.11 and newer"
    ),
]

# Styles, scripts and pages that Sphinx makes without our text.
MADE = {"genindex", "py-modindex", "search", "index"}
BROWSER = next(
    filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "google-chrome"))), None
)


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves files, and says nothing of it."""

    def log_message(self, *arguments):
        """Print nothing."""


class Page(HTMLParser):
    """Links, anchors and text of a page."""

    def __init__(self, path: Path):
        super().__init__()
        self.path = path
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.words: list[str] = []
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.anchors.update(given[key] for key in ("id", "name") if given.get(key))
        self.links += [given[key] for key in ("href", "src") if given.get(key)]

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())


def build(source: Path, output: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-c", source / "docs"]
    return subprocess.run(
        [*command, "-b", "html", "-d", output / "doctrees", *options, source, output / "html"],
        capture_output=True,
        text=True,
        # As CI has it: no colours, and none of the settings of the user.
        env={key: value for key, value in os.environ.items() if key != "FORCE_COLOR"}
        | {"NO_COLOR": "1"},
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    output = tmp_path_factory.mktemp("site")
    done = build(ROOT, output)
    assert (done.returncode, done.stderr) == (0, "")
    return output / "html"


@pytest.fixture(scope="module")
def pages(site):
    found = {path: Page(path) for path in site.rglob("*.html") if "_static" not in path.parts}
    assert len(found) > 30
    return found


def test_links_and_anchors(site, pages):
    wrong = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                wrong.append(f"{path.relative_to(site)}: {link}: no such file")
            elif parts.fragment and target in pages:
                if unquote(parts.fragment) not in pages[target].anchors:
                    wrong.append(f"{path.relative_to(site)}: {link}: no such anchor")
    assert wrong == []


def test_a_wrong_link_is_a_warning(tmp_path):
    docs = tmp_path / "docs"
    docs.mkdir()
    for name in ("_ext", "_static", "_templates"):
        shutil.copytree(ROOT / "docs" / name, docs / name)
    (docs / "conf.py").write_bytes((ROOT / "docs/conf.py").read_bytes())
    (tmp_path / "VERSION").write_text("1\n")
    (tmp_path / "here").mkdir()
    (docs / "index.md").write_text(
        "# Title\n\n[a](gone.md) [b](#nowhere) [c](../here) [d](../here#part) [e](index.md#gone)\n"
    )
    done = build(tmp_path, tmp_path / "out")
    assert done.returncode == 1
    assert done.stderr.count("WARNING") == 4, done.stderr
    for wrong in ("gone.md", "nowhere", "../here#part", "'gone'"):
        assert wrong in done.stderr


def test_every_page_is_in_the_navigation(site, pages):
    start = site / "docs" / "index.html"
    listed = {(start.parent / urlsplit(link).path).resolve() for link in pages[start].links}
    assert {
        str(path.relative_to(site))
        for path in pages
        if path not in listed and path.stem not in MADE
    } == set()


def test_the_first_page_leads_to_the_root_document(site, pages):
    assert "docs/index.html" in pages[site / "index.html"].links


def commands(group: click.Group, name: str):
    context = click.Context(group, info_name=name)
    for each in group.list_commands(context):
        command = group.get_command(context, each)
        if command is None or command.hidden:
            continue
        yield f"{name} {each}", command
        if isinstance(command, click.Group):
            yield from commands(command, f"{name} {each}")


@pytest.mark.parametrize("program", ["variants", "uv-variants", "variants-proxy"])
def test_every_option_of_every_command_is_in_the_reference(site, pages, program):
    from uv_variants.doctor.command import cli as uv_cli
    from variants_cli.main import cli
    from variants_proxy.commands.cli import cli as proxy_cli

    group = {"variants": cli, "uv-variants": uv_cli, "variants-proxy": proxy_cli}[program]
    page = pages[site / "docs" / "reference" / "commands" / f"{program}.html"]
    found = dict(commands(group, program))
    assert found
    for path, command in found.items():
        place = path.replace(" ", "-")
        assert place in page.anchors
        for option in command.params:
            if isinstance(option, click.Option) and not option.hidden:
                longest = max(option.opts, key=lambda name: len(name) - len(name.lstrip("-")))
                assert f"{place}-{longest.lstrip('-')}" in page.anchors, (path, longest)
                assert " ".join((option.help or "").split()) in page.text


def test_the_options_of_uv_variants(site, pages):
    from pep_variants.internal import OPTIONS

    page = pages[site / "docs" / "reference" / "commands" / "uv-variants.html"]
    for option in OPTIONS:
        assert f"uv-variants-{option.name}" in page.anchors
        assert option.help in page.text


@pytest.mark.parametrize(
    ("package", "page"),
    [
        ("pep_variants", "api"),
        ("resolvelib_variants", "api-resolvelib-variants"),
        ("resolvelib_variants.resolution", "api-resolvelib-variants"),
        ("variants_catalog", "api-variants-catalog"),
        ("variants_index", "api-variants-index"),
        ("variants_plugins", "api-variants-plugins"),
        ("variants_proxy", "api-variants-proxy"),
    ],
)
def test_every_public_name_is_in_the_reference(site, pages, package, page):
    found = pages[site / "docs" / "reference" / f"{page}.html"]
    names = {name for name in import_module(package).__all__ if name != "__version__"}
    missing = {name for name in names if f"{package}.{name}" not in found.anchors}
    # A name of two packages is described on one page, to which the other leads.
    assert missing == ({"Sources"} if package == "variants_plugins" else set())
    assert all(f"{package}.{name}" in found.text for name in missing)


def test_the_known_machines(site, pages):
    text = pages[site / "docs" / "reference" / "platforms.html"].text
    for known in KNOWN_MACHINES:
        assert known.name in text
        assert known.facts in text
        assert known.title in text


def test_search_finds_words_of_pages_and_of_the_reference(site):
    text = (site / "searchindex.js").read_text("utf-8")
    index = json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))

    def documents(word: str) -> set[str]:
        found: set[str] = set()
        for kind in ("terms", "titleterms"):
            numbers = index[kind].get(word, [])
            numbers = [numbers] if isinstance(numbers, int) else numbers
            found.update(index["docnames"][number] for number in numbers)
        return found

    assert "docs/how-to/proxy-operating" in documents("nginx")
    assert "docs/reference/commands/variants" in documents("cibuildwheel")
    assert "docs/reference/api" in documents("platform")


@pytest.fixture(scope="module")
def address(site):
    handler = partial(QuietHandler, directory=site)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.skipif(BROWSER is None, reason="needs Chromium")
@pytest.mark.parametrize(
    "symptom",
    [
        "wrong build",
        "torch.cuda.is_available() is False",
        "driver too old",
        "CUDA error: no kernel image is available for execution on the device",
    ],
)
def test_a_symptom_finds_its_page(address, tmp_path, symptom):
    done = subprocess.run(
        [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
         f"--user-data-dir={tmp_path}", "--virtual-time-budget=20000",
         f"{address}/search.html?{urlencode({'q': symptom})}"],
        capture_output=True, text=True,
    )  # fmt: skip
    results = done.stdout.partition('id="search-results"')[2]
    (first, *_) = re.findall(r'<li[^>]*>\s*<a href="([^"?#]+)', results)
    assert first.endswith("how-to/wrong-choice.html")
