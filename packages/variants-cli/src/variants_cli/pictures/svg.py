"""Machines and variants as a picture: a grid of who gets what."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping
from importlib.resources import files
from itertools import groupby

from .columns import Column, Group, column_groups
from .coverage import CHOSEN, COMPATIBLE, Choice
from .release import Release
from .tables import machine_text
from .wording import HEADINGS, NO_VARIANT, OUTCOMES, clean, summary

CELL, ROW = 14, 16
"""Width of a column and height of a row, in pixels."""

_MARGIN, _GAP, _SECTION = 16, 6, 26
_CHARACTER = 6.6
"""Width of a character, about."""


def picture(release: Release) -> str:
    """Return the picture of *release* as a document of its own."""
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + _Picture(release).text() + "\n"


class _Picture:
    def __init__(self, release: Release) -> None:
        self._release = release
        self._coverage = release.workloads[0].coverage
        self._groups = column_groups(release)
        self._places: dict[str, float] = {}
        self._enabled = _enabled(release)
        names = (choice.machine.name for choice in self._coverage.choices)
        self._left = _MARGIN + _width(max(map(len, names), default=0)) + 8
        columns = [column for group in self._groups for column in group.columns]
        # Below title, summary and legend: the names of groups, and of columns, upright.
        self._names = _width(max((len(column.text) for column in columns), default=0)) + 8
        self._said = _lines(summary(self._coverage, len(release.unchosen)), 130)
        self._top = 48 + 14 * len(self._said) + 24 + 22 + self._names
        self._right = self._left
        for group in self._groups:
            for column in group.columns:
                self._places[column.label] = self._right
                self._right += CELL
            # Room for the heading.
            self._right += max(0, _width(len(group.text)) + 4 - len(group.columns) * CELL) + _GAP

    def text(self) -> str:
        self._root = ET.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "role": "img"})
        self._root.set("aria-labelledby", "title description")
        _add(self._root, "title", clean(f"{self._release.title}: machines and variants")).set(
            "id", "title"
        )
        _add(self._root, "desc", clean(" ".join(self._said))).set("id", "description")
        css = files(__package__).joinpath("templates").joinpath("picture.css").read_text("utf-8")
        _add(self._root, "style", css)
        back = _add(self._root, "rect", cls="back")
        self._head()
        bottom = self._rows() + _MARGIN
        self._separate(bottom - _MARGIN)
        ends = (choice.label or NO_VARIANT for choice in self._coverage.choices)
        width = self._right + 8 + _width(max(map(len, ends), default=0)) + _MARGIN
        width = max(width, 760.0)
        for element in (self._root, back):
            element.set("width", _number(width))
            element.set("height", _number(bottom))
        self._root.set("viewBox", f"0 0 {_number(width)} {_number(bottom)}")
        return ET.tostring(self._root, encoding="unicode")

    def _head(self) -> None:
        _text(self._root, _MARGIN, 30, self._release.title, "name")
        for number, line in enumerate(self._said):
            _text(self._root, _MARGIN, 48 + 14 * number, line, "soft")
        entries = [("chosen", "gets it"), ("could", "could use it, but gets a better one")]
        if self._enabled:
            entries.insert(1, ("enabled", "gets it with an optional namespace enabled"))
        x, y = float(_MARGIN), 48 + 14 * len(self._said) + 6
        for cls, words in entries:
            self._mark(self._root, cls, x, y - 11)
            _text(self._root, x + CELL + 4, y, words, "soft")
            x += CELL + 24 + _width(len(words))
        for group in self._groups:
            self._head_of(group)

    def _head_of(self, group: Group) -> None:
        if group.text:
            x, y = self._places[group.columns[0].label] + 1, self._top - self._names - 4
            _text(self._root, x, y, group.text, "group")
        for column in group.columns:
            self._head_of_column(column)

    def _separate(self, bottom: float) -> None:
        """Draw a line between groups."""
        for group in self._groups[1:]:
            line = _add(self._root, "line", cls="line")
            x = self._places[group.columns[0].label] - _GAP / 2
            for name, value in (("x1", x), ("x2", x), ("y1", self._top), ("y2", bottom)):
                line.set(name, _number(value))

    def _head_of_column(self, column: Column) -> None:
        x, y = self._places[column.label] + CELL - 3, self._top - 6
        text = _text(self._root, 0, 0, column.text, "never" if column.never else "column")
        text.set("transform", f"translate({_number(x)} {_number(y)}) rotate(-90)")
        del text.attrib["x"], text.attrib["y"]
        note = ": none of these machines gets it" if column.never else ""
        _add(text, "title", clean(f"{column.label}{note}"))

    def _rows(self) -> float:
        y = float(self._top)
        sections = groupby(self._coverage.ordered(), key=lambda choice: choice.outcome)
        for outcome, choices in sections:
            found = list(choices)
            y += _SECTION
            heading = HEADINGS[outcome]
            text = f"{heading} ({len(found)})"
            _text(self._root, _MARGIN, y - 7, text, f"section {outcome}")
            for number, choice in enumerate(found):
                self._row(choice, y, banded=number % 2 == 0)
                y += ROW
        return y

    def _row(self, choice: Choice, y: float, *, banded: bool) -> None:
        row = _add(self._root, "g", cls="row")
        _add(row, "title", clean(_explanation(choice)))
        _rectangle(
            row, _MARGIN - 6, y, self._right - _MARGIN + 6, ROW, "band" if banded else "place"
        )
        middle = y + ROW - 4.5
        name = _text(row, self._left - 8, middle, choice.machine.name, "machine")
        name.set("text-anchor", "end")
        for group in self._groups:
            for column in group.columns:
                self._cell(row, choice, column.label, y)
        _text(row, self._right + 2, middle, choice.label or NO_VARIANT, "end")

    def _cell(self, row: ET.Element, choice: Choice, label: str, y: float) -> None:
        x = self._places[label]
        judgement = choice.verdict(label)
        why = judgement.why
        added = self._enabled.get((choice.machine.name, label))
        if judgement.verdict == CHOSEN:
            mark = self._mark(row, "chosen", x, y + 1)
        elif added:
            mark, why = self._mark(row, "enabled", x, y + 1), f"with {added} enabled"
        elif judgement.verdict == COMPATIBLE:
            mark = self._mark(row, "could", x, y + 1)
        else:
            return
        _add(mark, "title", clean(f"{choice.machine.name}, {label}: {why}"))

    def _mark(self, parent: ET.Element, cls: str, x: float, y: float) -> ET.Element:
        """Add the mark of a cell: shapes differ, not colours alone."""
        if cls == "chosen":
            return _rectangle(parent, x + 1, y + 1, CELL - 2, CELL - 2, cls)
        mark = _add(parent, "circle", cls=cls)
        mark.set("cx", _number(x + CELL / 2))
        mark.set("cy", _number(y + CELL / 2))
        mark.set("r", "4" if cls == "enabled" else "3")
        return mark


def _enabled(release: Release) -> Mapping[tuple[str, str], str]:
    """Return the namespace with which a machine gets a variant, by machine and label."""
    default = {
        choice.machine.name: choice.label for choice in release.workloads[0].coverage.choices
    }
    return {
        (choice.machine.name, choice.label): workload.added
        for workload in release.workloads[1:]
        for choice in workload.coverage.choices
        if choice.label is not None and choice.label != default[choice.machine.name]
    }


def _explanation(choice: Choice) -> str:
    gets = f"gets {choice.label}" if choice.label else OUTCOMES[choice.outcome]
    why = f" ({choice.why})" if choice.why else ""
    rest = f"; {choice.remark}" if choice.remark else ""
    return f"{choice.machine.name}, {machine_text(choice)}: {gets}{why}{rest}"


def _lines(text: str, width: int) -> list[str]:
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + len(word) >= width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def _width(characters: int) -> float:
    return characters * _CHARACTER


def _number(value: float) -> str:
    return f"{value:g}" if value == int(value) else f"{value:.1f}"


def _add(parent: ET.Element, tag: str, text: str = "", cls: str = "") -> ET.Element:
    element = ET.SubElement(parent, tag)
    if text:
        element.text = text
    if cls:
        element.set("class", cls)
    return element


def _text(parent: ET.Element, x: float, y: float, text: str, cls: str) -> ET.Element:
    element = _add(parent, "text", clean(text), cls)
    element.set("x", _number(x))
    element.set("y", _number(y))
    return element


def _rectangle(
    parent: ET.Element, x: float, y: float, width: float, height: float, cls: str
) -> ET.Element:
    element = _add(parent, "rect", cls=cls)
    for name, value in (("x", x), ("y", y), ("width", width), ("height", height)):
        element.set(name, _number(value))
    if cls == "chosen":
        element.set("rx", "2")
    return element
