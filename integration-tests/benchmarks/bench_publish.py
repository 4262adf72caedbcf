"""Indexing a directory of many wheels: all of it, again, and after one new wheel.

Beside reading and hashing the same files, which is the least that an index can cost.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from support.wheels import X86_64, Wheel, metadata

from .report import Row

PROJECTS, VERSIONS, TAGS = 100, 20, ("cp311-cp311-linux_x86_64", "cp312-cp312-linux_x86_64")
LABELS = ("null", "x86_64_v1", "x86_64_v2", "x86_64_v3", "x86_64_v4")
_AGE = 60  # files that have just changed are read again


def rows() -> Iterator[Row]:
    """Measure."""
    with tempfile.TemporaryDirectory(prefix="variants-bench-") as temporary:
        folder = Path(temporary)
        count = _fill(folder)
        started = time.perf_counter()
        for path in folder.glob("*.whl"):
            hashlib.sha256(path.read_bytes()).hexdigest()
        hashing = time.perf_counter() - started
        against = f"hashing them: {hashing:.2f} s"
        first, memory = _index(folder)
        yield Row(f"variants index, {count:,} wheels", first, hashing, "s", against)
        again, _ = _index(folder)
        yield Row("the same again", again, first, "s", "the first run")
        _add(folder, "project-1", 999, TAGS[0], "x86_64_v3")
        more, _ = _index(folder)
        yield Row("after one new wheel", more, first, "s", "the first run")
        yield Row("peak memory of the first run", memory, _index(folder)[1], "MB", "the last run")


def _fill(folder: Path) -> int:
    count = 0
    for project in range(PROJECTS):
        for version in range(VERSIONS):
            for tag in TAGS:
                for label in LABELS:
                    _add(folder, f"project-{project}", version, tag, label)
                    count += 1
    return count


def _add(folder: Path, project: str, version: int, tag: str, label: str) -> None:
    properties = {} if label == "null" else {"x86_64": {"level": [label[-2:]]}}
    document = metadata({label: properties}, namespaces=["x86_64"], providers={"x86_64": X86_64})
    wheel = Wheel(project, f"{version}.0", label, tag, variant_json=document)
    path = folder / wheel.filename
    path.write_bytes(wheel.build())
    then = time.time() - _AGE
    os.utime(path, (then, then))


_COMMAND = """
import resource, sys
from variants_cli.main import main
try:
    main(["index", sys.argv[1]])
finally:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def _index(folder: Path) -> tuple[float, float]:
    """Return seconds and megabytes of one run."""
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", _COMMAND, str(folder)], check=True, capture_output=True, text=True
    )
    spent = time.perf_counter() - started
    return spent, int(done.stdout.split()[-1]) / 1024
