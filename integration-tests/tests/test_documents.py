"""Links between the documents of the repository."""

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


def anchors(path: Path) -> set[str]:
    """Return what GitHub makes of the headings of a document."""
    headings = re.findall(r"^#+ (.+)$", path.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in headings}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links(document):
    path = ROOT / document
    text = re.sub(r"```.*?```|`[^`]*`(?!\])", "", path.read_text("utf-8"), flags=re.DOTALL)
    for place, anchor in LINK.findall(text):
        target = path.parent / place if place else path
        assert target.exists(), place
        if anchor:
            target = target / "README.md" if target.is_dir() else target
            assert anchor in anchors(target), f"{place}#{anchor}"
