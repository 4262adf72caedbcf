"""`make bench`: run the benchmark groups, print one line per comparison and write a record.

BENCH=engine runs one group. Groups are the ``bench_*.py`` modules beside this file.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import sys
from pathlib import Path

from . import page
from .record import ROOT, BenchmarkError, Record
from .report import Row

GROUPS = sorted(path.stem[6:] for path in Path(__file__).parent.glob("bench_*.py"))


def main(arguments: list[str]) -> int:
    """Measure, or write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run groups and write a record")
    run.add_argument("--record", type=Path, help="the record; build/bench/DATE-COMMIT.json if none")
    run.add_argument("groups", nargs="*", metavar="GROUP", help=", ".join(GROUPS))
    writing = commands.add_parser("page", help="docs/reference/speed.md and the README's table")
    writing.add_argument("record", type=Path)
    options = parser.parse_args(arguments)
    try:
        if options.command == "page":
            page.write(Record.read(options.record))
            return 0
        if unknown := set(options.groups) - set(GROUPS):
            raise BenchmarkError(f"no group {', '.join(unknown)}; there are {', '.join(GROUPS)}")
        _run(options.groups or GROUPS, options.record)
    except (BenchmarkError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _run(groups: list[str], path: Path | None) -> None:
    record = Record.begun()
    path = path or ROOT / "build" / "bench" / f"{record.date}-{record.commit}.json"
    for group in groups:
        print(group)
        rows: list[Row] = []
        for row in importlib.import_module(f".bench_{group}", __package__).rows():
            print(row, flush=True)
            rows.append(row)
        record = dataclasses.replace(record, groups={**record.groups, group: rows})
        record.write(path)  # after each group: the next one may be interrupted
    print(path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
