"""Write architecture.svg: what data meets on its way, as docs/explanation/architecture.md has it.

``.venv/bin/python docs/pictures/architecture.py`` writes the file; a test compares it. The
files are those of the page, and a step that the page does not have is an error.
"""

from __future__ import annotations

import re
from html import escape
from pathlib import Path, PurePosixPath
from typing import NamedTuple

FOLDER = Path(__file__).resolve().parent
PAGE = FOLDER.parent / "explanation/architecture.md"
TITLE = "What data meets on its way in uv-variants, the index proxy, variants resolve and pip"
WIDTH, COLUMN, BOX, ROW, HEIGHT, TOP = 1020, 250, 210, 70, 44, 44
PADDING = 15
"""Of a band, above its boxes."""
ENGINE = 7
"""The row of the engine."""
STYLE = """
  svg { font: 13px system-ui, sans-serif; }
  text { fill: #1f2328; text-anchor: middle; } .head { font-weight: 600; font-size: 15px; }
  .file, .name { fill: #59636e; font-size: 11px; } .name { text-anchor: start; }
  .box { fill: #ffffff; stroke: #8c959f; } .theirs { stroke-dasharray: 4 3; }
  .band { fill: #eaeef2; } .engine { fill: #ddf4ff; }
  .way { fill: none; stroke: #59636e; } .tip { fill: #59636e; }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc; } .file, .name { fill: #9198a1; }
    .box { fill: #0d1117; stroke: #656c76; } .band { fill: #1c2128; } .engine { fill: #10233b; }
    .way { stroke: #9198a1; } .tip { fill: #9198a1; }
  }
"""
HEADS = ("uv", "Proxy", "Resolve", "pip")
"""The columns, which are sections of the page."""


class Step(NamedTuple):
    """A box: a step of a section of the page, or what is not of this project.

    Attributes:
        section: of the page; empty for what is not of this project.
        name: of the class or function.
        column, row: its place, from the left and the top.
    """

    section: str
    name: str
    column: int
    row: int


STEPS = (
    Step("uv", "prepare", 0, 0),
    Step("uv", "CommandSession", 0, 1),
    Step("uv", "IndexApplication", 0, 2),
    Step("uv", "IndexServices", 0, 3),
    Step("Proxy", "create_app", 1, 2),
    Step("Proxy", "Responses", 1, 3),
    Step("Proxy", "ProjectViews", 1, 4),
    Step("Resolve", "resolve", 2, 2),
    Step("Resolve", "IndexResolver", 2, 3),
    Step("Resolve", "CandidateEvaluator", 2, 4),
    Step("", "pip's PackageFinder", 3, 2),
    Step("pip", "Session", 3, 3),
    Step("pip", "CandidateOrdering", 3, 4),
    Step("pip", "InfoFiles", 3, 5),
    Step("Resolve", "Session", 1, 5),
    Step("Resolve", "fetch_release_metadata", 2, 5),
    Step("Proxy", "Chooser", 1, 6),
    Step("Resolve", "VariantProvider", 2, 6),
    Step("Resolve", "VariantOrdering", 3, 6),
    Step("The engine", "ReleaseReader", 0, ENGINE),
    Step("The engine", "Detector", 1, ENGINE),
    Step("The engine", "select", 2, ENGINE),
    Step("The engine", "VariantContext", 3, ENGINE),
    Step("", "uv", 0, 8),
    Step("Proxy", "ProjectPages", 1, 8),
    Step("Resolve", "Resolution", 2, 8),
    Step("pip", "reduce_contents", 3, 8),
    Step("uv", "after_success", 0, 9),
    Step("Proxy", "Deliveries", 1, 9),
    Step("Resolve", "write_lock", 2, 9),
    Step("pip", "VariantReporter", 3, 9),
)
BANDS = (
    ("variants_index", 1, 2, 5, "band"),
    ("resolvelib_variants", 2, 3, 6, "band"),
    ("pep_variants, the engine", 0, 3, ENGINE, "band engine"),
)
"""What several use: name, first and last column, row, class."""
WAYS = (
    *(((0, row), (0, row + 1)) for row in (0, 1, 2)),
    ((0, 3), (1, 3)),
    *(((1, row), (1, row + 1)) for row in (2, 3, 4, 5, 6, 7)),
    *(((2, row), (2, row + 1)) for row in (2, 3, 4, 5, 7, 8)),
    ((2, 6), (3, 6)),
    *(((3, row), (3, row + 1)) for row in (2, 3, 4, 5, 6, 7, 8)),
    *(((column, ENGINE), (column + 1, ENGINE)) for column in (0, 1, 2)),
    ((1, 8), (0, 8)),
    ((0, 8), (0, 9)),
    ((1, 8), (1, 9)),
)
"""Arrows between places, a column and a row each."""


