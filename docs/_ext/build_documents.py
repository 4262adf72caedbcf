"""The directive `build-documents`: the rows of build-documents.jsonl, a table for each document."""

from __future__ import annotations

import json
import os
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

from sphinx.util.docutils import SphinxDirective

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from docutils import nodes
    from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]
BAR = r"\|"


class BuildDocuments(SphinxDirective):
    """A section with a table for each document."""

    def run(self) -> list[nodes.Node]:
        """Return the sections."""
        page = Path(self.env.doc2path(self.env.docname))
        data = page.with_suffix(".jsonl")
        self.env.note_dependency(str(data))
        rows = map(json.loads, data.read_text("utf-8").splitlines())
        lines = [
            line
            for title, members in groupby(rows, itemgetter("document"))
            for line in _section(title, members, page)
        ]
        return self.parse_text_to_nodes("\n".join(lines), allow_section_headings=True)


def _section(title: str, rows: Iterator[Mapping[str, str]], page: Path) -> Iterator[str]:
    yield from (f"### {title}", "", "| there | here | |", "|---|---|---|")
    for row in rows:
        answer = f"`{row['prints']}`" if "prints" in row else _link(ROOT / row["page"], page)
        cells = (row["row"], f"`{row['command']}`", answer)
        yield f"| {' | '.join(cell.replace('|', BAR) for cell in cells)} |"


def _link(target: Path, page: Path) -> str:
    """Return a link to another document, or what says that the command is on *page* itself."""
    if target == page:
        return "above"
    return f"[{target.stem}]({os.path.relpath(target, page.parent)})"


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    app.add_directive("build-documents", BuildDocuments)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
