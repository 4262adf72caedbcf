"""`make bench`: run the benchmark groups, print one line per comparison and write a record.

BENCH=engine runs one group. Groups are the ``bench_*.py`` modules beside this file.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import subprocess
import sys
import tempfile
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
    run.add_argument(
        "--base", type=Path, metavar="CHECKOUT",
        help="another checkout that runs each group before this one does; its record is that of"
        " this one with -before in the name",
    )  # fmt: skip
    run.add_argument("groups", nargs="*", metavar="GROUP", help=", ".join(groups))
    comparing = commands.add_parser("compare", help="fail where a counted line grew")
    comparing.add_argument("old", type=Path)
    comparing.add_argument("new", type=Path)
    writing = commands.add_parser(
        "page", help="make docs/reference/speed.md and the README's table"
    )
    writing.add_argument("record", type=Path)
    writing.add_argument("before", type=Path, nargs="?", help="an earlier one, to stand beside it")
    options = parser.parse_args(arguments)
    try:
        if options.command == "compare":
            return _compare(record.read(options.old), record.read(options.new))
        if options.command == "page":
            before = record.read(options.before) if options.before else None
            page.write(record.read(options.record), before)
            return 0
        if unknown := set(options.groups) - set(groups):
            print(f"no benchmark group {', '.join(sorted(unknown))}; there are {', '.join(groups)}")
            return 2
        _run(options.groups or groups, options.record, options.base)
    except (BenchmarkError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _run(groups: list[str], path: Path | None, base: Path | None) -> None:
    found, before = record.begun(), None
    path = path or record.usual_path(found)
    other = path.with_stem(f"{path.stem}-before")
    for group in groups:
        if base:
            theirs = _run_in(base, group, found)
            before = record.joined(before, theirs) if before else theirs
            record.write(before, other)
        found = record.joined(found, _measured(found, group))
        record.write(found, path)  # after each group: the next one may be interrupted
    for written in (other, path) if base else (path,):
        print(written)


def _measured(like: record.Record, group: str) -> record.Record:
    module = importlib.import_module(f".bench_{group}", __package__)
    rows: list[Row] = []
    skipped = {}
    print(f"{group}")
    try:
        for line in show(_kept(module.rows(), rows)):
            print(f"  {line}", flush=True)
    except BenchmarkError as error:
        print(f"  not measured: {error}", flush=True)
        skipped[group] = str(error)
    lines = tuple(record.lines_of(group, rows))
    return dataclasses.replace(like, lines=lines, skipped=skipped)


def _run_in(checkout: Path, group: str, like: record.Record) -> record.Record:
    """Return the record of a group that *checkout* has run, in its own environment."""
    print(f"{checkout}: ", end="", flush=True)
    with tempfile.TemporaryDirectory(prefix="variants-bench-") as folder:
        path = Path(folder, "record.json")
        python = checkout.resolve() / ".venv" / "bin" / "python"
        command = [str(python), "-m", "benchmarks", "run", "--record", str(path), group]
        done = subprocess.run(command, cwd=checkout / "integration-tests", check=False)
        if done.returncode == 0:
            return record.read(path)
    reason = f"{checkout} has no such group, or it ended with code {done.returncode}"
    return dataclasses.replace(like, commit="unknown", lines=(), skipped={group: reason})


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
