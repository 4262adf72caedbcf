"""`make bench`: run the benchmark groups and print one line per comparison.

BENCH=engine runs one group. Groups are the ``bench_*.py`` modules beside this file.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from .report import show


def main(wanted: list[str]) -> int:
    """Run the groups named in *wanted*, all of them if it is empty."""
    folder = Path(__file__).parent
    groups = sorted(path.stem.removeprefix("bench_") for path in folder.glob("bench_*.py"))
    unknown = set(wanted) - set(groups)
    if unknown:
        print(f"no benchmark group {', '.join(sorted(unknown))}; there are {', '.join(groups)}")
        return 2
    for group in wanted or groups:
        module = importlib.import_module(f".bench_{group}", __package__)
        print(f"{group}")
        for line in show(module.rows()):
            print(f"  {line}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
