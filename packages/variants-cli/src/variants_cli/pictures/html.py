"""A release as one page of HTML, which needs nothing from elsewhere.

All text goes through an element tree, which escapes it. The page forbids itself every style and
script but its own (Content-Security-Policy).
"""

from __future__ import annotations

import base64
import hashlib
import html
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from importlib.resources import files
from string import Template

from .coverage import FITS, IDLE, NOTHING, NULL, OTHER
from .html_grid import grid, grid_data
from .html_tree import tree
from .markup import add, text_of
from .release import Release
from .tables import (
    Reference,
    Table,
    axis_tables,
    gap_tables,
    machine_table,
    references,
    variant_table,
)
from .wording import NO_VARIANT, OUTCOMES, SCOPE, clean, workload_text

_OPEN_ROWS = 8
"""Gaps of more rows are folded."""


def page(release: Release) -> str:
    """Return the page of *release*."""
    style, script = _asset("page.css"), _asset("page.js")
    return Template(_asset("page.html")).substitute(
        title=html.escape(clean(release.title)),
        style=style,
        style_hash=_hash(style),
        script=script,
        script_hash=_hash(script),
        facts=text_of(_facts(release)),
        counts=text_of(_counts(release)),
        scope=html.escape(SCOPE),
        gaps=_joined(_folded(table) for table in gap_tables(release)),
        workloads=_joined(_options(release)),
        grid=text_of(grid(release)),
        trees=_joined(_trees(release)),
        variants=_joined(_section(variant_table(release), "variants")),
        machines=_joined(_section(machine_table(release), "machines")),
        axes=_joined(_axes(release)),
        data=grid_data(release),
    )


def _asset(name: str) -> str:
    return files(__package__).joinpath("templates").joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _joined(elements: Iterable[ET.Element]) -> str:
    return "\n".join(map(text_of, elements))


def _facts(release: Release) -> ET.Element:
    items = ET.Element("ul", {"class": "facts"})
    for name, text in release.matrix.details.items():
        item = add(items, "li")
        add(item, "b", name).tail = f" {clean(text)}"
    return items


def _counts(release: Release) -> ET.Element:
    counts = ET.Element("ul", {"class": "counts"})
    coverage = release.workloads[0].coverage
    for outcome in (NOTHING, IDLE, NULL, OTHER, FITS):
        found = coverage.with_outcome(outcome)
        if found or outcome == FITS:
            item = add(counts, "li", cls=outcome)
            noun = "machine" if len(found) == 1 else "machines"
            words = "get a variant for what they have" if outcome == FITS else OUTCOMES[outcome]
            add(item, "b", str(len(found))).tail = f"{noun}: {words}"
    if release.unchosen:
        item = add(counts, "li", cls="never")
        total = len(release.variants)
        add(
            item, "b", str(len(release.unchosen))
        ).tail = f"of {total} variants: none of these machines gets them"
    return counts


def _folded(table: Table) -> ET.Element:
    details = ET.Element("details")
    if len(table.rows) <= _OPEN_ROWS:
        details.set("open", "open")
    add(details, "summary", f"{table.title} ({len(table.rows)})")
    details.append(_list(table))
    return details


def _list(table: Table) -> ET.Element:
    element = ET.Element("table", {"class": "list"})
    head = add(add(element, "thead"), "tr")
    for column in table.columns:
        add(head, "th", column).set("scope", "col")
    body = add(element, "tbody")
    for cells in table.rows:
        row = add(body, "tr")
        for place, (column, text) in enumerate(zip(table.columns, cells, strict=True)):
            cell = add(row, "td")
            if place:
                cell.set("data-heading", column)
            if column in table.code and text and text != NO_VARIANT:
                add(cell, "code", text)
            else:
                cell.text = clean(text)
            key = {"machine": "data-machine", "label": "data-variant", "variant": "data-variant"}
            if column in key:
                cell.set("class", "name")
                row.set(key[column], clean(text))
    return element


def _section(table: Table, anchor: str) -> tuple[ET.Element, ET.Element]:
    heading = ET.Element("h2", {"id": f"{anchor}-heading"})
    heading.text = clean(table.title)
    return heading, _list(table)


def _options(release: Release) -> Iterable[ET.Element]:
    for workload in release.workloads:
        option = ET.Element("option")
        option.text = clean(workload_text(workload.added))
        yield option


def _trees(release: Release) -> Iterable[ET.Element]:
    for number, workload in enumerate(release.workloads):
        details = ET.Element("details")
        if not number:
            details.set("open", "open")
        add(details, "summary", workload_text(workload.added).capitalize())
        if workload.tree is not None:
            details.append(tree(workload.tree, f"tree-{number}"))
        if workload.problem:
            add(details, "p", workload.problem, "soft")
        yield details


def _axes(release: Release) -> Iterable[ET.Element]:
    for table in axis_tables(release):
        heading = ET.Element("h3")
        heading.text = clean(table.title)
        yield heading
        yield _list(table)
        found = references(release, table.title)
        if found:
            yield _references(found)


def _references(found: Iterable[Reference]) -> ET.Element:
    element = ET.Element("div", {"class": "references"})
    for reference in found:
        entry = add(element, "div")
        add(entry, "h4", reference.title)
        facts = add(entry, "dl")
        for heading, text in reference.facts:
            add(facts, "dt", heading)
            add(facts, "dd", text)
    return element
