"""The findings as one page of text: problems first, each with the command to type."""

from __future__ import annotations

from collections.abc import Iterator

from pep_variants.internal import printable

from .findings import Findings


def lines(found: Findings) -> Iterator[str]:
    """Yield the lines of the page."""
    failing = [problem for problem in found.problems if problem.fails]
    hints = len(found.problems) - len(failing)
    summary = _counted(len(failing), "problem") if failing else "Nothing is wrong"
    yield f"{summary}; {_counted(hints, 'hint')}" if hints else summary
    for problem in found.problems:
        yield f"{'problem' if problem.fails else 'hint'}: {_one_line(problem.text)}"
        if problem.command:
            yield f"    {_one_line(problem.command)}"
    for title, part in found.parts.items():
        if not part.rows:
            continue
        yield ""
        yield title
        width = min(max(len(subject) for subject, _ in part.rows), 40)
        before = None
        for subject, text in part.rows:
            shown = "" if subject == before else _one_line(subject)
            yield f"  {shown:<{width}}  {_one_line(text)}".rstrip()
            before = subject


def _one_line(text: str) -> str:
    return printable(" ".join(text.split()))


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
