"""The grid of machines and variants in a page, and the data that its script explains it with."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from itertools import groupby
from typing import Any

from .columns import Group, column_groups
from .coverage import CHOSEN, COMPATIBLE, FITS, OUTCOMES, Choice
from .markup import add
from .release import Release
from .tables import machine_text
from .wording import HEADINGS, NO_VARIANT, clean

_CODES = {CHOSEN: "c", COMPATIBLE: "f"}
_MARKS = {CHOSEN: ("chosen", "■"), COMPATIBLE: ("could", "○")}


def grid(release: Release) -> ET.Element:
    """Return the grid as a table, which says the essential without a script, too."""
    groups = column_groups(release)
    table = ET.Element("table", {"class": "grid"})
    _add_head(table, groups)
    body = add(table, "tbody")
    choices = release.workloads[0].coverage.ordered()
    firsts = {group.columns[0].label for group in groups}
    for outcome, found in groupby(choices, key=lambda choice: choice.outcome):
        group = list(found)
        section = add(body, "tr", cls="section")
        heading = add(section, "th", f"{HEADINGS[outcome]} ({len(group)})", outcome)
        heading.set("scope", "rowgroup")
        heading.set("colspan", str(len(release.variants) + 2))
        for choice in group:
            _add_row(body, choice, groups, firsts)
    return table


def _add_head(table: ET.Element, groups: tuple[Group, ...]) -> None:
    head = add(table, "thead")
    if any(group.text for group in groups):
        row = add(head, "tr")
        add(row, "td")
        for group in groups:
            cell = add(row, "th", group.text, "group first")
            cell.set("scope", "colgroup")
            cell.set("colspan", str(len(group.columns)))
            cell.set("data-size", str(len(group.columns)))
        add(row, "td")
    row = add(head, "tr")
    add(row, "td")
    for group in groups:
        for place, column in enumerate(group.columns):
            classes = ["column", *["first"] * (not place), *["never"] * column.never]
            cell = add(row, "th", cls=" ".join(classes))
            cell.set("scope", "col")
            cell.set("title", clean(column.label))
            add(cell, "span", column.text)
    add(row, "td", "gets", "gets")


def _add_row(body: ET.Element, choice: Choice, groups: tuple[Group, ...], firsts: set[str]) -> None:
    row = add(body, "tr")
    row.set("data-machine", clean(choice.machine.name))
    name = add(row, "th", choice.machine.name)
    name.set("scope", "row")
    name.set("title", clean(machine_text(choice)))
    for group in groups:
        for column in group.columns:
            verdict = choice.verdict(column.label).verdict
            cls, mark = _MARKS.get(verdict, ("", ""))
            classes = " ".join(filter(None, (cls, "first" if column.label in firsts else "")))
            cell = add(row, "td", mark, classes)
            cell.set("data-cell", "")
    add(row, "td", choice.label or NO_VARIANT, "gets")


def grid_data(release: Release) -> str:
    """Return what the script needs, as JSON that can stand inside an element."""
    labels = [column.label for group in column_groups(release) for column in group.columns]
    phrases: dict[str, int] = {}
    reasons: dict[tuple[int, ...], int] = {}
    order = [choice.machine.name for choice in release.workloads[0].coverage.ordered()]
    workloads = []
    for workload in release.workloads:
        by_name = {choice.machine.name: choice for choice in workload.coverage.choices}
        workloads.append(
            {"rows": [_row(by_name[name], labels, phrases, reasons) for name in order]}
        )
    choices = release.workloads[0].coverage.choices
    titles = {clean(c.machine.name): clean(machine_text(c)) for c in choices}
    tree: dict[str, Any] = {
        "variants": [clean(label) for label in labels],
        "titles": titles,
        "search": {name: f"{name} {title}".lower() for name, title in titles.items()},
        "gaps": [outcome for outcome in OUTCOMES if outcome != FITS],
        "workloads": workloads,
        "phrases": list(phrases),
        "reasons": list(reasons),
    }
    text = json.dumps(tree, separators=(",", ":"))
    # Nothing that could end the element or begin a comment.
    for char in "<>&":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def _row(
    choice: Choice,
    labels: list[str],
    phrases: dict[str, int],
    reasons: dict[tuple[int, ...], int],
) -> dict[str, Any]:
    """Return one row; phrases and lists of them stand in the data once, rows have their places."""
    judgements = [choice.verdict(label) for label in labels]
    said = [
        tuple(phrases.setdefault(clean(phrase), len(phrases)) for phrase in judgement.phrases)
        for judgement in judgements
    ]
    return {
        "gets": clean(choice.label or NO_VARIANT),
        "outcome": choice.outcome,
        "cells": "".join(_CODES.get(judgement.verdict, "-") for judgement in judgements),
        "why": [reasons.setdefault(numbers, len(reasons)) for numbers in said],
    }