def files() -> dict[tuple[str, str], str]:
    """Return the name of the file of each step of the page, by section and name."""
    found = {}
    for section in PAGE.read_text("utf-8").split("\n## ")[1:]:
        head = section.partition("\n")[0]
        for name, path in re.findall(r"^\| \[`(\w+)`\]\(([^)]+)\)", section, re.MULTILINE):
            found[head, name] = PurePosixPath(path).name
    return found


def middle(column: int) -> float:
    """Return where the middle of a column is."""
    return 135 + COLUMN * column


def top(row: int) -> float:
    """Return where the boxes of a row begin."""
    return TOP + ROW * row


def box(step: Step, file: str) -> str:
    """Return the box of a step."""
    x, y = middle(step.column), top(step.row)
    kind = "box" if step.section else "box theirs"
    size = f'width="{BOX}" height="{HEIGHT}" rx="6"'
    name_at, file_at = (y + 19, y + 35) if file else (y + 27, 0)
    parts = [
        f'<rect x="{x - BOX / 2:g}" y="{y:g}" {size} class="{kind}"/>',
        f'<text x="{x:g}" y="{name_at:g}">{escape(step.name)}</text>',
    ]
    if file:
        parts.append(f'<text x="{x:g}" y="{file_at:g}" class="file">{file}</text>')
    return "\n".join(parts)


def way(start: tuple[int, int], end: tuple[int, int]) -> str:
    """Return the arrow between two places: down a column, or along a row."""
    (column, row), (other, below) = start, end
    if column == other:
        # To the engine, not to one of its steps.
        x = middle(column)
        y = top(row) + HEIGHT + (PADDING - 6 if row == ENGINE else 0)
        until = top(below) - (PADDING if below == ENGINE else 0)
        tip = f"M{x:g} {until:g}l-4 -7h8z"
        return f'<path d="M{x:g} {y:g}V{until - 6:g}" class="way"/>\n<path d="{tip}" class="tip"/>'
    sign = 1 if other > column else -1
    y = top(row) + HEIGHT / 2
    x, until = middle(column) + sign * BOX / 2, middle(other) - sign * BOX / 2
    tip = f"M{until:g} {y:g}l{-7 * sign} -4v8z"
    return (
        f'<path d="M{x:g} {y:g}H{until - 6 * sign:g}" class="way"/>\n<path d="{tip}" class="tip"/>'
    )


def picture() -> str:
    """Return the picture."""
    of_page = files()
    parts = [
        f'<text x="{middle(number):g}" y="24" class="head">{escape(head)}</text>'
        for number, head in enumerate(HEADS)
    ]
    for name, first, last, row, kind in BANDS:
        x, y = middle(first) - BOX / 2 - 12, top(row) - PADDING
        width = middle(last) - middle(first) + BOX + 24
        size = f'width="{width:g}" height="{HEIGHT + 2 * PADDING - 6}" rx="8"'
        parts.append(f'<rect x="{x:g}" y="{y:g}" {size} class="{kind}"/>')
        parts.append(f'<text x="{x + 8:g}" y="{y + 11:g}" class="name">{name}</text>')
    parts += (way(*ends) for ends in WAYS)
    parts += (box(step, of_page[step.section, step.name] if step.section else "") for step in STEPS)
    size = f"0 0 {WIDTH} {top(10):g}"
    start = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{size}" role="img">'
    head = f"{start}\n<title>{TITLE}</title>\n<style>{STYLE}</style>"
    return "\n".join((head, *parts, "</svg>", ""))


if __name__ == "__main__":
    (FOLDER / "architecture.svg").write_text(picture(), "utf-8")
