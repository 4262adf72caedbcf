"""Resolving over an index, with variants on it and with none, by the size of the universe.

Each resolution runs in a process of its own, beside the one that serves the index; CPU time and
the largest resident size are those of the resolving process alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .report import Row, peak_megabytes

ROOT = Path(__file__).resolve().parents[1]
SIZES = (100, 500, 2000)
EVERY = 10
VERSIONS = 20
WORST = 50

PLATFORM = """
[[provider]]
namespace = "nvidia"
[provider.properties]
cuda_version_lower_bound = ["12.8", "12.7", "12.6", "12.5", "12.4", "12.3", "12.2", "12.1", "12.0"]
"""


def rows() -> Iterator[Row]:
    """Measure."""
    against = "plain resolvelib, no variants"
    for size in SIZES:
        with _served(size, 0) as plain, _served(size, EVERY) as mixed:
            rounds = 2 if size > 500 else 5
            runs = [
                (
                    _run(mixed, "wrapped"),
                    _run(mixed, "plain"),
                    _run(plain, "wrapped"),
                    _run(plain, "plain"),
                )
                for _ in range(rounds)
            ]
        variants, unwrapped, without, base = zip(*runs, strict=True)
        what = f"{size} projects x {VERSIONS} versions"
        kinds = ((f"{what}, no variants", without), (f"{what}, a tenth with 12", variants))
        for text, ours in kinds:
            spent, theirs = _least(ours, "cpu"), _least(base, "cpu")
            met = spent <= 1.08 * theirs
            yield Row(text, spent, theirs, "s", against, "at most 1.08x", met, size=size)
        # What pages with more files on them cost, whoever reads them.
        yield Row(
            "  not wrapped, a tenth with 12 variants that nobody looks at",
            _least(unwrapped, "cpu"), _least(base, "cpu"), "s", against,
        )  # fmt: skip
        for text, key, unit in (
            ("largest resident size", "size", "MB"),
            ("requests", "requests", ""),
            ("wall time", "wall", "s"),
        ):
            yield Row(
                f"  {text}, a tenth with 12",
                _least(variants, key), _least(base, key), unit, against,
            )  # fmt: skip
    with _served(1, 1, versions=WORST, fitting=False) as hopeless:
        found = _run(hopeless, "wrapped")
    yield Row(
        f"requests, {WORST} versions of which nothing fits", found["requests"], WORST + 1, "",
        "one page and one file per version", "no more", found["requests"] <= WORST + 1,
    )  # fmt: skip


def _least(runs: Any, key: str) -> float:
    """Return the best of all runs: what others do on the machine only ever adds to it."""
    return float(min(run[key] for run in runs))


@contextmanager
def _served(
    projects: int, every: int, *, versions: int = VERSIONS, fitting: bool = True
) -> Iterator[str]:
    arguments = map(str, (projects, every, versions, int(fitting)))
    command = [sys.executable, "-m", "support.synthetic", *arguments]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.stdin.close()


def _run(url: str, kind: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.bench_index", url, kind],
        cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONHASHSEED": "0"},
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def measured(url: str, kind: str) -> dict[str, float]:
    """Resolve in this process; return what it took."""
    import time

    from resolvelib import BaseReporter, Resolver

    from pep_variants.formats.platform_file import read_platform
    from pep_variants.sources import Sources
    from resolvelib_variants.resolution import (
        IndexResolver,
        NoSolution,
        RequirementSet,
        parse_requirement,
    )
    from resolvelib_variants.resolution.index_provider import IndexProvider
    from resolvelib_variants.resolution.resolver import MAX_ROUNDS
    from variants_index.evaluator import CandidateEvaluator
    from variants_index.target import host_target

    target = host_target(read_platform(PLATFORM, "platform.toml"))
    requirement_set = RequirementSet((parse_requirement("project-0"),))
    start, wall = time.process_time(), time.perf_counter()
    with IndexResolver(Sources(index_url=url), environ={}) as resolver:
        if kind == "plain":
            evaluator = CandidateEvaluator(resolver.finder, target)
            provider = IndexProvider(
                resolver.session, resolver.prefetcher, resolver.finder, evaluator, target
            )
            reporter: BaseReporter[Any, Any, Any] = BaseReporter()
            roots = provider.roots(requirement_set.requirements)
            found = len(Resolver(provider, reporter).resolve(roots, MAX_ROUNDS).mapping)
        else:
            try:
                found = len(resolver.resolve(requirement_set, target).packages)
            except NoSolution:
                found = 0
        requests = resolver.session.requests
    return {
        "cpu": time.process_time() - start,
        "wall": time.perf_counter() - wall,
        "size": peak_megabytes(),
        "requests": requests,
        "found": found,
    }


if __name__ == "__main__":
    print(json.dumps(measured(*sys.argv[1:3])))
