"""Runs of the corpus: what each client made of each case, and the known differences."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import partial

from . import FOLDER
from .case import Case, matches
from .outcome import differences
from .place import prepared
from .runners import LIBRARIES
from .runners.base import Runner
from .states import play_steps, wants


@dataclass(frozen=True)
class Difference:
    """A difference that is known and explained.

    Attributes:
        client: name of the runner, or a prefix of names.
        cases: globs of ids.
        why: the reason, in one sentence.
        right: who is right, ``corpus``, ``client`` or ``open``.
    """

    client: str
    cases: Sequence[str]
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
        lacks: what the case wants and the runner does not declare, see `Runner.plays`.
    """

    client: str
    case: str
    state: str
    lines: Sequence[str] = ()
    difference: Difference | None = None
    output: str = ""
    seconds: float = 0.0
    lacks: Sequence[str] = ()


def read_differences() -> list[Difference]:
    """Return the known differences."""
    tree = json.loads((FOLDER / "differences.json").read_text("utf-8"))
    return [Difference(**item) for item in tree]


def play(runner: Runner, case: Case, known: Iterable[Difference] = ()) -> Verdict:
    """Let *runner* play *case* and compare."""
    clients = case.tree.get("clients")
    if clients is not None and not runner.name.startswith(tuple(clients)):
        return Verdict(runner.name, case.id, "refused", ["the case is for other clients"])
    cannot = sorted(wants(case) - runner.plays)
    if cannot:
        line = f"does not play {', '.join(cannot)}"
        return Verdict(runner.name, case.id, "refused", [line], lacks=cannot)
    reason = runner.refuses(case)
    if reason:
        return Verdict(runner.name, case.id, "refused", [reason])
    start = time.monotonic()
    given = runner.given(case)
    try:
        with prepared(given, serve=runner.name not in LIBRARIES) as place:
            if case.form == "steps":
                lines, output = play_steps(runner, given, place)
            else:
                outcome = runner.play(given, place)
                lines, output = differences(case, outcome, words=runner.is_ours), outcome.output
    except Exception as error:
        # One case must not end the run of all.
        line = f"the runner fails: {type(error).__name__}: {error}"
        return Verdict(runner.name, case.id, "differs", [line])
    why = next(
        (item for item in known
         if runner.name.startswith(item.client) and matches(case.id, item.cases)),
        None,
    )  # fmt: skip
    state = "agrees" if not lines else "explained" if why else "differs"
    return Verdict(
        runner.name,
        case.id,
        state,
        lines,
        why if lines else None,
        output,
        time.monotonic() - start,
    )


def play_all(
    runners: Sequence[Runner],
    cases: Sequence[Case],
    progress: Callable[[Verdict], None],
    jobs: int,
    every: int = 1,
) -> list[Verdict]:
    """Let one runner after the other play every case, *jobs* at a time; *progress* gets each.

    Libraries play all, in milliseconds. Clients that are started for each case play every case that
    was written by hand, and every *every*-th of those that were generated or recorded.
    """
    known = read_differences()
    many = [case for case in cases if case.is_one_of_many]
    left_out = {case.id for number, case in enumerate(many) if number % every}
    found = []
    with ThreadPoolExecutor(jobs) as pool:
        for runner in runners:
            out = () if runner.name in LIBRARIES else left_out
            played = [case for case in cases if case.id not in out]
            with closing(runner):
                for verdict in pool.map(partial(play, runner, known=known), played):
                    progress(verdict)
                    found.append(verdict)
    return found
