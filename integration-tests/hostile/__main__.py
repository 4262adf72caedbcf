"""``python -m hostile``: list cases, serve one, or run some against an installer."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

from .cases import Case, read_cases
from .clients import Client
from .clients.pip import Pip
from .clients.resolve import Resolve
from .clients.uv import Uv
from .server import serving
from .verdict import play


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
    kinds.add_argument("--pip", metavar="PYTHON", help="the pip of this interpreter")
    kinds.add_argument("--plain-pip", metavar="PYTHON", help="one without variants")
    kinds.add_argument("--uv", metavar="UV", help="this uv")
    kinds.add_argument("--uv-variants", nargs=2, metavar=("UV-VARIANTS", "UV"))
    kinds.add_argument("--resolve", metavar="VARIANTS", help="variants resolve")
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
    return _run(chosen, _client(arguments), verbose=arguments.verbose)


def _client(arguments: argparse.Namespace) -> Client:
    if arguments.pip:
        return Pip(arguments.pip)
    if arguments.plain_pip:
        return Pip(arguments.plain_pip, "plain-pip", variants=False)
    if arguments.resolve:
        return Resolve([arguments.resolve])
    if arguments.uv:
        return Uv(arguments.uv)
    program, uv = arguments.uv_variants
    return Uv(uv, "uv-variants", variants=program)


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
            f"[{run.code}, {dict(outcome.installed)}, {run.cpu or 0:.1f} s, "
            f"{(run.memory or 0) / 1e6:.0f} MB, {run.seconds:.1f} s]",
            flush=True,
        )
        if verbose:
            print(run.output)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
