"""`make bench`: run the benchmark groups, print one line per comparison and write a record.

BENCH=engine runs one group. Groups are the ``bench_*.py`` modules beside this file.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
from pathlib import Path

from .page import ROOT, Record, write
from .report import Row

GROUPS = sorted(path.stem[6:] for path in Path(__file__).parent.glob("bench_*.py"))


def main(arguments: list[str] | None = None) -> None:
    """Measure, or write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run", help="run groups and write a record")
    running.add_argument("--record", type=Path, help="default: build/bench/DATE-COMMIT.json")
    running.add_argument("groups", nargs="*", metavar="GROUP", help=", ".join(GROUPS))
    writing = commands.add_parser("page", help="docs/reference/speed.md and the README's table")
    writing.add_argument("record", type=Path)
    options = parser.parse_args(arguments)
    if options.command == "page":
        write(Record.read(options.record))
    elif unknown := set(options.groups) - set(GROUPS):
        parser.error(f"no group {', '.join(unknown)}; there are {', '.join(GROUPS)}")
    else:
        _run(options.groups or GROUPS, options.record)


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
    main()
