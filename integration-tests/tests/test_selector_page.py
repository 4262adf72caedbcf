"""The selector of the site, in a real browser: choose, copy, share; and without JavaScript.

The page is built with answers that were written for these tests, not with those of the catalogue:
`test_selector` compares those with what `variants resolve` says.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from support.environments import ROOT

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
BROWSER = os.environ.get("CHROME") or next(filter(None, map(shutil.which, BROWSERS)), None)
HOW_TO = "ci docker driver-too-old driver-upgrade one-lock uv uv-locks wrong-choice"
PAGES = (
    "tutorials/team.md",
    "tutorials/torch.md",
    *(f"how-to/{name}.md" for name in HOW_TO.split()),
)
"""Pages among which the search looks."""
ANSWERS = Path(__file__).parent / "selector" / "answers.json"

pytestmark = [
    pytest.mark.skipif(
        find_spec("sphinx") is None or find_spec("playwright") is None,
        reason="Sphinx and playwright are installed on Python 3.11 and newer",
    ),
    pytest.mark.skipif(BROWSER is None, reason="there is no Chromium, see CONTRIBUTING.md"),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the page alone, as `docs/conf.py` says."""
    root = tmp_path_factory.mktemp("site")
    (root / "docs").mkdir()
    for name in ("_ext", "_static", "_templates"):
        shutil.copytree(ROOT / "docs" / name, root / "docs" / name)
    for name in ("conf.py", "selector.md"):
        shutil.copy(ROOT / "docs" / name, root / "docs" / name)
    (root / "VERSION").write_text("1\n")
    for name in PAGES:
        (root / "docs" / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / "docs" / name, root / "docs" / name)
    (root / "docs/index.md").write_text("# Site\n\n```{toctree}\n:glob:\n\n*\n*/*\n```\n")
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "-c",
        root / "docs",
    ]
    more = ["-D", f"selector_answers={ANSWERS}", "-d", root / "doctrees", root, root / "html"]
    done = subprocess.run([*command, *more], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "selector" not in done.stderr  # the other pages have links to pages that are not here
    return (root / "html/docs/selector.html").as_uri()


@pytest.fixture(scope="module")
def chromium():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        options = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-component-update")
        browser = playwright.chromium.launch(executable_path=BROWSER, args=options)
        yield browser
        browser.close()


class Page:
    """A page of the browser, what it asked for and what it complained of."""

    def __init__(self, chromium, url, **options):
        self.context = chromium.new_context(
            **{"viewport": {"width": 1280, "height": 900}, **options}
        )
        self.page = self.context.new_page()
        self.page.set_default_timeout(30000)
        self.url = url
        self.asked = []
        self.wrong = []
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("console", lambda message: self.wrong.append(message.text))

    def open(self, query=""):
        self.page.goto(self.url + query)
        if self.page.locator("#selector-gpu").is_visible():
            self.page.wait_for_selector("#selector-gpu:enabled")
        return self

    def text(self, selector):
        found = self.page.locator(selector)
        return found.inner_text() if found.is_visible() else ""

    def part(self, name):
        return self.text(f"[data-part={name}]")

    @property
    def query(self):
        query = parse_qs(urlsplit(self.page.url).query, keep_blank_values=True)
        return {name: value for name, (value,) in query.items()}

    def close(self):
        self.context.close()
        assert self.wrong == []
        assert {urlsplit(url).scheme for url in self.asked} == {"file"}


@pytest.fixture
def browser(chromium, site):
    page = Page(chromium, site)
    yield page
    page.close()


V100 = "?project=torch&system=linux&gpu=v100&driver=570&python=3.11&installer=uv"
LINE = "uv pip install torch==2.14.0 --index https://download.pytorch.org/whl/cu126"


def test_choose_by_keyboard(browser):
    keyboard = browser.open("?system=linux").page.keyboard
    browser.page.focus("#selector-project")
    keyboard.press("Tab")  # system
    keyboard.press("Tab")  # GPU
    keyboard.type("GeForce rtx 5070 Ti")
    assert browser.page.locator("[role=option]").all_inner_texts() == ["NVIDIA RTX 5070 Ti"]
    keyboard.press("Enter")
    assert browser.part("title") == "torch 2.15.0 for CUDA 13.2"
    keyboard.press("Tab")  # driver
    keyboard.press("ArrowUp")  # from 'I don't know' to the oldest
    assert browser.query == {
        "project": "torch",
        "system": "linux",
        "gpu": "rtx-5070-ti",
        "driver": "570",
        "python": "3.12",
        "installer": "pip",
    }
    assert browser.part("title") == "torch 2.13.0 for CUDA 12.9"
    assert browser.text("#selector-said") == "torch 2.13.0 for CUDA 12.9"
    keyboard.press("Tab")
    keyboard.press("Tab")
    keyboard.press("ArrowRight")
    assert browser.part("without").startswith("uv pip install")


def test_choose_by_mouse(browser):
    page = browser.open("?system=windows").page
    assert browser.text("#selector-none").startswith("Choose the GPU")
    page.click("text=Linux, x86-64")
    page.click("#selector-gpu")
    assert page.locator("[role=option]").count() == 5
    page.click("text=AMD Instinct MI300X")
    assert page.locator("#selector-driver").is_hidden()
    assert browser.part("title") == "torch 2.13.0 for ROCm 7.2"
    page.click("label:has-text('3.13')")
    assert browser.part("title") == "No wheel of torch fits"
    assert browser.part("why") == "torch 2.15.0 has no wheel for Python 3.13."
    assert not page.locator("[data-block=with], [data-block=without]").filter(visible=True).count()
    page.select_option("#selector-project", "jax")
    assert browser.part("title") == "jax 0.9.0 for CPUs"
    page.select_option("#selector-project", "vllm")
    assert browser.part("title") == "vllm: ask on your machine"
    assert browser.part("with") == "pip install --variant-catalog default vllm"
    page.select_option("#selector-project", "jax")
    page.click("text=macOS")  # where there is one GPU
    assert (browser.query["gpu"], page.input_value("#selector-gpu")) == ("apple-m1", "Apple M1")


@pytest.mark.parametrize("width", [390, 1280])
def test_the_answer_says_all_and_fits(chromium, site, width):
    browser = Page(chromium, site, viewport={"width": width, "height": 844}).open(V100)
    data = json.loads(ANSWERS.read_text("utf-8"))
    told = data["answers"][1]
    for name in ("title", "why", "not_newer", "warning", "again", "check"):
        assert browser.part(name) == told[name]
    assert browser.part("with") == data["projects"][0]["with"]["uv"]
    assert browser.part("without") == LINE
    assert "True" in browser.part("expect")
    browser.page.click("text=How this is known")
    facts = browser.part("facts")
    for fact in (data["facts"][number] for number in told["facts"]):
        assert fact["text"] in facts
        assert fact["date"] in facts
        assert (fact["measured"] or "not measured") in facts
    browser.page.click("text=pixi")
    assert told["without_why"]["pixi"] in browser.part("without_why")
    assert "never tried" in browser.part("with_why")
    browser.page.click("summary:text-is('torch')")
    wide = "document.documentElement.scrollWidth - innerWidth"
    assert browser.page.evaluate(wide) <= 0
    browser.close()


def test_copy_the_line_and_a_link(chromium, site):
    browser = Page(chromium, site, permissions=["clipboard-read", "clipboard-write"]).open(V100)
    copied = "navigator.clipboard.readText()"
    browser.page.click("[data-copies=without]")
    browser.page.wait_for_selector("[data-copies=without]:text-is('Copied')")
    assert browser.text("#selector-said") == "Copied"
    assert browser.page.evaluate(copied) == LINE
    browser.page.focus("text=Copy a link to this answer")
    browser.page.keyboard.press("Enter")
    browser.page.wait_for_selector("button:text-is('Copied') >> nth=1")
    link = browser.page.evaluate(copied)
    assert link == site + V100
    browser.close()
    other = Page(chromium, link, viewport={"width": 390, "height": 844}).open()
    assert other.part("without") == LINE
    assert other.page.input_value("#selector-gpu") == "NVIDIA V100"
    other.close()


def test_a_link_with_values_that_are_not_known(browser):
    browser.open("?project=torch&system=linux&gpu=<b>gtx</b>&python=2.7&driver=570&other=1")
    note = browser.text("#selector-note")
    assert "gpu ‘<b>gtx</b>’" in note
    assert "python ‘2.7’" in note
    assert "Choose the GPU" in browser.text("#selector-none")
    browser.open("?gpu=v100&system=linux&driver=999")
    assert "driver ‘999’" in browser.text("#selector-note")
    assert browser.part("title") == "torch 2.14.0 for CUDA 12.6"


def test_a_gpu_that_is_not_in_the_list(browser):
    page = browser.open(V100).page
    page.fill("#selector-gpu", "GTX 9999")
    assert page.locator("[role=listbox]").is_hidden()
    assert "compute_cap" in browser.text("#selector-gpu-unknown")
    page.fill("#selector-gpu", "12.0")
    page.keyboard.press("Tab")
    assert browser.query["gpu"] == "rtx-5070"
    page.fill("#selector-gpu", "gfx942")
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    assert page.input_value("#selector-gpu") == "NVIDIA RTX 5070"


def test_without_javascript(chromium, site):
    browser = Page(
        chromium, site, java_script_enabled=False, viewport={"width": 390, "height": 844}
    )
    page = browser.open().page
    assert page.locator("form#selector").is_hidden()
    page.click("summary:text-is('torch')")
    rows = page.locator("#torch tbody tr").all_inner_texts()
    assert len(rows) == 10
    (row,) = (row for row in rows if "V100" in row)
    assert [*map(str.strip, row.split("\n"))][:3] == ["NVIDIA V100", "any", "3.10 to 3.13"]
    assert "pip install torch==2.14.0 --index-url" in row
    page.goto(f"{site}#jax-macos-0-9-0-cpu")
    assert page.locator("#jax-macos-0-9-0-cpu").is_visible()
    browser.close()


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("uv lock cpu and gpu", "how-to/one-lock.html"),
        (
            "no kernel image is available",
            "how-to/wrong-choice.html#cuda-error-no-kernel-image-is-available-for-execution-on-the-device",
        ),
        ("is_available() False", "how-to/wrong-choice.html#torch-cuda-is-available-is-false"),
        ("which build 5090", "selector.html"),
        ("docker", "how-to/docker.html"),
    ],
)
def test_a_search_opens_the_heading(chromium, site, query, first):
    page = chromium.new_page()
    page.goto(site.replace("docs/selector.html", f"search.html?q={quote(query)}"))
    found = page.locator("#search-results li > a")
    found.first.wait_for(timeout=30000)
    page.locator(".search-summary:has-text('finished')").wait_for(timeout=30000)
    assert found.first.get_attribute("href") == f"docs/{first}"
    page.close()


