"""``make fuzz``: fuzz every target for its share of the time, two at once.

Prints one line per target. A failing input is written to ``.fuzz`` with the command that repeats
it; put it into ``found/TARGET/`` when the defect is mended.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .targets import TARGETS

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".fuzz"
_EXECUTED = re.compile(r"stat::number_of_executed_units:\s*(\d+)")
_COVERAGE = re.compile(r"cov: (\d+)")


def main() -> int:
    """Return 1 if an input was found that a reader does not stand."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="all by default")
    parser.add_argument("--seconds", type=int, default=60, help="in all")
    parser.add_argument(
        "--inputs", type=int, help="of each target, instead of seconds: the same ones every time"
    )
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of the mutations")
    given = parser.parse_args()
    unknown = set(given.targets) - TARGETS.keys()
    if unknown:
        parser.error(f"no target {', '.join(sorted(unknown))}; there are {', '.join(TARGETS)}")
    wanted = given.targets or list(TARGETS)
    processes = min(os.cpu_count() or 1, len(wanted))
    share = max(1, given.seconds * processes // len(wanted))
    FOLDER.mkdir(exist_ok=True)
    length = f"{given.inputs} inputs" if given.inputs else f"{share} s"
    print(f"{len(wanted)} targets, {length} each, seed {given.seed}", flush=True)
    with ThreadPoolExecutor(processes) as pool:
        outcomes = list(pool.map(lambda name: _fuzz(name, share, given.inputs, given.seed), wanted))
    executed = sum(count for count, _ in outcomes)
    failed = sum(not good for _, good in outcomes)
    print(f"{executed} inputs, {failed} of {len(wanted)} targets failed")
    return 1 if failed else 0


def _fuzz(name: str, seconds: int, inputs: int | None, seed: int) -> tuple[int, bool]:
    """Return how many inputs *name* was given, and whether it stood them all."""
    before = set(FOLDER.iterdir())
    command = [sys.executable, "-m", "fuzz.worker", name, str(seconds), str(seed), str(FOLDER)]
    if inputs:
        command += ["--inputs", str(inputs)]
    done = subprocess.run(
        command, cwd=ROOT / "integration-tests", capture_output=True, text=True, check=False,
        errors="replace",
    )  # fmt: skip
    executed = _EXECUTED.search(done.stderr)
    coverage = _COVERAGE.findall(done.stderr)
    count = int(executed[1]) if executed else 0
    shown = f", coverage {coverage[-1]}" if coverage else ""
    failing = sorted(path for path in set(FOLDER.iterdir()) - before if path.name.startswith(name))
    if done.returncode == 0 and not failing:
        print(f"  {name:22} {count:9} inputs{shown}", flush=True)
        return count, True
    _, _, defect = done.stdout.partition("Uncaught Python exception")
    tail = "\n".join(defect.splitlines()[1:40] or done.stderr.splitlines()[-25:])
    print(f"  {name:22} {count:9} inputs{shown}: FAILED\n{tail}", flush=True)
    for path in failing:
        print(f"  repeat with: python -m fuzz.worker {name} 0 0 . {path}", flush=True)
    return count, False


if __name__ == "__main__":
    sys.exit(main())
