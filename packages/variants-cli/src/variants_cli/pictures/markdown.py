"""Releases as a document in GitHub Flavored Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from .decision_tree import DecisionTree, Leaf
from .mermaid import flowchart, is_drawn
from .outline import Step, outline
from .overview import overview_tables
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
from .wording import NO_VARIANT, SCOPE, clean, summary, workload_text

# An underscore inside a word is one.
_SPECIAL = re.compile(r"([\\`*\[\]|~$]|(?<![a-zA-Z0-9])_|_(?![a-zA-Z0-9]))")
_FIRST = re.compile(r"^([-+]|\d+[.)](?= ))")
# GitHub makes links of addresses, mentions and numbers of issues.
_ENTITIES = {
    "#": "&#35;", "<": "&lt;", ">": "&gt;", "@": "&#64;", "://": "&#58;//", "www.": "www&#46;",
}  # fmt: skip


def document(releases: Sequence[Release]) -> str:
    """Return the document about *releases*, of which there is at least one."""
    lines: list[str] = []
    if len(releases) > 1:
        lines += ["# Releases", ""]
        for table in overview_tables(releases):
            lines += _table(table, 2)
    for release in releases:
        lines += _release(release)
    return "\n".join(lines).rstrip("\n") + "\n"


def _release(release: Release) -> Iterator[str]:
    default = release.workloads[0]
    yield from (f"# {_text(release.title)}", "")
    facts = [f"{_text(name)} {_text(text)}" for name, text in release.matrix.details.items()]
    if facts:
        yield from (" · ".join(facts), "")
    yield from (_text(summary(default.coverage, len(release.unchosen))), "", _text(SCOPE), "")
    gaps = gap_tables(release)
    if gaps:
        yield from ("## Gaps", "")
        for table in gaps:
            yield from _table(table, 3)
    yield from _table(variant_table(release), 2)
    yield from _table(machine_table(release), 2)
    yield from ("## Decision tree", "")
    for workload in release.workloads:
        if len(release.workloads) > 1:
            yield from (f"### {_text(workload_text(workload.added).capitalize())}", "")
        if workload.tree is not None:
            yield from _tree(workload.tree)
        if workload.problem:
            yield from (_text(workload.problem), "")
    yield from ("## Axes", "")
    for table in axis_tables(release):
        yield from _table(table, 3)
        for reference in references(release, table.title):
            yield from _reference(reference)


def _tree(tree: DecisionTree) -> Iterator[str]:
    chart = flowchart(tree)
    if is_drawn(chart):
        yield from ("```mermaid", chart.rstrip("\n"), "```")
    else:  # a picture of that size could not be read, either
        first = outline(tree)
        if isinstance(first, Step):
            yield from (f"{_text(first.title)}?", "")
        yield from _steps(first, "", set())
    yield ""


def _steps(node: Step | Leaf, indent: str, seen: set[int]) -> Iterator[str]:
    """Yield *node* as a nested list; a step that came before is only named."""
    if isinstance(node, Leaf):
        yield f"{indent}- {_code(node.label or NO_VARIANT)}"
        return
    for branch in node.branches:
        answer = f"{indent}- {_text(branch.text)}: "
        if isinstance(branch.to, Leaf):
            yield answer + _code(branch.to.label or NO_VARIANT)
        elif id(branch.to) in seen and not branch.to.is_last:
            yield f"{answer}{_text(branch.to.title)}, as above"
        else:
            seen.add(id(branch.to))
            yield f"{answer}{_text(branch.to.title)}?"
            yield from _steps(branch.to, f"{indent}  ", seen)


def _table(table: Table, level: int) -> Iterator[str]:
    yield from (f"{'#' * level} {_text(table.title)}", "")
    yield f"| {' | '.join(map(_text, table.columns))} |"
    yield f"|{'---|' * len(table.columns)}"
    for row in table.rows:
        cells = (
            _code(cell) if column in table.code else _text(cell)
            for column, cell in zip(table.columns, row, strict=True)
        )
        yield f"| {' | '.join(cells)} |"
    yield ""


def _reference(reference: Reference) -> Iterator[str]:
    yield from (f"**{_text(reference.title)}**", "")
    yield from (f"- {_text(heading)}: {_text(text)}" for heading, text in reference.facts)
    yield ""


def _text(text: str) -> str:
    """Return *text* so that Markdown shows it as it is."""
    escaped = clean(text).replace("&", "&amp;")
    for char, entity in _ENTITIES.items():
        escaped = escaped.replace(char, entity)
    escaped = _SPECIAL.sub(r"\\\1", escaped)
    # At the beginning of a line they would make a list or a heading.
    return _FIRST.sub(r"\\\1", escaped)


def _code(text: str) -> str:
    """Return *text* as code; empty, and with characters that end code, as text."""
    text = clean(text)
    if not text or text == NO_VARIANT or "`" in text or "|" in text:
        return _text(text)
    return f"`{text}`"
