"""Run a case against a client, and compare what came of it with what the case expects."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from .cases import Case, Command
from .clients import Client, found
from .content import evaluate
from .measure import Place, Run
from .server import Request, serving

CPU_SECONDS = 2.0
"""CPU time that an attack may cost beyond what the client needs without one."""
MEMORY_BYTES = 300_000_000
"""Memory that a client may have during an attack."""
WALL_SECONDS = 60.0
"""A client that takes longer hangs."""


class Outcome(NamedTuple):
    """What came of a case.

    Attributes:
        installed: ``VERSION`` or ``VERSION-LABEL`` by project.
        run: exit status, output, and costs.
        violations: what differs from what the case expects, in words.
    """

    installed: Mapping[str, str]
    run: Run
    violations: list[str]


def play(
    case: Case, client: Client, root: Path, *, idle_cpu: float = 0.0, load: float = 1
) -> Outcome:
    """Run *case* against *client*.

    Args:
        case: as read.
        client: the installer.
        root: an empty directory for all that the client sees and writes.
        idle_cpu: CPU seconds that the client takes for the case ``honest``.
        load: what CPU time is multiplied by on this machine, e.g. 2 where it is shared.
    """
    place = Place(root)
    place.create()
    mark = root / "mark"
    places = {"root": root, "work": place.work, "home": place.home, "mark": mark}
    with serving(case, {name: str(path) for name, path in places.items()}) as served:
        filled = served.case
        _write(filled, root)
        seconds = filled.expect.get("bounds", {}).get("seconds", WALL_SECONDS)
        command = Command(**{key.replace("-", "_"): value for key, value in filled.run.items()})
        run = client.install(command, place, seconds)
        requests = tuple(served.requests)
    installed = found(place.target)
    expect = dict(filled.expect)
    for exception in expect.pop("exceptions", ()):
        if re.fullmatch(exception["client"], client.name):
            expect |= exception
    problems = [*_outcome(expect, run, installed), *_traces(expect, run, requests, place, mark)]
    problems += _costs(expect.get("bounds", {}), run, idle_cpu, load)
    return Outcome(installed, run, problems)


def _write(case: Case, root: Path) -> None:
    for path, spec in case.files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(spec, Mapping) and "link" in spec:
            file.symlink_to(spec["link"])
        elif isinstance(spec, Mapping) and "fifo" in spec:
            os.mkfifo(file)
        else:
            file.write_bytes(evaluate(spec))
    for path, mode in case.modes.items():
        (root / path).chmod(int(mode, 8))


def _outcome(expect: Mapping[str, Any], run: Run, installed: Mapping[str, str]) -> Iterator[str]:
    if run.timed_out:
        yield f"hangs: killed after {run.seconds:.0f} s"
        return
    for allowed in expect["outcomes"]:
        if "installed" in allowed and run.code == 0 and allowed["installed"] == installed:
            break
        if "crashed" in allowed and run.code < 0 and not installed:
            break
        refused = "refused" in allowed and run.code > 0 and not installed
        if refused and re.search(allowed["refused"], run.output):
            break
    else:
        yield f"exit status {run.code}, installed {dict(installed)}; expected {expect['outcomes']}"
    if "Traceback (most recent call last)" in run.output and not expect.get("traceback"):
        yield "traceback"


def _traces(
    expect: Mapping[str, Any], run: Run, requests: Iterable[Request], place: Place, mark: Path
) -> Iterator[str]:
    must_not = expect.get("must-not", {})
    for request in requests:
        for pattern in ("canary", *must_not.get("contact", ())):
            if request.url.startswith(pattern):
                yield f"contacts {pattern}: {request.method} {request.url}"
        head = "\n".join([request.target, *request.headers.values()])
        for secret in must_not.get("send", ()):
            if secret["text"] in head and request.url.startswith(secret["to"]):
                yield f"sends {secret['text']!r} to {request.url}"
    if run.left and not run.timed_out:
        yield "leaves processes behind"
    if mark.exists():
        yield "runs code"
    for path in must_not.get("create", ()):
        if Path(path).exists() or Path(path).is_symlink():
            yield f"creates {path}"
    for text in must_not.get("print", ()):
        if text in run.output:
            yield f"prints {text!r}"
    for text in must_not.get("install", ()):
        for file in place.target.rglob("*"):
            if file.is_file() and not file.is_symlink() and text.encode() in file.read_bytes():
                yield f"installs {text!r} in {file.name}"


def _costs(bounds: Mapping[str, float], run: Run, idle_cpu: float, load: float) -> Iterator[str]:
    cpu = bounds.get("cpu", CPU_SECONDS) * load + idle_cpu
    if run.cpu > cpu:
        yield f"takes {run.cpu:.1f} s of CPU, more than {cpu:.1f}"
    memory = bounds.get("memory", MEMORY_BYTES)
    if run.memory > memory:
        yield f"takes {run.memory / 1e6:.0f} MB of memory, more than {memory / 1e6:.0f}"
