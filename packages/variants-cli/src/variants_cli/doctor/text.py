"""The findings as one page of text: problems first, each with the command to type."""

from __future__ import annotations

from collections.abc import Iterator

from ..console import counted, one_line
from .findings import Findings


def lines(found: Findings) -> Iterator[str]:
    """Yield the lines of the page."""
    failing = [problem for problem in found.problems if problem.fails]
    hints = len(found.problems) - len(failing)
    summary = counted(len(failing), "problem") if failing else "Nothing is wrong"
    yield f"{summary}; {counted(hints, 'hint')}" if hints else summary
    for problem in found.problems:
        yield f"{'problem' if problem.fails else 'hint'}: {one_line(problem.text)}"
        if problem.command:
            yield f"    {one_line(problem.command)}"
    for title, part in found.parts.items():
        if not part.rows:
            continue
        yield ""
        yield title
        width = min(max(len(subject) for subject, _ in part.rows), 40)
        before = None
        for subject, text in part.rows:
            shown = "" if subject == before else one_line(subject)
            yield f"  {shown:<{width}}  {one_line(text)}".rstrip()
            before = subject
