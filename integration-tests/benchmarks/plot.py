"""The picture of docs/reference/speed.md: ratio over size, one panel for each group with sizes.

It is read on white and on dark pages: it brings its background, in the colours that the reader's
system prefers.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import NamedTuple

from .record import Line, Record

WIDTH, PANEL, HEAD = 760, 190, 40
LEFT, RIGHT, TOP, BOTTOM = 56, 250, 34, 26
"""Around the curves of a panel; labels are on their right."""
_LETTER = 12
"""Pixels between two labels that would overlap."""
_STEPS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
_GOAL = re.compile(r"at most (\d+(?:\.\d+)?)x")
_STYLE = """
  svg { --text: #1c2024; --soft: #57606a; --back: #ffffff; --line: #d0d7de;
    --a: #0a58b5; --b: #9a5b00; --c: #8250df; --d: #1a7f37;
    font: 12px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
  @media (prefers-color-scheme: dark) {
    svg { --text: #e6e9ec; --soft: #a3acb6; --back: #14171a; --line: #3a424a;
      --a: #79b8ff; --b: #e0a33e; --c: #c297ff; --d: #3fb950; }
  }
  .back { fill: var(--back); } text { fill: var(--text); } .head { font-weight: 600; }
  .soft { fill: var(--soft); font-size: 11px; }
  .up { text-anchor: middle; } .end { text-anchor: end; }
  path { fill: none; } .grid { stroke: var(--line); } .one { stroke: var(--text); }
  .goal { stroke-dasharray: 5 4; } .curve { stroke-width: 2; }
  .old { stroke-dasharray: 1 3; stroke-width: 1.5; }
"""


class Curve(NamedTuple):
    """Rows that differ by their size.

    Attributes:
        text: what they are, with N for the size.
        against: what they are compared with.
        points: size and ratio, sizes ascending.
        goals: the ratios that are allowed, with the least size that each is for.
    """

    text: str
    against: str
    points: tuple[tuple[int, float], ...]
    goals: tuple[tuple[float, int], ...]


class Label(NamedTuple):
    """A text at the right of a panel."""

    y: float
    text: str
    cls: str


def curves(record: Record) -> dict[str, list[Curve]]:
    """Return by group what was measured at two sizes or more."""
    rows: dict[tuple[str, str, str], list[Line]] = {}
    for line in record.lines:
        if line.size and line.ratio is not None and not line.counted:
            text = re.sub(rf"\b({line.size}|{line.size:,})\b", "N", line.what)
            rows.setdefault((line.group, text, line.against), []).append(line)
    found: dict[str, list[Curve]] = {}
    for (group, text, against), lines in rows.items():
        lines.sort(key=lambda line: line.size)
        points = {line.size: line.ratio or 0.0 for line in lines}
        goals: dict[float, int] = {}
        for line in lines:
            if goal := _GOAL.search(line.goal):
                goals.setdefault(float(goal[1]), line.size)
        if len(points) > 1:
            found.setdefault(group, []).append(
                Curve(text, against, tuple(points.items()), tuple(goals.items()))
            )
    return found


def picture(record: Record, before: Record | None = None) -> str:
    """Return the picture of *record*; what *before* has of the same is drawn thin."""
    panels = curves(record)
    older = curves(before) if before else {}
    height = HEAD + PANEL * len(panels)
    title = "Time as a multiple of what it is compared with, by size"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}"'
        f' viewBox="0 0 {WIDTH} {height}" role="img">',
        f"<title>{title}</title>",
        f"<style>{_STYLE}</style>",
        f'<rect width="{WIDTH}" height="{height}" class="back"/>',
        f'<text x="16" y="24" class="head">{title}</text>',
    ]
    for number, (group, found) in enumerate(panels.items()):
        old = {curve.text: curve for curve in older.get(group, [])}
        lines.append(f'<g transform="translate(0 {HEAD + PANEL * number})">')
        lines += _panel(group, [(curve, old.get(curve.text)) for curve in found])
        lines.append("</g>")
    return "\n".join([*lines, "</svg>"]) + "\n"


def _panel(group: str, found: Sequence[tuple[Curve, Curve | None]]) -> Iterator[str]:
    drawn = [curve for pair in found for curve in pair if curve]
    sizes = sorted({size for curve in drawn for size, _ in curve.points})
    goals = sorted({goal for curve, _ in found for goal in curve.goals})
    ratios = [ratio for curve in drawn for _, ratio in curve.points]
    low, step, high = _scale([1.0, *(goal for goal, _ in goals), *ratios])

    def x(size: float) -> float:
        place = math.log(size / sizes[0]) / math.log(sizes[-1] / sizes[0])
        return LEFT + place * (WIDTH - LEFT - RIGHT)

    def y(ratio: float) -> float:
        return PANEL - BOTTOM - (ratio - low) / (high - low) * (PANEL - TOP - BOTTOM)

    def path(points: Iterable[tuple[float, float]], cls: str) -> str:
        drawn = "L".join(f"{x(size):.1f} {y(ratio):.1f}" for size, ratio in points)
        return f'<path d="M{drawn}" {cls}/>'

    compared = " or ".join(dict.fromkeys(curve.against for curve, _ in found))
    yield f'<text x="16" y="18"><tspan class="head">{escape(group)}</tspan>'
    yield f'<tspan class="soft" dx="8">compared with {escape(compared)}</tspan></text>'
    count = round((high - low) / step) + 1
    steps = {round(low + number * step, 6) for number in range(count)}
    for ratio in sorted({*steps, 1.0}):
        cls = "one" if ratio == 1 else "grid"
        yield path([(sizes[0], ratio), (sizes[-1], ratio)], f'class="{cls}"')
        yield f'<text x="{LEFT - 8}" y="{y(ratio) + 4:.1f}" class="soft end">{ratio:g}x</text>'
    last = -math.inf
    for size in sizes:
        if x(size) - last > 34:
            last = x(size)
            yield f'<text x="{last:.1f}" y="{PANEL - 8}" class="soft up">{size:,}</text>'
    labels = []
    for goal, size in goals:
        of = [number for number, (curve, _) in enumerate(found) if (goal, size) in curve.goals]
        color = _color(of[0]) if len(of) < len(found) else "var(--soft)"
        last = max(found[number][0].points[-1][0] for number in of)
        yield path([(size, goal), (last, goal)], f'class="goal" stroke="{color}"')
        labels.append(Label(y(goal), f"{goal:g}x: goal", f'style="fill: {color}"'))
    for number, (curve, old) in enumerate(found):
        color = _color(number)
        if old:
            yield path(old.points, f'class="old" stroke="{color}"')
            text = f"{old.points[-1][1]:.2f}x before"
            labels.append(Label(y(old.points[-1][1]), text, 'class="soft"'))
        yield path(curve.points, f'class="curve" stroke="{color}"')
        for size, ratio in curve.points:
            yield f'<circle cx="{x(size):.1f}" cy="{y(ratio):.1f}" r="3" fill="{color}"/>'
        text = f"{curve.points[-1][1]:.2f}x: {curve.text}"
        labels.append(Label(y(curve.points[-1][1]), text, f'style="fill: {color}"'))
    yield from _labels(labels)


def _color(number: int) -> str:
    return f"var(--{'abcd'[number % 4]})"


def _labels(labels: list[Label]) -> Iterator[str]:
    """Yield the labels at the ends of their curves, moved where they would overlap."""
    parts = [
        Label(label.y + 4 + number * _LETTER, part, label.cls)
        for label in sorted(labels)
        for number, part in enumerate(textwrap.wrap(label.text, 38))
    ]
    places: list[float] = []
    for part in parts:
        places.append(max([part.y, *(place + _LETTER for place in places[-1:])]))
    most = PANEL - BOTTOM + 4.0
    for number in reversed(range(len(places))):  # up again, those that are below the axis
        places[number] = min(places[number], most)
        most = places[number] - _LETTER
    for part, place in zip(parts, places, strict=True):
        x = WIDTH - RIGHT + 10
        yield f'<text x="{x}" y="{place:.1f}" {part.cls}>{escape(part.text)}</text>'


def _scale(ratios: list[float]) -> tuple[float, float, float]:
    """Return the least and the largest ratio of an axis around *ratios*, and its step between."""
    low, high = min(ratios), max(ratios)
    step = next((step for step in _STEPS if (high - low) / step <= 5), _STEPS[-1])
    return math.floor(low / step) * step, step, math.ceil(high / step + 1e-9) * step
