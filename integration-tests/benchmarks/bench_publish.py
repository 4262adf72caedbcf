"""Indexing and validating a directory of 50,000 wheels: all of it, again, after one new wheel.

Beside reading and hashing the same files, which is the least that an index can cost. Seconds are
of CPU, of all processes together: a busy machine does not change them much.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from support.wheels import X86_64, Wheel, metadata

from .report import Row, children

PROJECTS, VERSIONS, TAGS = 250, 20, ("cp311-cp311-linux_x86_64", "cp312-cp312-linux_x86_64")
LABELS = ("null", "x86_64_v1", "x86_64_v2", "x86_64_v3", "x86_64_v4")
_AGE = 60  # files that have just changed are read again


def rows() -> Iterator[Row]:
    """Measure."""
    with tempfile.TemporaryDirectory(prefix="variants-bench-") as temporary:
        folder = Path(temporary)
        kinds = list(itertools.product(range(PROJECTS), range(VERSIONS), TAGS, LABELS))
        for project, version, tag, label in kinds:
            _add(folder, f"project-{project}", version, tag, label)
        count = len(kinds)
        started = time.process_time()
        for path in folder.glob("*.whl"):
            hashlib.sha256(path.read_bytes()).hexdigest()
        hashing = time.process_time() - started
        first = _run("index", folder)
        what = f"variants index, {count:,} wheels"
        yield Row(what, first, hashing, "s", "hashing them", "at most 60 s", first <= 60)
        _add(folder, "project-1", 999, TAGS[0], "null")
        new = _run("index", folder)
        what += ", after one new wheel"
        yield Row(what, new, first, "s", "the first run", "at most 4 s", new <= 4)
        each, hashing = (1e3 * seconds / count for seconds in (_run("validate", folder), hashing))
        what = "variants validate, a wheel"
        yield Row(what, each, hashing, "ms", "hashing it", "at most 2 ms", each <= 2)


def _add(folder: Path, project: str, version: int, tag: str, label: str) -> None:
    properties = {} if label == "null" else {"x86_64": {"level": [label[-2:]]}}
    document = metadata({label: properties}, namespaces=["x86_64"], providers={"x86_64": X86_64})
    wheel = Wheel(project, f"{version}.0", label, tag, variant_json=document)
    path = folder / wheel.filename
    path.write_bytes(wheel.build())
    then = time.time() - _AGE
    os.utime(path, (then, then))


def _run(command: str, folder: Path) -> float:
    """Return the seconds of CPU of a command."""
    before = children()
    program = Path(sys.executable).with_name("variants")
    subprocess.run([program, command, folder], check=True, capture_output=True)
    return children() - before
