"""``python -m conformance``: list, show, serve or run the cases of the corpus."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from . import FOLDER
from .case import Case, read_cases
from .indexes import serving
from .table import page, summary, text_table
from .verdict import Verdict, play_all, read_results, sampled, write_results

PAGE = FOLDER.parent / "docs" / "reference" / "conformance.md"


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m conformance", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    listing = commands.add_parser("list", help="list cases")
    show = commands.add_parser("show", help="print cases")
    serve = commands.add_parser("serve", help="serve the index of a case until interrupted")
    run = commands.add_parser("run", help="let clients play cases, and print the table")
    results = commands.add_parser("page", help=f"write {PAGE.name} from the results of runs")
    results.add_argument("files", nargs="+", type=Path, metavar="FILE", help="as of run --results")
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
    run.add_argument(
        "--results", type=Path, metavar="FILE",
        help="keep results in this JSON file, and show those of other runs in it as well",
    )  # fmt: skip
    run.add_argument("--wheelhouse", type=Path, help="where downloaded pips and uvs are kept")
    arguments = parser.parse_args()
    if arguments.command == "page":
        return _page(arguments.files)
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


def _page(files: Sequence[Path]) -> int:
    cases = read_cases()
    titles: dict[str, str] = {}
    verdicts: dict[tuple[str, str], Verdict] = {}
    for file in files:
        found, items = read_results(file)
        titles |= found
        verdicts |= {(item.client, item.case): item for item in items if item.case in cases}
    _write_page(cases, titles, list(verdicts.values()))
    return 0


def _write_page(
    cases: Mapping[str, Case], titles: Mapping[str, str], verdicts: Sequence[Verdict]
) -> None:
    from .runners import RUNNERS

    ordered = {name: titles[name] for name in RUNNERS if name in titles} or titles
    print(text_table(summary(cases, ordered, verdicts)))
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(cases, ordered, verdicts), "utf-8")


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
        total = sum(len(sampled(runner, cases, arguments.sample)) for runner in runners)
        progress = _Progress(total, verbose=arguments.verbose)
        verdicts = play_all(runners, cases, progress.tell, arguments.jobs, arguments.sample)
    progress.end()
    failed = any(verdict.state == "differs" for verdict in verdicts)
    by_id = {case.id: case for case in cases}
    titles = {runner.name: runner.title for runner in runners}
    if arguments.results is not None:
        by_id = read_cases()
        new = {(verdict.client, verdict.case) for verdict in verdicts}
        known, earlier = read_results(arguments.results)
        verdicts += [
            item for item in earlier if (item.client, item.case) not in new and item.case in by_id
        ]
        titles = {name: (known | titles)[name] for name in RUNNERS if name in known | titles}
        write_results(arguments.results, titles, verdicts)
    if not arguments.page:
        print(text_table(summary(by_id, titles, verdicts)))
    seconds: dict[str, float] = {}
    for verdict in verdicts:
        seconds[verdict.client] = seconds.get(verdict.client, 0) + verdict.seconds
    print(", ".join(f"{name} {total:.0f} s" for name, total in seconds.items()))
    if arguments.page:
        _write_page(by_id, titles, verdicts)
    return 1 if failed else 0


class _Progress:
    """Prints what differs, and on a terminal how far the run is."""

    def __init__(self, total: int, *, verbose: bool) -> None:
        self._total = total
        self._verbose = verbose
        self._done = 0
        self._lock = threading.Lock()

    def tell(self, verdict: Verdict) -> None:
        """Note *verdict*."""
        with self._lock:
            self._done += 1
            if verdict.state == "differs" or (self._verbose and verdict.state != "refused"):
                self.end()
                print(f"{verdict.client}: {verdict.case}: {verdict.state}", flush=True)
                for line in verdict.lines:
                    print(f"    {line}", flush=True)
                if self._verbose and verdict.output:
                    print("    | " + verdict.output.strip().replace("\n", "\n    | "), flush=True)
            if sys.stderr.isatty():
                print(f"\r{self._done}/{self._total}", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        """Clear the line."""
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
