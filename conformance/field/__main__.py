"""``python -m conformance.field``: serve the field's index on loopback until interrupted."""

from __future__ import annotations

import argparse
import sys
import time

from support.index import served

from .standin import Standin


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m conformance.field", description=__doc__)
    parser.add_argument(
        "--html", action="store_true", help="pages in HTML alone, as PEP 503 has it"
    )
    arguments = parser.parse_args()
    with served(Standin(api="html" if arguments.html else "json", ranges=True)) as index:
        print(index.url, flush=True)
        try:
            while True:
                time.sleep(1)
        except KeyboardInterrupt:
            return 0


if __name__ == "__main__":
    sys.exit(main())
