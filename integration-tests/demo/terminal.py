"""What was typed in a terminal, and what it printed, as an SVG."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

COLUMNS = 112
_WIDTH, _LINE, _SIZE, _MARGIN, _BAR = 8.0, 19, 13.3, 16, 34

_STYLE = """
text { font: %spx ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  fill: #d7dde5; white-space: pre; }
.typed { fill: #ffffff; font-weight: bold; }
.prompt { fill: #7fb4ff; }
.chosen { fill: #8fd19e; }
.title { fill: #8b95a3; }
"""


@dataclass(frozen=True)
class Typed:
    """A command and what it printed.

    Attributes:
        command: one line.
        lines: as printed; those longer than a terminal are wrapped.
    """

    command: str
    lines: tuple[str, ...]


def wrapped(line: str) -> list[str]:
    """Return *line* as a terminal of `COLUMNS` shows it."""
    return [line[at : at + COLUMNS] for at in range(0, len(line), COLUMNS)] or [""]


def svg(title: str, steps: Sequence[Typed], marked: Iterable[str] = ()) -> str:
    """Return the picture.

    Args:
        title: of the window.
        steps: in order.
        marked: beginnings of printed lines that stand out; blanks before them do not count.
    """
    marks = tuple(marked)
    row = 0
    texts: list[str] = []

    def place(row: int, column: int = 0) -> str:
        return f'x="{_MARGIN + column * _WIDTH:g}" y="{_BAR + _MARGIN + row * _LINE + 10}"'

    for step in steps:
        shown = html.escape(step.command, quote=False)
        texts.append(
            f'<text class="prompt" {place(row)}>$</text>'
            f'<text class="typed" {place(row, 2)}>{shown}</text>'
        )
        row += 1
        for line in step.lines:
            kind = "chosen" if marks and line.lstrip().startswith(marks) else "printed"
            for part in wrapped(line):
                texts.append(
                    f'<text class="{kind}" {place(row)}>{html.escape(part, quote=False)}</text>'
                )
                row += 1
        row += 1
    width = int(_MARGIN * 2 + COLUMNS * _WIDTH)
    height = _BAR + _MARGIN * 2 + (row - 1) * _LINE
    described = html.escape(" ".join(f"$ {step.command}" for step in steps))
    dots = "".join(f'<circle cx="{20 + 18 * n}" cy="17" r="5.5" fill="#4a5361"/>' for n in range(3))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" aria-label="{described}">\n'
        f"<style>{_STYLE % _SIZE}</style>\n"
        f'<rect width="{width}" height="{height}" rx="9" fill="#1d2430"/>\n{dots}\n'
        f'<text class="title" x="{width / 2:g}" y="21" text-anchor="middle">'
        f"{html.escape(title)}</text>\n" + "\n".join(texts) + "\n</svg>\n"
    )
