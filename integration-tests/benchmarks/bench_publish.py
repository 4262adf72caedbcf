"""Indexing and validating a directory of 50,000 wheels: all of it, again, after one new wheel.

Beside reading and hashing the same files, which is the least that an index can cost. Seconds are
of CPU, of all processes together: a busy machine does not change them much.
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
from typing import NamedTuple

from support.wheels import X86_64, Wheel, metadata

from .report import Row

PROJECTS, VERSIONS, TAGS = 250, 20, ("cp311-cp311-linux_x86_64", "cp312-cp312-linux_x86_64")
LABELS = ("null", "x86_64_v1", "x86_64_v2", "x86_64_v3", "x86_64_v4")
_AGE = 60  # files that have just changed are read again
_FIRST = 60.0
_NEW = 4.0
_WHEEL = 2.0


class Spent(NamedTuple):
    """What a command took.

    Attributes:
        seconds: of CPU, of all its processes.
        megabytes: the most memory of one of them.
    """

    seconds: float
    megabytes: float


def rows() -> Iterator[Row]:
    """Measure."""
    with tempfile.TemporaryDirectory(prefix="variants-bench-") as temporary:
        folder = Path(temporary)
        count = fill(folder, PROJECTS)
        started = time.process_time()
        for path in folder.glob("*.whl"):
            hashlib.sha256(path.read_bytes()).hexdigest()
        hashing = time.process_time() - started
        first = _run("index", folder)
        goal, met = f"{_FIRST:g} s", first.seconds <= _FIRST
        what = f"variants index, {count:,} wheels"
        yield Row(what, first.seconds, hashing, "s", "hashing them", goal, met)
        again = _run("index", folder)
        yield Row("the same again", again.seconds, first.seconds, "s", "the first run")
        _add(folder, "project-1", 999, TAGS[0], "null")
        new = _run("index", folder)
        goal, met = f"{_NEW:g} s", new.seconds <= _NEW
        yield Row(
            "after one new wheel", new.seconds, first.seconds, "s", "the first run", goal, met
        )
        yield Row("peak memory of the first run", first.megabytes, new.megabytes, "MB", "the last")
        checked = _run("validate", folder)
        each = checked.seconds / count * 1000
        yield Row(
            "variants validate, a wheel", each, hashing / count * 1000, "ms", "hashing it",
            f"{_WHEEL:g} ms", each <= _WHEEL,
        )  # fmt: skip
        yield Row("peak memory of it", checked.megabytes, first.megabytes, "MB", "the first index")


def fill(folder: Path, projects: int) -> int:
    """Write 200 wheels for each of *projects* into *folder*; return their number."""
    count = 0
    for project in range(projects):
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
import resource, subprocess, sys
words = [sys.executable, "-c", "from variants_cli.main import main; main()", *sys.argv[1:]]
done = subprocess.run(words, stdout=sys.stderr)
spent = resource.getrusage(resource.RUSAGE_CHILDREN)
print(spent.ru_utime + spent.ru_stime, spent.ru_maxrss / 1024)
sys.exit(done.returncode)
"""


def _run(*words: str | Path) -> Spent:
    done = subprocess.run(
        [sys.executable, "-c", _COMMAND, *map(str, words)],
        check=True,
        capture_output=True,
        text=True,
    )
    return Spent(*map(float, done.stdout.split()))
