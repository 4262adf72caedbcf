"""docs/reference/speed.md and the table of the README, made from a record."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from .record import ROOT, BenchmarkError, Record
from .report import Row

PAGE = Path("docs/reference/speed.md")
README = Path("README.md")
BEGIN, END = "<!-- made from a record -->", "<!-- end -->"
WORST = "limits"
"""The group of which the page has the slowest row alone."""
HEADLINES = {
    "engine": ("read + rank 10,000 variants", "read + rank a PyTorch matrix of 59"),
    "pip": (
        "python -c pass",
        "pip install --dry-run, 30 plain packages",
        "pip install --dry-run, 30 plain packages, 10 of them with variants",
    ),
    "resolver": ("resolve 500 projects, a tenth with 12 variants",),
}
"""What the README has, by group."""


def write(record: Record, root: Path = ROOT) -> None:
    """Put *record* into the documents below *root*."""
    for name, made in ((PAGE, tables(record)), (README, headlines(record))):
        text = (root / name).read_text("utf-8")
        (root / name).write_text(replaced(text, made), "utf-8")


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
    for group, wanted in HEADLINES.items():
        for row in record.groups.get(group, ()):
            if row.what in wanted:
                rows.append(_line(row.what, _figure(row.ours, row.unit), _theirs(row), row.ratio))
    return "\n".join(rows) + "\n"


def tables(record: Record) -> str:
    """Return what the page says of *record*: the machine, and a table for each group."""
    return "\n".join(_text(record)) + "\n"


def _text(record: Record) -> Iterator[str]:
    at = f"on {record.date} at commit {record.commit}"
    yield f"Measured with `make bench` {at}: {record.machine}."
    for group, rows in record.groups.items():
        shown = [row for row in rows if row.goal]
        if group == WORST:
            shown = sorted(shown, key=lambda row: row.ours)[-1:]
        if not shown:
            continue
        yield from ("", f"## {group}", "")
        yield _line("what", "ours", "ratio", "compared with", "goal")
        yield "|---|---|---|---|---|"
        for row in shown:
            goal = row.goal + ("" if row.met else ": not met")
            yield _line(row.what, _figure(row.ours, row.unit), row.ratio, _theirs(row), goal)


def _line(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _theirs(row: Row) -> str:
    return f"{row.against}: {_figure(row.theirs, row.unit)}"


def _figure(value: float, unit: str) -> str:
    digits = 0 if abs(value) >= 100 or value == int(value) else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f}\u00a0{unit}".rstrip()  # on one line
