"""The formats in which people look at releases."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from pep_variants.errors import VariantError

if TYPE_CHECKING:
    from .release import Release

HTML, SVG, MARKDOWN, MERMAID = "html", "svg", "markdown", "mermaid"

DOCUMENTS = (HTML, SVG, MARKDOWN, MERMAID)
"""Names of the formats."""

SEVERAL = (MARKDOWN,)
"""Formats that can show several releases."""


def document(form: str, releases: Sequence[Release]) -> str:
    """Return *releases* in the format *form*, one of `DOCUMENTS`.

    Args:
        form: the format.
        releases: at least one; exactly one for formats that are not among `SEVERAL`.

    Raises:
        VariantError: the release cannot be shown in this format.
    """
    if form == MARKDOWN:
        from .markdown import document as markdown

        return markdown(releases)
    (release,) = releases
    return _ONE[form](release)


def problem_of(form: str, text: str) -> str:
    """Return what programs that show *text*, a document, will not do with it; mostly empty."""
    if form != MERMAID:
        return ""
    from .mermaid import MAXIMUM_ARROWS, MAXIMUM_TEXT, is_drawn

    if is_drawn(text):
        return ""
    return (
        f"Mermaid draws at most {MAXIMUM_ARROWS} arrows and {MAXIMUM_TEXT:,} characters "
        "by default: select variants with --only, or use --format html"
    )


def _html(release: Release) -> str:
    from .html import page

    return page(release)


def _svg(release: Release) -> str:
    from .svg import picture

    return picture(release)


def _mermaid(release: Release) -> str:
    from .mermaid import flowchart

    workload = release.workloads[0]
    if workload.tree is None:
        raise VariantError(f"{release.matrix.source}: {workload.problem}")
    return flowchart(workload.tree)


_ONE: Mapping[str, Callable[[Release], str]] = {HTML: _html, SVG: _svg, MERMAID: _mermaid}
