"""`make recording`: the first commands of the README with PyPI, as a picture.

They run in a fresh environment, as on a machine with an H100: a platform file stands for the GPU.
"""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from support.documents import Page
from support.environments import ROOT, clean_environ

OUTPUT = ROOT / "docs" / "pictures" / "first-commands.svg"
MACHINE = "h100-zen4"
TITLE = "pip, on a machine with an H100 and a driver for CUDA 12.8"
MARKED = ("Variant ", "cuda12  chosen")
"""Beginnings of printed lines that stand out; blanks before them do not count."""
# What pip says of the files that it fetches, and of what was there before.
_LEFT_OUT = re.compile(
    r"\s*(Attempting|Collecting|Downloading|Found|Installing|Link|Looking|Processing|Requirement|"
    r"The catalogue has|Uninstalling|Successfully uninstalled|Using|Variant \S+ of|"
    r"WARNING: Location|\[notice|━|$)"
)
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


def recorded(commands: Sequence[str]) -> dict[str, list[str]]:
    """Run *commands* in a new environment; return what each prints of the choice."""
    found = {}
    with tempfile.TemporaryDirectory(prefix="variants-recording-") as name:
        folder = Path(name)
        subprocess.run([sys.executable, "-m", "venv", str(folder / "env")], check=True)
        (folder / "dist").symlink_to(ROOT / "dist")
        path = f"{folder / 'env' / 'bin'}{os.pathsep}{os.environ['PATH']}"
        environ = {"HOME": str(folder), "PATH": path, "VARIANTS_PLATFORM": MACHINE}
        for command in commands:
            print(f"$ {command}", flush=True)
            done = subprocess.run(
                ["bash", "-c", command],
                cwd=folder, env=clean_environ(environ), text=True, check=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip
            print(done.stdout, end="")
            lines = done.stdout.splitlines()
            found[command] = [line for line in lines if not _LEFT_OUT.match(line)]
    return found


def svg(typed: Mapping[str, Sequence[str]]) -> str:
    """Return the picture of a terminal with commands and what they printed."""
    row = 0
    texts: list[str] = []

    def add(kind: str, text: str, column: int = 0) -> None:
        place = f'x="{_MARGIN + column * _WIDTH:g}" y="{_BAR + _MARGIN + row * _LINE + 10}"'
        texts.append(f'<text class="{kind}" {place}>{html.escape(text, quote=False)}</text>')

    for command, lines in typed.items():
        add("prompt", "$")
        add("typed", command, 2)
        row += 1
        for line in lines:
            kind = "chosen" if line.lstrip().startswith(MARKED) else "printed"
            for at in range(0, max(len(line), 1), COLUMNS):
                add(kind, line[at : at + COLUMNS])
                row += 1
        row += 1
    width = int(_MARGIN * 2 + COLUMNS * _WIDTH)
    height = _BAR + _MARGIN * 2 + (row - 1) * _LINE
    described = html.escape(" ".join(f"$ {command}" for command in typed))
    dots = "".join(f'<circle cx="{20 + 18 * n}" cy="17" r="5.5" fill="#4a5361"/>' for n in range(3))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" aria-label="{described}">\n'
        f"<style>{_STYLE % _SIZE}</style>\n"
        f'<rect width="{width}" height="{height}" rx="9" fill="#1d2430"/>\n{dots}\n'
        f'<text class="title" x="{width / 2:g}" y="21" text-anchor="middle">'
        f"{html.escape(TITLE)}</text>\n" + "\n".join(texts) + "\n</svg>\n"
    )


if __name__ == "__main__":
    steps = Page(ROOT / "README.md").commands
    OUTPUT.write_text(svg(recorded([step.text for step in steps])), "utf-8")
    print(OUTPUT)
