"""The documentation site: `make docs` without a warning, and what its extensions make.

Sphinx warns of links to nothing and of pages without a place in the navigation. CI runs this with
the site that it builds; `test_documents` has the links of the documents.
"""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import click
import pytest

import doors
from pep_variants.machines import KNOWN_MACHINES
from pep_variants.options import OPTIONS
from support.documents import commands
from support.environments import ROOT

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(
        find_spec("sphinx") is None, reason="Sphinx is installed on Python 3.11 and newer"
    ),
]


def build(source: Path, output: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-c", source / "docs"]
    # As CI has it: no colours, and none of the settings of the user.
    environ = {key: value for key, value in os.environ.items() if key != "FORCE_COLOR"}
    return subprocess.run(
        [*command, "-b", "html", "-d", output / "doctrees", source, output / "html"],
        capture_output=True,
        text=True,
        env={**environ, "NO_COLOR": "1"},
    )


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    output = tmp_path_factory.mktemp("site")
    done = build(ROOT, output)
    assert (done.returncode, done.stderr) == (0, "")
    assert 'href="docs/index.html"' in (output / "html/index.html").read_text("utf-8")
    return output / "html/docs/reference"


def anchors(page: Path) -> set[str]:
    return set(re.findall(r'\bid="([^"]+)"', page.read_text("utf-8")))


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
    (docs / "alone.md").write_text("# In no tree\n")
    done = build(tmp_path, tmp_path / "out")
    assert done.returncode == 1
    assert done.stderr.count("WARNING") == 5, done.stderr
    for wrong in ("gone.md", "nowhere", "../here#part", "'gone'", "alone.md"):
        assert wrong in done.stderr


def test_every_option_of_every_command_is_in_the_reference(reference):
    from uv_variants._doctor.command import cli as uv_cli
    from variants_cli.main import cli
    from variants_proxy._commands.cli import cli as proxy_cli

    for program, group in (
        ("variants", cli),
        ("uv-variants", uv_cli),
        ("variants-proxy", proxy_cli),
    ):
        there = anchors(reference / f"commands/{program}.html")
        found = dict(commands(group, program))
        assert found
        for path, command in found.items():
            place = path.replace(" ", "-")
            assert place in there
            for option in command.params:
                if isinstance(option, click.Option) and not option.hidden:
                    longest = max(option.opts, key=lambda name: len(name) - len(name.lstrip("-")))
                    assert f"{place}-{longest.lstrip('-')}" in there, (path, longest)
        if program == "uv-variants":
            assert {f"uv-variants-{option.name}" for option in OPTIONS} <= there


LIBRARIES = {
    "pep_variants": "api",
    "resolvelib_variants": "api-resolvelib-variants",
    "variants_catalog": "api-variants-catalog",
    "variants_index": "api-variants-index",
    "variants_plugins": "api-variants-plugins",
    "variants_proxy": "api-variants-proxy",
}
"""The pages of the reference by package."""


@pytest.mark.parametrize(
    "module",
    [
        module
        for name, package in doors.packages(ROOT).items()
        if name in LIBRARIES
        for module in doors.public_modules(package)
    ],
)
def test_every_public_name_is_in_the_reference(reference, module):
    there = anchors(reference / f"{LIBRARIES[module.partition('.')[0]]}.html")
    assert f"module-{module}" in there
    names = import_module(module).__all__
    assert [name for name in names if f"{module}.{name}" not in there] == []


def test_the_known_machines(reference):
    text = (reference / "platforms.html").read_text("utf-8")
    assert all(f">{known.name}<" in text for known in KNOWN_MACHINES)


def test_the_rows_of_the_documents(reference):
    tables = (reference / "build-documents.html").read_text("utf-8").partition('id="the-rows"')[2]
    rows = re.findall(r"<tr[^>]*><td><p>(.*?)</p></td>", tables, re.DOTALL)
    text = (ROOT / "docs/reference/build-documents.jsonl").read_text("utf-8")
    there = [re.sub("<[^>]+>", "", html.unescape(row)) for row in rows]
    assert there == [json.loads(line)["row"].replace("`", "") for line in text.splitlines()]
