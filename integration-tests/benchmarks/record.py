"""What `make bench` found, as a JSON file: the machine, the commit and every row."""

from __future__ import annotations

import json
import math
import os
import platform
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from pep_variants.files import write_if_changed

from .instructions import UNIT, counter
from .report import BenchmarkError, Row

FORMAT = 1
ROOT = Path(__file__).resolve().parents[2]
_CPUINFO = Path("/proc/cpuinfo")


@dataclass(frozen=True)
class Line:
    """A row as it is kept.

    Attributes:
        id: group, what, and what it is compared with: ``engine/read-rank-59-variants/json.loads``.
        what: what is measured, of "the same" too.
        ours: our figure, in *unit*; *theirs* likewise. See `benchmarks.report.Row`.
    """

    id: str
    what: str
    ours: float
    theirs: float
    unit: str
    against: str = ""
    goal: str = ""
    met: bool | None = None

    @property
    def ratio(self) -> float | None:
        """Ours as a multiple of theirs; None where theirs is zero."""
        return self.ours / self.theirs if self.theirs else None

    @property
    def group(self) -> str:
        """The group that it is a row of."""
        return self.id.partition("/")[0]

    @property
    def counted(self) -> bool:
        """Whether the figures are numbers of instructions."""
        return self.unit == UNIT


@dataclass(frozen=True)
class Record:
    """Rows of one run.

    Attributes:
        date: when it began, in UTC as ISO 8601.
        commit: of the checkout, with ``-dirty`` where files differ from it.
        machine: ``cpu``, ``cores``, ``python``, ``system``, and ``counter``, what counts
            instructions.
        lines: the rows, in order.
        skipped: groups that could not be measured, with the reason.
    """

    date: str
    commit: str
    machine: Mapping[str, str]
    lines: tuple[Line, ...] = ()
    skipped: Mapping[str, str] = field(default_factory=dict)


def begun() -> Record:
    """Return an empty record of this machine and checkout."""
    found = counter()
    machine = {
        "cpu": _cpu(),
        "cores": str(os.cpu_count()),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release().partition('-')[0]}",
        "counter": found.name if found else "",
    }
    return Record(datetime.now(timezone.utc).isoformat(timespec="seconds"), _commit(), machine)


def usual_path(record: Record) -> Path:
    """Return where *record* is kept if no path is given: build/bench/DATE-COMMIT.json."""
    date = re.sub(r"[-:]|\+.*", "", record.date)
    return ROOT / "build" / "bench" / f"{date}-{record.commit}.json"


def lines_of(group: str, rows: Iterable[Row]) -> Iterator[Line]:
    """Yield a line for each of *rows*, with ids that are unique in the group.

    "The same, …" and what is indented continue the row before them.
    """
    head, seen = "", set[str]()
    for row in rows:
        what = row.what.strip()
        if row.what.startswith(" "):
            what = f"{head}: {what}"
        elif what.startswith("the same"):
            what = f"{head}{what.removeprefix('the same')}"
        else:
            head = what
        name = _slug(row.line) if row.line else f"{_slug(what)}/{_slug(row.against)}"
        number, unique = 1, name
        while unique in seen:
            number += 1
            unique = f"{name}-{number}"
        seen.add(unique)
        yield Line(
            f"{group}/{unique}", what, round(row.ours, 6), round(row.theirs, 6),
            row.unit, row.against, row.goal, row.met,
        )  # fmt: skip


def write(record: Record, path: Path) -> None:
    """Write *record* as JSON, atomically."""
    tree = {
        "format": FORMAT,
        "date": record.date,
        "commit": record.commit,
        "machine": dict(record.machine),
        "lines": [{**asdict(line), "ratio": line.ratio} for line in record.lines],
        "skipped": dict(record.skipped),
    }
    write_if_changed(path, (json.dumps(tree, indent=1) + "\n").encode())


def read(path: Path) -> Record:
    """Return the record at *path*; keys that are not known are ignored.

    Raises:
        BenchmarkError: it cannot be read, or is none.
    """
    try:
        tree = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise BenchmarkError(f"{path}: {error}") from None
    if not isinstance(tree, dict) or tree.get("format") != FORMAT:
        raise BenchmarkError(f"{path} is no record of format {FORMAT}; `make bench` writes them")
    try:
        return Record(
            str(tree.get("date", "")),
            str(tree.get("commit", "")),
            {str(key): str(value) for key, value in dict(tree.get("machine", {})).items()},
            tuple(_line(item) for item in tree["lines"]),
            {str(key): str(value) for key, value in dict(tree.get("skipped", {})).items()},
        )
    except KeyError as error:
        raise BenchmarkError(f"{path}: a line or the record has no {error}") from None
    except (TypeError, ValueError) as error:
        raise BenchmarkError(f"{path}: {error}") from None


def _line(item: Mapping[str, Any]) -> Line:
    ours, theirs = float(item["ours"]), float(item["theirs"])
    if not (math.isfinite(ours) and math.isfinite(theirs)):
        raise ValueError(f"line {item['id']}: a figure is not finite")
    met = item.get("met")
    return Line(
        str(item["id"]), str(item["what"]), ours, theirs, str(item["unit"]),
        str(item.get("against", "")), str(item.get("goal", "")), None if met is None else bool(met),
    )  # fmt: skip


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", re.sub(r"(?<=\d),(?=\d)", "", text.lower())).strip("-.")


def _cpu() -> str:
    try:
        text = _CPUINFO.read_text("utf-8", "replace")
    except OSError:
        return platform.processor() or platform.machine()
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1] if found else platform.machine()


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty", "--exclude=*", "--abbrev=12"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()
