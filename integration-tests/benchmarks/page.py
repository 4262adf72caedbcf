"""What `make bench` found, as a JSON file; docs/reference/speed.md and the README's table of it."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path

from .report import Row

ROOT = Path(__file__).resolve().parents[2]
PAGE = Path("docs/reference/speed.md")
README = Path("README.md")
BEGIN, END = "<!-- made from a record -->", "<!-- end -->"
WORST = "limits"
"""The group of which the page has the slowest row alone."""
HEADLINES = (
    "python -c pass",
    "pip install --dry-run, 30 plain packages",
    "pip install --dry-run, 30 plain packages, 10 of them with variants",
)
"""What the README has."""


@dataclass(frozen=True)
class Record:
    """The rows of one run by group, with its day, its commit and the machine in words."""

    date: str
    commit: str
    machine: str
    groups: Mapping[str, list[Row]]

    @classmethod
    def begun(cls) -> Record:
        """Return an empty record of this machine and checkout."""
        command = ["git", "describe", "--always", "--dirty", "--exclude=*", "--abbrev=12"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        date = datetime.now(timezone.utc).date().isoformat()
        cpu = re.search(r"(?m)^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text("utf-8"))
        machine = (
            f"{cpu[1] if cpu else platform.machine()}, {os.cpu_count()} cores, "
            f"{platform.system()} {platform.release().partition('-')[0]}, "
            f"Python {platform.python_version()}"
        )
        return cls(date, done.stdout.strip() or "unknown", machine, {})

    @classmethod
    def read(cls, path: Path) -> Record:
        """Return the record at *path*."""
        tree = json.loads(path.read_bytes())
        groups = {name: [Row(**row) for row in rows] for name, rows in tree.pop("groups").items()}
        return cls(**tree, groups=groups)

    def write(self, path: Path) -> None:
        """Write it as JSON."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self), indent=1) + "\n", "utf-8")


def write(record: Record, root: Path = ROOT) -> None:
    """Put *record* into the documents below *root*, between their marks.

    Raises:
        ValueError: the marks are not there once each, in order.
    """
    for name, lines in ((PAGE, _tables(record)), (README, _headlines(record))):
        before, made = (root / name).read_text("utf-8").split(BEGIN)
        _, after = made.split(END)
        text = "\n".join([BEGIN, *lines, END])
        (root / name).write_text(f"{before}{text}{after}", "utf-8")


def _headlines(record: Record) -> Iterator[str]:
    yield "| what | ours | compared with | ratio |"
    yield "|---|---|---|---|"
    for rows in record.groups.values():
        for row in rows:
            if row.what in HEADLINES:
                yield _line(row.what, _figure(row.ours, row.unit), _theirs(row), row.ratio)


def _tables(record: Record) -> Iterator[str]:
    at = f"on {record.date} at commit {record.commit}"
    yield f"Measured with `make bench` {at}: {record.machine}."
    for group, rows in record.groups.items():
        shown = sorted(rows, key=lambda row: row.ours)[-1:] if group == WORST else rows
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
