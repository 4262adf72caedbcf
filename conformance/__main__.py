"""``python -m conformance``: list, show, serve or run the cases of the corpus."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from . import FOLDER
from .case import Case, read_cases
from .indexes import serving
from .table import page, summary, text_table
from .verdict import Verdict, play_all

PAGE = FOLDER.parent / "docs" / "reference" / "conformance.md"


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m conformance", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    listing = commands.add_parser("list", help="list cases")
    show = commands.add_parser("show", help="print cases")
    serve = commands.add_parser("serve", help="serve the index of a case until interrupted")
    run = commands.add_parser("run", help="let clients play cases, and print the table")
    for command in (listing, show, run):
        command.add_argument("cases", nargs="*", metavar="CASE", help="id, or glob of ids")
    serve.add_argument("cases", nargs=1, metavar="CASE")
    from .runners import RUNNERS

    run.add_argument("-r", "--runner", action="append", choices=list(RUNNERS), dest="runners")
    run.add_argument("--oldest", action="store_true", help="the oldest pip and uv as well")
    run.add_argument("--command", dest="program", help="a command that plays cases, see README.md")
    run.add_argument("-v", "--verbose", action="store_true", help="show what clients print")
    run.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1)
    run.add_argument("--page", action="store_true", help=f"write {PAGE.name} of the documentation")
    run.add_argument(
        "--sample", type=int, default=1, metavar="N",
        help="of generated cases and those of the field, let installers play every Nth",
    )  # fmt: skip
    run.add_argument("--wheelhouse", type=Path, help="where downloaded pips and uvs are kept")
    arguments = parser.parse_args()
    cases = read_cases(arguments.cases)
    if not cases:
        parser.error(f"no case matches {' '.join(arguments.cases)}")
    if arguments.command == "list":
        for case in cases.values():
            print(f"{case.id}: {case.tree['title']}")
        return 0
    if arguments.command == "show":
        for case in cases.values():
            print(json.dumps({"id": case.id, **case.tree}, indent=2, ensure_ascii=False))
        return 0
    if arguments.command == "serve":
        return _serve(next(iter(cases.values())))
    return _run(list(cases.values()), arguments)


def _serve(case: Case) -> int:
    with serving(case) as served:
        print(f"{case.id}: {case.tree['title']}")
        print(f"index: {served.index}")
        for url in served.extra_indexes:
            print(f"extra index: {url}")
        for url in served.find_links:
            print(f"find links: {url}")
        print(f"install: {' '.join(served.install)}", flush=True)
        try:
            while True:
                time.sleep(1)
        except KeyboardInterrupt:
            return 0


def _run(cases: Sequence[Case], arguments: argparse.Namespace) -> int:
    from support.environments import Environments
    from support.isolation import isolate

    from .runners import OLDEST, RUNNERS, Runner, make
    from .runners.command import Command

    wheelhouse = arguments.wheelhouse or FOLDER.parent / ".tools" / "wheelhouse"
    wheelhouse.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        isolate(Path(folder).resolve() / "home")
        environments = Environments(Path(folder).resolve() / "environments", wheelhouse)
        runners: list[Runner]
        if arguments.program:
            runners = [Command(arguments.program)]
        else:
            names = arguments.runners or [
                name for name in RUNNERS if arguments.oldest or name not in OLDEST
            ]
            runners = [make(name, environments) for name in names]
        verdicts = play_all(
            runners, cases, partial(_tell, arguments.verbose), arguments.jobs, arguments.sample
        )
    by_id = {case.id: case for case in cases}
    titles = {runner.name: runner.title for runner in runners}
    print(text_table(summary(by_id, titles, verdicts)))
    for name in titles:
        seconds = sum(verdict.seconds for verdict in verdicts if verdict.client == name)
        print(f"{name}: {seconds:.0f} s")
    if arguments.page:
        PAGE.write_text(page(by_id, titles, verdicts), "utf-8")
    return 1 if any(verdict.state == "differs" for verdict in verdicts) else 0


def _tell(verbose: bool, verdict: Verdict) -> None:
    """Print a verdict that differs, or any that was played."""
    if verdict.state == "differs" or (verbose and verdict.state != "refused"):
        lines = [f"{verdict.client}: {verdict.case}: {verdict.state}", *verdict.lines]
        if verbose and verdict.output:
            lines += [f"| {line}" for line in verdict.output.strip().splitlines()]
        print("\n    ".join(lines), flush=True)


if __name__ == "__main__":
    sys.exit(main())
