"""Write first-commands.svg: a terminal with the first commands of the README.

``.venv/bin/python docs/pictures/first_commands.py`` writes the file; a test compares it.
"""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
README = FOLDER.parents[1] / "README.md"
TITLE = "pip, on a machine with an H100 and a driver for CUDA 12.8"
COLUMNS = 100
WIDTH, LINE, SIZE, MARGIN, BAR = 8.0, 19, 13.3, 16, 34
STYLE = f"""
text {{ font: {SIZE}px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  fill: #d7dde5; white-space: pre; }}
.typed {{ fill: #ffffff; font-weight: bold; }}
.prompt {{ fill: #7fb4ff; }}
.chosen {{ fill: #8fd19e; }}
.title {{ fill: #8b95a3; }}
"""


def lines() -> list[str]:
    """Return the lines of the first block of commands, with a blank line before each command."""
    block = re.search(r"```console\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    assert block is not None
    shown = [line.rstrip("…") for line in block[1].splitlines() if line != "…"]
    return "\n".join(shown).replace("\n$ ", "\n\n$ ").splitlines()


def picture() -> str:
    """Return the picture."""
    texts: list[str] = []
    shown = lines()
    for row, line in enumerate(shown):
        kind = (
            "chosen"
            if line.startswith("  Variant ")
            else "typed"
            if line.startswith("$ ")
            else "printed"
        )
        place = f'y="{BAR + MARGIN + row * LINE + 10}"'
        if kind == "typed":
            texts.append(f'<text class="prompt" x="{MARGIN}" {place}>$</text>')
            line = line.removeprefix("$ ")
        column = MARGIN + (2 * WIDTH if kind == "typed" else 0)
        texts.append(
            f'<text class="{kind}" x="{column:g}" {place}>{escape(line, quote=False)}</text>'
        )
    width = int(MARGIN * 2 + COLUMNS * WIDTH)
    height = BAR + MARGIN * 2 + len(shown) * LINE
    described = escape(" ".join(line for line in shown if line.startswith("$ ")))
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
