"""``make fuzz``: give every target mutated seeds, several targets at once.

Prints one line per target. A failing input is written to ``.fuzz``; put it into ``found/TARGET/``
when the defect is mended. Inputs depend on the random seed only.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import hypothesis
from hypothesis import strategies as st

from .seeds import seeds, words
from .targets import TARGETS, check

FOLDER = Path(__file__).resolve().parents[2] / ".fuzz"
CPU_SECONDS = 2.0
"""The longest that one input within the limits may take."""


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
    length = f"{given.inputs} inputs" if given.inputs else f"{share} s"
    print(f"{len(wanted)} targets, {length} each, seed {given.seed}", flush=True)
    failed = 0
    with ProcessPoolExecutor(processes) as pool:
        run = partial(_fuzz, seconds=share, inputs=given.inputs, seed=given.seed)
        for name, (count, defect) in zip(wanted, pool.map(run, wanted), strict=True):
            print(f"  {name:22} {count:9} inputs {defect}", flush=True)
            failed += bool(defect)
    print(f"{failed} of {len(wanted)} targets failed")
    return 1 if failed else 0


def _fuzz(name: str, *, seconds: int, inputs: int | None, seed: int) -> tuple[int, str]:
    """Return how many inputs the target was given, and the defect that ended it."""
    pieces = st.one_of(
        st.binary(max_size=8), st.sampled_from([word.encode() for word in words(name)] or [b""])
    )
    edits = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 16), pieces), max_size=8)
    settings = hypothesis.settings(
        max_examples=inputs or 200,
        deadline=None,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    count, last = 0, b""

    def run(data: bytes, changes: list[tuple[float, int, bytes]]) -> None:
        nonlocal count, last
        for place, removed, added in changes:
            start = int(place * len(data))
            data = data[:start] + added + data[start + removed :]
        count, last = count + 1, data
        begun = time.process_time()
        check(name, data)
        spent = time.process_time() - begun
        assert spent <= CPU_SECONDS, f"took {spent:.1f} s of CPU for {len(data)} bytes"

    end = time.monotonic() + seconds
    while True:
        test = hypothesis.given(st.sampled_from(seeds(name)), edits)(run)
        try:
            hypothesis.seed(seed)(settings(test))()
        except Exception:
            path = FOLDER / f"{name}-{seed}"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(last)
            return count, f"FAILED, see {path}\n{traceback.format_exc()}"
        if inputs or time.monotonic() > end:
            return count, ""
        seed += 1


if __name__ == "__main__":
    sys.exit(main())
