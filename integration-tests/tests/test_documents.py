"""Links between the documents, and that the commands of each are run by a test."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from support.environments import ROOT

LINK = re.compile(r"\[[^\]]*\]\((?![a-z]+:)([^)#\s]*)(?:#([^)\s]+))?\)")
LISTED = subprocess.check_output(
    ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"], cwd=ROOT, text=True
)
DOCUMENTS = [name for name in LISTED.splitlines() if (ROOT / name).exists()]
# Read by people who work on the project, or run by tests of their own that do not name the file.
NOT_RUN = {
    "CONTRIBUTING.md",
    "conformance/README.md",
    "conformance/field/README.md",
    "integration-tests/hostile/README.md",
}


def anchors(path: Path) -> set[str]:
    """Return what GitHub makes of the headings of a document."""
    headings = re.findall(r"^#+ (.+)$", path.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in headings}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links(document):
    path = ROOT / document
    # A change note becomes a part of CHANGELOG.md.
    is_note = document.startswith("changes/") and path.name != "README.md"
    folder = ROOT if is_note else path.parent
    text = re.sub(r"```.*?```|`[^`]*`(?!\])", "", path.read_text("utf-8"), flags=re.DOTALL)
    for place, anchor in LINK.findall(text):
        target = folder / place if place else path
        assert target.exists(), place
        if anchor:
            target = target / "README.md" if target.is_dir() else target
            assert anchor in anchors(target), f"{place}#{anchor}"


def test_the_commands_of_every_document_are_run():
    tests = "".join(
        path.read_text("utf-8") for path in Path(__file__).parent.glob("test_*.py")
    ).replace('" / "', "/")
    shown = {name for name in DOCUMENTS if "```console" in (ROOT / name).read_text("utf-8")}
    assert {name for name in shown - NOT_RUN if f'{name}"' not in tests} == set()
    assert NOT_RUN <= shown


@pytest.mark.parametrize(
    "document",
    ["README.md", "docs/explanation/choice.md", "docs/explanation/compared.md",
     "docs/how-to/driver-too-old.md"],
)  # fmt: skip
def test_projects_of_which_an_older_release_is_taken(document):
    """Those of the catalogue, and no others; what goes with torch is the torch family."""
    entries = {path.stem: path.read_text("utf-8") for path in entries_folder().glob("*.toml")}
    first = {name for name, text in entries.items() if "\nbefore-version = true" in text}
    family = {name for name in first if name == "torch" or '"torch"' in coherent(entries[name])}
    text = " ".join((ROOT / document).read_text("utf-8").split())
    (said,) = set(re.findall(r"the torch family(?:,| and)[^.;:]{0,250}?and cupy", text))
    listed = {word.strip(",") for word in said.split()} & entries.keys()
    assert first - family <= listed <= first


def test_the_figures_of_the_first_pages():
    """They are those of the comparison, and the README stays short."""
    text = (ROOT / "docs/explanation/compared.md").read_text("utf-8")
    row = re.search(
        r"\| torch \((\d+) machines\) \|(?: 0 \+ 0 \|){3} (\d+) \+ (\d+) \| (\d+) ", text
    )
    assert row is not None
    machines, uv, older, pip = row.groups()
    readme = (ROOT / "README.md").read_text("utf-8")
    assert f"Of {machines} machines, {pip} leave" in readme
    assert f", {uv} with" in readme
    assert len(readme.split()) <= 700
    home = (ROOT / "docs/index.md").read_text("utf-8")
    for said in (
        f"[{machines} machines]",
        f"- **{pip}** with",
        f"- **{uv}** with",
        f"on {older} more",
    ):
        assert said in home


def entries_folder() -> Path:
    return ROOT / "packages" / "variants-catalog" / "src" / "variants_catalog" / "projects"


def coherent(entry: str) -> str:
    return "".join(re.findall(r"^coherent = .*$", entry, re.MULTILINE))
