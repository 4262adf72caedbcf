"""The tables of docs/reference/speed.md, made from a record."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pep_variants.files import write_if_changed

from .instructions import UNIT
from .record import ROOT, Line, Record
from .report import BenchmarkError, times

PAGE = ROOT / "docs" / "reference" / "speed.md"
BEGIN, END = "<!-- made from a record -->", "<!-- end -->"


def tables(record: Record) -> str:
    """Return what the page says of *record*: the machine, and a table for each group."""
    return "\n".join(_text(record)) + "\n"


def replaced(text: str, record: Record) -> str:
    """Return the page *text* with the tables of *record* between its marks.

    Raises:
        BenchmarkError: the marks are not there once each, in order.
    """
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end) or BEGIN in after or END in after:
        raise BenchmarkError(f"the page needs one line {BEGIN} and after it one line {END}")
    return f"{before}{BEGIN}\n{tables(record)}{END}{after}"


def write(record: Record, page: Path = PAGE) -> None:
    """Put *record* into *page*."""
    write_if_changed(page, replaced(page.read_text("utf-8"), record).encode())


def _text(record: Record) -> Iterator[str]:
    machine = record.machine
    yield (
        f"Measured with `make bench` on {record.date[:10]} at commit {record.commit}:"
        f" {machine.get('cpu', 'unknown CPU')}, {machine.get('cores', '?')} cores,"
        f" {machine.get('system', 'unknown system')}, Python {machine.get('python', '?')}."
    )
    if any(line.counted for line in record.lines):
        yield f"{UNIT}: millions of instructions, counted by {machine.get('counter') or 'unknown'}."
    group = None
    for line in record.lines:
        if (found := line.id.partition("/")[0]) != group:
            group = found
            yield from ("", f"## {group}", "")
            yield "| what | ours | compared with | ratio | goal |"
            yield "|---|---|---|---|---|"
        yield _row(line)
    for group, reason in record.skipped.items():
        yield from ("", f"Not measured: {group} ({reason}).")


def _row(line: Line) -> str:
    ratio = "-" if line.ratio is None else times(line.ratio)
    goal = (line.goal or "-") + (": not met" if line.met is False else "")
    against = f"{line.against}: {_figure(line.theirs, line.unit)}"
    cells = (line.what, _figure(line.ours, line.unit), against, ratio, goal)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _figure(value: float, unit: str) -> str:
    digits = 0 if abs(value) >= 100 or value == int(value) else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f} {unit}".rstrip()
