"""Write choice.svg: torch 2.8.0 on one machine, as `variants rank --json` judges it.

``.venv/bin/python docs/pictures/choice.py`` writes the file; a test compares it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
METADATA = ROOT / "conformance/field/documents/torch-2.8.0-variants.json"
MACHINE = ROOT / "conformance/machines/h100-cuda12.8.toml"
TITLE = "The variants of torch 2.8.0 on a machine with an H100 and a driver for CUDA 12.8"
DRIVER, GPU = "cuda_version_lower_bound", "sm_arch"
STARTS = (20, 150, 340, 750)
WIDTH, ROW = 900, 44
STYLE = """
  svg { font: 14px system-ui, sans-serif; }
  text { fill: #1f2328; } .dim { fill: #59636e; } .head { font-weight: 600; }
  .yes { fill: #1a7f37; } .no { fill: #d1242f; }
  .line { stroke: #d1d9e0; } .chosen { fill: #dafbe1; }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc; } .dim { fill: #9198a1; } .yes { fill: #3fb950; } .no { fill: #f85149; }
    .line { stroke: #3d444d; } .chosen { fill: #12261e; }
  }
"""
Cell = tuple[str, str]
"""A text and its class."""


def rows() -> Iterator[tuple[Cell, ...]]:
    """Yield what is said of each variant, in the order of the ranking."""
    code = "from variants_cli.main import main; main()"
    files = [str(METADATA), "--platform", str(MACHINE)]
    command = [sys.executable, "-c", code, "rank", *files, "--json"]
    tree = json.loads(subprocess.check_output(command, text=True))
    for place, item in enumerate(tree["ranked"], 1):
        needs = (condition(item, feature, met=True) for feature in (DRIVER, GPU))
        outcome = ("1, chosen", "head") if place == 1 else (f"{place}, compatible", "dim")
        yield (item["label"], "head"), *needs, outcome
    for item in tree["rejected"]:
        item["properties"] = json.loads(METADATA.read_text("utf-8"))["variants"][item["label"]]
        unmet = {reason["feature"] for reason in item["reasons"]}
        needs = (condition(item, feature, met=feature not in unmet) for feature in (DRIVER, GPU))
        yield (item["label"], "head"), *needs, ("rejected", "no")


def condition(item: dict[str, Any], feature: str, *, met: bool) -> Cell:
    """Return what a variant needs of a feature, as people write it."""
    values = item["properties"].get("nvidia", {}).get(feature)
    if values is None:
        return ("needs nothing" if feature == DRIVER else "", "dim")
    if feature == GPU:
        numbers = sorted({int(value.partition("_")[0]) for value in values})
        text = ", ".join(f"{number // 10}.{number % 10}" for number in numbers)
    else:
        text = f"{values[0]} or newer"
    return (f"✓ {text}", "yes") if met else (f"✗ {text}", "no")


def line(top: float, cells: tuple[Cell, ...]) -> str:
    """Return the texts of a row."""
    return "\n".join(
        f'<text x="{start}" y="{top + 27:g}" class="{kind}">{escape(text)}</text>'
        for start, (text, kind) in zip(STARTS, cells, strict=True)
        if text
    )


def picture() -> str:
    """Return the picture."""
    heads = ("label", "CUDA driver", "compute capability", "place")
    here = ("", "this machine: 12.8", "this machine: 9.0", "")
    parts = [line(0, tuple((text, "head") for text in heads))]
    parts += [line(ROW / 2, tuple((text, "dim") for text in here))]
    top = 1.5 * ROW
    for number, cells in enumerate(rows()):
        if number == 0:
            box = f'x="8" y="{top:g}" width="{WIDTH - 16}" height="{ROW}"'
            parts.append(f'<rect {box} class="chosen"/>')
        parts.append(f'<path d="M8 {top:g}H{WIDTH - 8}" class="line"/>')
        parts.append(line(top, cells))
        top += ROW
    start = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top:g}" role="img">'
    head = f"{start}\n<title>{TITLE}</title>\n<style>{STYLE}</style>"
    return "\n".join((head, *parts, "</svg>", ""))


if __name__ == "__main__":
    (FOLDER / "choice.svg").write_text(picture(), "utf-8")
