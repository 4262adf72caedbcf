"""``python -m conformance.field``: serve the field's index, or write the page about it."""

from __future__ import annotations

import argparse
import sys
import time

from support.index import served

from .. import FOLDER
from .standin import Standin
from .table import page

PAGE = FOLDER.parent / "docs" / "reference" / "field.md"


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m conformance.field", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    serve = commands.add_parser("serve", help="serve the index on loopback until interrupted")
    serve.add_argument("--html", action="store_true", help="pages in HTML alone, as PEP 503 has it")
    write = commands.add_parser("page", help=f"write docs/{PAGE.name}")
    write.add_argument("--print", action="store_true", help="print it instead")
    arguments = parser.parse_args()
    if arguments.command == "page":
        if arguments.print:
            print(page(), end="")
        else:
            PAGE.parent.mkdir(exist_ok=True)
            PAGE.write_text(page(), "utf-8")
        return 0
    with served(Standin(api="html" if arguments.html else "json", ranges=True)) as index:
        print(index.url, flush=True)
        try:
            while True:
                time.sleep(1)
        except KeyboardInterrupt:
            return 0


if __name__ == "__main__":
    sys.exit(main())
