"""Building the variants of a matrix on this machine, from one source distribution."""

from __future__ import annotations

import platform
import shutil
import sys
import threading
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path

from .build_plan import BuildError, Plan
from .build_results import Built, Failed
from .memory import machine_memory, parallel_builds
from .model import Variant
from .source_archive import SourceArchive
from .variant_build import build_variant


def for_this_machine(
    variants: Sequence[Variant],
) -> tuple[tuple[Variant, ...], tuple[Variant, ...]]:
    """Return the *variants* that this machine can build, and the others."""
    fits = [_fits_here(variant) for variant in variants]
    pairs = list(zip(variants, fits, strict=True))
    return tuple(v for v, fit in pairs if fit), tuple(v for v, fit in pairs if not fit)


def _fits_here(variant: Variant) -> bool:
    target = variant.platform
    return all(host.evaluate() for host in variant.hosts) and (
        target is None or target.can_build(sys.platform, platform.machine())
    )


@contextmanager
def locked(plan: Plan) -> Iterator[None]:
    """Lock the folder of *plan* against other runs, and remove source trees of killed ones.

    Raises:
        BuildError: another run has the lock.
    """
    from filelock import FileLock, Timeout

    plan.folder.mkdir(parents=True, exist_ok=True)
    plan.output.mkdir(parents=True, exist_ok=True)
    plan.target.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(plan.folder / "lock", timeout=0):
            for left in plan.folder.glob("tree-*"):
                shutil.rmtree(left, ignore_errors=True)
            yield
    except Timeout:
        raise BuildError(
            f"{plan.output}: another build is running: wait for it, or choose another folder"
        ) from None


def build_all(
    plan: Plan, variants: Sequence[Variant], sdist: Path
) -> Generator[Variant | Built | Failed, None, None]:
    """Build *variants*; yield each one when it starts, and each result as soon as it is there.

    A failure does not stop other builds. Closing the iterator stops those that are running.
    """
    source = SourceArchive.read(sdist)
    stop = threading.Event()
    jobs = parallel_builds(plan.jobs, plan.matrix.build.memory, machine_memory())
    pending = list(variants)
    running: dict[Future[Built | Failed], Variant] = {}
    with ThreadPoolExecutor(jobs) as executor:
        try:
            while pending or running:
                while pending and len(running) < jobs:
                    variant = pending.pop(0)
                    yield variant
                    running[executor.submit(build_variant, plan, variant, source, stop)] = variant
                # With a timeout: some systems deliver signals only between waits.
                for future in wait(running, timeout=0.5, return_when=FIRST_COMPLETED).done:
                    del running[future]
                    yield future.result()
        finally:
            stop.set()