def members(text, order):
    """Expand what a table says of drivers or Pythons; *order* is all that there are."""
    found = set()
    for part in text.split(", "):
        first, _, last = part.replace(" or newer", f" to {order[-1]}").partition(" to ")
        found.update(order[order.index(first) : order.index(last or first) + 1])
    return found


def test_the_tables_say_what_the_form_says(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs/_ext")
    from selector_page import rows

    data = json.loads(ANSWERS.read_text("utf-8"))
    for project, system in itertools.product(data["projects"], data["machines"]):
        told = {}
        for row in rows(data, project, system):
            for gpu in data["gpus"]:
                names = row.gpus.replace("; ", ", ").split(", ")
                if not {gpu["title"], gpu["title"].partition(" ")[2]}.isdisjoint(names):
                    drivers = gpu["drivers"].get(system, {"ids": [""]})["ids"]
                    known = [driver for driver in reversed(drivers) if driver]
                    here = (
                        known
                        if row.drivers == "any"
                        else members(row.drivers, known)
                        if known
                        else [""]
                    )
                    for driver, python in itertools.product(
                        here, members(row.pythons, data["pythons"])
                    ):
                        key = (f"{gpu['systems'][system]}/{driver}", python)
                        assert told.setdefault(key, row.told.title) == row.told.title, key
        wanted = {
            (machine, python): data["answers"][answer]["title"]
            for machine, number in zip(
                data["machines"][system], data["choices"][project["id"]][system]
            )
            for python, answer in zip(data["pythons"], data["rows"][number])
            if not machine.endswith("/")
            or not any(
                each != machine and each.startswith(machine) for each in data["machines"][system]
            )
        }
        assert told == wanted


class Inline(HTMLParser):
    """What a content security policy without 'unsafe-inline' would stop."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        inline = tag == "style" or (tag == "script" and "src" not in dict(attrs))
        if inline or any(name == "style" or name.startswith("on") for name, _ in attrs):
            self.found.append((tag, attrs))


def test_nothing_is_inline(site):
    text = Path(urlsplit(site).path).read_text("utf-8")
    found = Inline()
    found.feed(text.partition('class="selector"')[2].partition("<footer")[0])
    assert found.found == []
    script = (ROOT / "docs/_static/selector.js").read_text("utf-8")
    assert script.startswith('"use strict";')
    assert "innerHTML" not in script
