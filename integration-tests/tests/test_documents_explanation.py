"""The console blocks of `docs/explanation`, most of them run on the recorded index."""

from __future__ import annotations

import json
import platform
import runpy
import shutil
import sys

import pytest

from conformance.field.standin import Standin
from support.documents import File, Page
from support.environments import ROOT
from support.index import served
from support.plugins import PLUGIN, acme_index

CHOICE = Page(ROOT / "docs/explanation/choice.md")
RECORDED = "https://variants-index.wheelnext.dev/"
linux = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64" or shutil.which("curl") is None,
    reason="the pages use curl on Linux and show wheels for x86-64",
)


@pytest.fixture
def recorded():
    with served(Standin(api="html", ranges=True)) as index:
        yield index


@pytest.mark.nightly
@linux
def test_choice(reader, recorded):
    reader.use_variants()
    reader.follow(CHOICE, replaced={RECORDED: recorded.url})


def test_the_metadata_shown_is_that_of_torch():
    (file,) = (step for step in CHOICE.steps if isinstance(step, File))
    published = ROOT / "conformance/field/documents" / file.name
    assert json.loads(file.text) == json.loads(published.read_text("utf-8"))


def test_the_picture_of_a_choice_is_what_its_script_writes():
    script = runpy.run_path(str(ROOT / "docs/pictures/choice.py"))
    written = (ROOT / "docs/pictures/choice.svg").read_text("utf-8")
    assert written == script["picture"]()


@pytest.mark.nightly
@linux
def test_trust(reader):
    reader.use_variants()
    checkout = reader.work / "demo"
    checkout.mkdir()
    with served(acme_index(PLUGIN)) as index:
        reader.environ["PIP_INDEX_URL"] = index.url
        reader.follow(
            Page(ROOT / "docs/explanation/trust.md"),
            replaced={"https://index.example/simple/": index.url, "/src/demo": str(checkout)},
        )


@pytest.mark.nightly
@linux
def test_locks(reader, recorded):
    reader.use_variants()
    reader.follow(
        Page(ROOT / "docs/explanation/locks.md"),
        replaced={RECORDED: recorded.url},
        failing={
            "variants resolve torch==2.10.0 -i $INDEX -o pylock.toml "
            "--platform cuda=12.8,sm=9.0,cpu=zen4 --platform cuda=13.0,sm=9.0,cpu=zen4"
        },
    )
