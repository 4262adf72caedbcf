"""``python -m hostile``: list cases, serve one, or run some against an installer."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from .cases import Case, read_cases
from .clients import Client, Pip, Resolve, Uv
from .server import serving
from .verdict import play

CLIENTS: dict[str, Callable[..., Client]] = {
    "pip": Pip,
    "plain-pip": partial(Pip, name="plain-pip"),
    "uv": Uv,
    "uv-variants": lambda program, uv: Uv(uv, program),
    "resolve": Resolve,
}
"""By the option that takes the interpreter of a pip, or the programs."""


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m hostile", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="list the cases")
    serve = commands.add_parser("serve", help="serve a case until interrupted")
    serve.add_argument("case")
    run = commands.add_parser("run", help="run cases against an installer")
    run.add_argument("cases", nargs="*", help="default: all")
    kinds = run.add_mutually_exclusive_group(required=True)
    for name in CLIENTS:
        words = ("UV-VARIANTS", "UV") if name == "uv-variants" else ("PROGRAM",)
        kinds.add_argument(f"--{name}", nargs=len(words), metavar=words)
    run.add_argument("-v", "--verbose", action="store_true", help="show what the client prints")
    arguments = parser.parse_args()
    cases = read_cases()
    if arguments.command == "list":
        for case in cases.values():
            print(f"{case.id}: {case.title}")
        return 0
    if arguments.command == "serve":
        return _serve(cases[arguments.case])
    chosen = [cases[name] for name in arguments.cases] or list(cases.values())
    given = {name: getattr(arguments, name.replace("-", "_")) for name in CLIENTS}
    ((name, programs),) = ((name, programs) for name, programs in given.items() if programs)
    return _run(chosen, CLIENTS[name](*programs), verbose=arguments.verbose)


def _serve(case: Case) -> int:
    with tempfile.TemporaryDirectory() as folder:
        places = {name: f"{folder}/{name}" for name in ("root", "work", "home", "mark")}
        with serving(case, places) as served:
            print(case.title)
            print(json.dumps({"servers": served.urls, "run": served.case.run}, indent=2))
            try:
                while True:
                    time.sleep(1)
            except KeyboardInterrupt:
                for request in served.requests:
                    print(request.method, request.url)
    return 0


def _run(cases: list[Case], client: Client, *, verbose: bool) -> int:
    failed = 0
    for case in cases:
        if case.clients and client.name not in case.clients:
            continue
        with tempfile.TemporaryDirectory() as folder:
            outcome = play(case, client, Path(folder).resolve() / "place")
        failed += bool(outcome.violations)
        run = outcome.run
        print(
            f"{case.id:40} {'; '.join(outcome.violations) or 'ok'} "
            f"[{run.code}, {dict(outcome.installed)}, {run.cpu:.1f} s, "
            f"{run.memory / 1e6:.0f} MB, {run.seconds:.1f} s]",
            flush=True,
        )
        if verbose:
            print(run.output)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
