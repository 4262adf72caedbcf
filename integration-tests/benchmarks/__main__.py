"""`make bench`: run the benchmark groups, print one line per comparison and write a record.

BENCH=engine runs one group. Groups are the ``bench_*.py`` modules beside this file.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

from . import compare, page, record
from .report import BenchmarkError, Row, show


def main(arguments: list[str]) -> int:
    """Run a command: measure, compare two records, or write the page."""
    groups = sorted(path.stem[6:] for path in Path(__file__).parent.glob("bench_*.py"))
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run groups and write a record")
    run.add_argument("--record", type=Path, help="the record; build/bench/DATE-COMMIT.json if none")
    run.add_argument("groups", nargs="*", metavar="GROUP", help=", ".join(groups))
    comparing = commands.add_parser("compare", help="fail where a counted line grew")
    comparing.add_argument("old", type=Path)
    comparing.add_argument("new", type=Path)
    writing = commands.add_parser(
        "page", help="make docs/reference/speed.md and the README's table"
    )
    writing.add_argument("record", type=Path)
    options = parser.parse_args(arguments)
    try:
        if options.command == "compare":
            return _compare(record.read(options.old), record.read(options.new))
        if options.command == "page":
            page.write(record.read(options.record))
            return 0
        if unknown := set(options.groups) - set(groups):
            print(f"no benchmark group {', '.join(sorted(unknown))}; there are {', '.join(groups)}")
            return 2
        _run(options.groups or groups, options.record)
    except (BenchmarkError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _run(groups: list[str], path: Path | None) -> None:
    found = record.begun()
    path = path or record.usual_path(found)
    for group in groups:
        found = _measured(found, group)
        record.write(found, path)  # after each group: the next one may be interrupted
    print(path)


def _measured(found: record.Record, group: str) -> record.Record:
    """Return *found* with the rows of one more group."""
    module = importlib.import_module(f".bench_{group}", __package__)
    rows: list[Row] = []
    skipped = dict(found.skipped)
    print(f"{group}")
    try:
        for line in show(_kept(module.rows(), rows)):
            print(f"  {line}", flush=True)
    except BenchmarkError as error:
        print(f"  not measured: {error}", flush=True)
        skipped[group] = str(error)
    lines = (*found.lines, *record.lines_of(group, rows))
    return dataclasses.replace(found, lines=lines, skipped=skipped)


def _kept(rows: Iterator[Row], kept: list[Row]) -> Iterator[Row]:
    for row in rows:
        kept.append(row)
        yield row


def _compare(old: record.Record, new: record.Record) -> int:
    found = compare.changes(old, new)
    print(f"{'line':76} {'old':>18} {'new':>18} {'change':>9}")
    for change in found:
        print(change)
    failed = [change.id for change in found if change.too_much]
    for name in failed:
        print(f"error: {name}: more than {compare.ALLOWED:.0%} more instructions", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
