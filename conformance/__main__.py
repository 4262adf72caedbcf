"""``python -m conformance``: list, show, serve or run the cases of the corpus."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from support.environments import Environments
from support.isolation import isolate

from . import FOLDER
from .case import Case, read_cases
from .indexes import serving
from .runners import OLDEST, RUNNERS
from .runners.command import Command
from .table import markdown_table, page, summary
from .verdict import Verdict, play_all

PAGE = FOLDER.parent / "docs" / "reference" / "conformance.md"


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m conformance", description=__doc__)
    commands = parser.add_subparsers(dest="action", required=True)
    commands.add_parser("list", help="list cases")
    commands.add_parser("show", help="print cases")
    commands.add_parser("serve", help="serve the index of a case until interrupted")
    run = commands.add_parser("run", help="let clients play cases, and print the table")
    run.add_argument("-r", "--runner", action="append", choices=list(RUNNERS), dest="runners")
    run.add_argument("--oldest", action="store_true", help="the oldest pip and uv as well")
    run.add_argument("--command", help="a command that plays cases, see README.md")
    run.add_argument(
        "--plays", nargs="+", default=(), metavar="WORD",
        help="what that command can do in cases with steps, see README.md",
    )  # fmt: skip
    run.add_argument("-v", "--verbose", action="store_true", help="show what clients print")
    run.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1)
    run.add_argument("--page", action="store_true", help=f"write {PAGE.name} of the documentation")
    run.add_argument(
        "--sample", type=int, default=1, metavar="N",
        help="of generated cases and those of the field, let installers play every Nth",
    )  # fmt: skip
    run.add_argument(
        "--wheelhouse", type=Path, default=FOLDER.parent / ".tools" / "wheelhouse",
        help="where downloaded pips and uvs are kept",
    )  # fmt: skip
    for name, command in commands.choices.items():
        command.add_argument(
            "cases", nargs=1 if name == "serve" else "*", metavar="CASE", help="id, or glob of ids"
        )
    arguments = parser.parse_args()
    cases = read_cases(arguments.cases)
    if not cases:
        parser.error(f"no case matches {' '.join(arguments.cases)}")
    if arguments.action == "run":
        return _run(cases, arguments)
    if arguments.action == "serve":
        return _serve(next(iter(cases.values())))
    for case in cases.values():
        if arguments.action == "show":
            print(json.dumps({"id": case.id, **case.tree}, indent=2, ensure_ascii=False))
        else:
            print(f"{case.id}: {case.tree['title']}")
    return 0


def _serve(case: Case) -> int:
    with serving(case) as served:
        print(f"{case.id}: {case.tree['title']}")
        for url in served.indexes:
            print(f"index: {url}")
        for url in served.find_links:
            print(f"find links: {url}")
        print(f"install: {' '.join(served.install)}", flush=True)
        try:
            while True:
                time.sleep(1)
        except KeyboardInterrupt:
            return 0


def _run(cases: Mapping[str, Case], arguments: argparse.Namespace) -> int:
    wheelhouse = arguments.wheelhouse.resolve()  # clients run in other folders
    wheelhouse.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="conformance-") as name:
        folder = Path(name).resolve()
        isolate(folder / "home")
        environments = Environments(folder / "environments", wheelhouse)
        names = arguments.runners or [n for n in RUNNERS if arguments.oldest or n not in OLDEST]
        runners = (
            [Command(arguments.command, arguments.plays)]
            if arguments.command
            else [RUNNERS[name](environments) for name in names]
        )
        tell = partial(_tell, arguments.verbose)
        played = list(cases.values())
        verdicts = play_all(runners, played, tell, arguments.jobs, arguments.sample)
    titles = {runner.name: runner.title for runner in runners}
    print(markdown_table(summary(cases, titles, verdicts)))
    for name in titles:
        seconds = sum(verdict.seconds for verdict in verdicts if verdict.client == name)
        print(f"{name}: {seconds:.0f} s")
    for runner in runners:
        beyond = [item.lacks for item in verdicts if item.client == runner.name and item.lacks]
        if beyond:
            words = ", ".join(sorted({word for item in beyond for word in item}))
            print(f"{runner.name}: does not play {words}, which {len(beyond)} cases want")
    if arguments.page:
        PAGE.write_text(page(cases, titles, verdicts), "utf-8")
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
