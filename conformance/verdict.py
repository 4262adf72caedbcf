"""Runs of the corpus: what each client made of each case, and the known differences."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from . import FOLDER
from .case import Case, matches
from .outcome import Outcome, differences
from .place import prepared
from .runners import Runner

DIFFERENCES = FOLDER / "differences.json"
RIGHT = ("corpus", "client", "open")
LIBRARIES = frozenset({"engine", "variantlib"})
"""Runners that play a case in milliseconds: no program is started for it."""


@dataclass(frozen=True)
class Difference:
    """A difference that is known and explained.

    Attributes:
        client: name of the runner, or a prefix of names.
        cases: globs of ids.
        why: the reason, in one sentence.
        right: who is right, one of `RIGHT`.
    """

    client: str
    cases: tuple[str, ...]
    why: str
    right: str


@dataclass(frozen=True)
class Verdict:
    """What one client made of one case.

    Attributes:
        client: name of the runner.
        case: the id.
        state: ``agrees``, ``differs``, ``explained`` or ``refused``.
        lines: what differs, or why the case was refused.
        difference: the explanation, for ``explained``.
        output: what the client printed.
        seconds: how long it took.
    """

    client: str
    case: str
    state: str
    lines: tuple[str, ...] = ()
    difference: Difference | None = None
    output: str = ""
    seconds: float = 0.0


def read_differences() -> list[Difference]:
    """Return the known differences."""
    found = [
        Difference(item["client"], tuple(item["cases"]), item["why"], item["right"])
        for item in json.loads(DIFFERENCES.read_text("utf-8"))
    ]
    for item in found:
        if item.right not in RIGHT:
            raise ValueError(f"differences.json: {item.right!r} is none of {', '.join(RIGHT)}")
    return found


def play(runner: Runner, case: Case, known: Iterable[Difference] = ()) -> Verdict:
    """Let *runner* play *case* and compare."""
    clients = case.tree.get("clients")
    if clients is not None and not runner.name.startswith(tuple(clients)):
        return Verdict(runner.name, case.id, "refused", ("the case is for other clients",))
    reason = runner.refuses(case)
    if reason:
        return Verdict(runner.name, case.id, "refused", (reason,))
    start = time.monotonic()
    with prepared(case) as place:
        try:
            outcome: Outcome = runner.play(case, place)
        except Exception as error:
            # One case must not end the run of all.
            line = f"the runner fails: {type(error).__name__}: {error}"
            return Verdict(runner.name, case.id, "differs", (line,))
    lines = tuple(differences(case, outcome))
    seconds = time.monotonic() - start
    if not lines:
        return Verdict(runner.name, case.id, "agrees", seconds=seconds)
    for item in known:
        if runner.name.startswith(item.client) and matches(case.id, item.cases):
            return Verdict(runner.name, case.id, "explained", lines, item, outcome.output, seconds)
    return Verdict(runner.name, case.id, "differs", lines, None, outcome.output, seconds)


def sampled(runner: Runner, cases: Sequence[Case], every: int) -> list[Case]:
    """Return those of *cases* that *runner* plays if it plays a sample.

    Libraries play all, in milliseconds. Clients that are started for each case play every case that
    was written by hand, and every *every*-th of those that were generated or recorded.
    """
    if every == 1 or runner.name in LIBRARIES:
        return list(cases)
    many = [case for case in cases if case.is_one_of_many]
    left_out = {case.id for number, case in enumerate(many) if number % every}
    return [case for case in cases if case.id not in left_out]


def play_all(
    runners: Sequence[Runner],
    cases: Sequence[Case],
    progress: Callable[[Verdict], None],
    jobs: int,
    every: int = 1,
) -> list[Verdict]:
    """Let one runner after the other play every case, *jobs* cases at a time.

    Args:
        runners: the clients.
        cases: what they play.
        progress: called with each verdict.
        jobs: how many cases are played at the same time.
        every: see `sampled`.
    """
    known = read_differences()
    found = []
    with ThreadPoolExecutor(jobs) as pool:
        for runner in runners:
            try:
                for verdict in pool.map(
                    partial(play, runner, known=known), sampled(runner, cases, every)
                ):
                    progress(verdict)
                    found.append(verdict)
            finally:
                runner.close()
    return found
