"""docs/reference/speed.md and the table of the README, made from a record."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from itertools import groupby
from pathlib import Path

from pep_variants.files import write_if_changed

from .instructions import UNIT
from .record import ROOT, Line, Record
from .report import BenchmarkError, times

PAGE = ROOT / "docs" / "reference" / "speed.md"
README = ROOT / "README.md"
BEGIN, END = "<!-- made from a record -->", "<!-- end -->"
WORST = "limits"
"""The group of which the page has the slowest row alone."""

HEADLINES = (
    "engine/read-rank-10000-variants/json.loads",
    "engine/read-rank-a-pytorch-matrix-of-59/variantlib*",
    "pip/python-c-pass/*",
    "pip/pip-install-dry-run-30-plain-packages/*",
    "pip/pip-install-dry-run-30-plain-packages-10-of-them-with-variants/*",
    "resolver/resolve-500-projects-a-tenth-with-12-variants/*",
)
"""What the README has: patterns of ids."""


def write(record: Record, root: Path = ROOT) -> None:
    """Put *record* into the documents below *root*."""
    for path, made in ((PAGE, tables(record)), (README, headlines(record))):
        path = root / path.relative_to(ROOT)
        write_if_changed(path, replaced(path.read_text("utf-8"), made).encode())


def replaced(text: str, made: str) -> str:
    """Return the document *text* with *made* between its marks.

    Raises:
        BenchmarkError: the marks are not there once each, in order.
    """
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end) or BEGIN in after or END in after:
        raise BenchmarkError(f"the page needs one line {BEGIN} and after it one line {END}")
    return f"{before}{BEGIN}\n{made}{END}{after}"


def headlines(record: Record) -> str:
    """Return the table of the README: those of `HEADLINES` that were measured."""
    rows = ["| what | ours | compared with | ratio |", "|---|---|---|---|"]
    for pattern in HEADLINES:
        for line in record.lines:
            if fnmatchcase(line.id, pattern):
                figure = _figure(line.ours, line.unit)
                rows.append(_row(line.what, figure, _theirs(line), _ratio(line)))
                break
    return "\n".join(rows) + "\n"


def tables(record: Record) -> str:
    """Return what the page says of *record*: the machine, and a table for each group."""
    return "\n".join(_text(record)) + "\n"


def _text(record: Record) -> Iterator[str]:
    machine = record.machine
    yield (
        f"Measured with `make bench` on {record.date[:10]} at commit {record.commit}:"
        f" {machine.get('cpu', 'unknown CPU')}, {machine.get('cores', '?')} cores,"
        f" {machine.get('system', 'unknown system')}, Python {machine.get('python', '?')}."
    )
    if any(line.counted for line in record.lines):
        yield f"{UNIT}: millions of instructions, counted by {machine.get('counter') or 'unknown'}."
    for group, lines in groupby(record.lines, key=lambda line: line.group):
        shown = [line for line in lines if line.goal]
        if group == WORST:
            shown = sorted(shown, key=lambda line: line.ours)[-1:]
        if not shown:
            continue
        yield from ("", f"## {group}", "")
        yield _row("what", "ours", "ratio", "compared with", "goal")
        yield "|---|---|---|---|---|"
        for line in shown:
            goal = (line.goal or "-") + (": not met" if line.met is False else "")
            yield _row(line.what, _figure(line.ours, line.unit), _ratio(line), _theirs(line), goal)
    for group, reason in record.skipped.items():
        yield from ("", f"Not measured: {group} ({reason}).")


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _ratio(line: Line) -> str:
    return "-" if line.ratio is None else times(line.ratio)


def _theirs(line: Line) -> str:
    return f"{line.against}: {_figure(line.theirs, line.unit)}"


def _figure(value: float, unit: str) -> str:
    digits = 0 if abs(value) >= 100 or value == int(value) else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f}\u00a0{unit}".rstrip()  # on one line
