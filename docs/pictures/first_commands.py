"""Write first-commands.svg: a terminal in which one command makes torch use the GPU.

``.venv/bin/python docs/pictures/first_commands.py`` writes the file; a test compares it. What it
shows is the first block of docs/how-to/driver-too-old.md. A test types that on a stand-in for
PyPI and PyTorch's indexes and for the driver of an H100; the torch in its wheels asks that driver
as torch does (`integration-tests/support/cuda_torch.py`).
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from html import escape
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
PAGE = FOLDER.parent / "how-to" / "driver-too-old.md"
TITLE = "H100, driver for CUDA 12.4"
COLUMNS = 50  # as many as can be read on a telephone
WIDTH, LINE, SIZE, MARGIN, BAR = 8.0, 19, 13.3, 16, 34
STYLE = f"""
text {{ font: {SIZE}px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  fill: #d7dde5; white-space: pre; }}
.typed {{ fill: #ffffff; font-weight: bold; }}
.prompt {{ fill: #7fb4ff; }}
.False {{ fill: #ff9b93; font-weight: bold; }}
.True {{ fill: #8fd19e; font-weight: bold; }}
.title {{ fill: #8b95a3; }}
"""


def block() -> list[str]:
    """Return the lines of the page's first block of commands."""
    found = re.search(r"```console\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert found is not None
    return [line for line in found[1].splitlines() if line != "…"]


def rows() -> Iterator[tuple[str, str]]:
    """Yield the class and the text of each row, with an empty one before each command."""
    for number, line in enumerate(block()):
        is_typed = line.startswith("$ ")
        if is_typed and number:
            yield "printed", ""
        kind = "typed" if is_typed else line if line in ("True", "False") else "printed"
        indent = "    " if is_typed else ""
        for row in textwrap.wrap(line, COLUMNS, subsequent_indent=indent, break_on_hyphens=False):
            yield kind, row


def picture() -> str:
    """Return the picture."""
    texts: list[str] = []
    shown = list(rows())
    for number, (kind, row) in enumerate(shown):
        place = f'y="{BAR + MARGIN + number * LINE + 10}"'
        if row.startswith("$ "):
            texts.append(f'<text class="prompt" x="{MARGIN}" {place}>$</text>')
        row = re.sub(r"^\$ ", "  ", row)
        column = MARGIN + (len(row) - len(row.lstrip())) * WIDTH
        text = escape(row.lstrip(), quote=False)
        texts.append(f'<text class="{kind}" x="{column:g}" {place}>{text}</text>')
    width = int(MARGIN * 2 + COLUMNS * WIDTH)
    height = BAR + MARGIN * 2 + len(shown) * LINE
    described = escape(" ".join(row for _, row in shown if row))
    dots = "".join(f'<circle cx="{20 + 18 * n}" cy="17" r="5.5" fill="#4a5361"/>' for n in range(3))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" aria-label="{described}">\n'
        f"<style>{STYLE}</style>\n"
        f'<rect width="{width}" height="{height}" rx="9" fill="#1d2430"/>\n{dots}\n'
        f'<text class="title" x="{width / 2:g}" y="21" text-anchor="middle">{TITLE}</text>\n'
        + "\n".join(texts)
        + "\n</svg>\n"
    )


if __name__ == "__main__":
    (FOLDER / "first-commands.svg").write_text(picture(), "utf-8")
