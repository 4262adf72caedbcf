"""Which upstreams answer, as far as requests of clients have shown: none is asked for it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone

from ..errors import NothingFetched
from ..settings import Upstream

_ANSWERS = (404, 410, 451)
"""Status of errors that are answers: the upstream has no such page."""


@dataclass
class Answering:
    """What requests have shown of one upstream.

    Attributes:
        answers: whether the last one had an answer, None before the first.
        since: time from which that is so, in seconds of the epoch.
        problem: why it had none, without a URL: clients without a token are told.
        oldest: when the oldest page was checked that a client got meanwhile, None for none.
    """

    answers: bool | None = None
    since: float | None = None
    problem: str = ""
    oldest: float | None = None

    def note(self, *, answers: bool, problem: str = "") -> None:
        """Note how a request has ended."""
        if answers is not self.answers:
            self.answers, self.since = answers, time.time()
        self.problem = problem
        if answers:
            self.oldest = None

    def to_tree(self) -> dict[str, object]:
        """Return it as JSON has it, see `proxy.md`."""
        return {
            "answers": self.answers,
            "since": None if self.since is None else _time(self.since),
            "problem": self.problem or None,
            "oldest_page_seconds": None
            if self.oldest is None
            else round(time.time() - self.oldest, 1),
        }


class Health:
    """The state of all upstreams of a proxy."""

    def __init__(self, indexes: Iterable[Upstream]) -> None:
        self._begun = time.time()
        self._indexes = {item.name: Answering() for item in indexes}
        self._places: dict[str, Answering] = {}

    def answered(self, upstream: Upstream) -> None:
        """Note an answer."""
        self._of(upstream).note(answers=True)

    def failed(self, upstream: Upstream, error: NothingFetched) -> None:
        """Note an error."""
        answers = error.status in _ANSWERS
        self._of(upstream).note(answers=answers, problem="" if answers else error.problem)

    def is_late(self, upstream: Upstream, seconds: float) -> None:
        """Note that a request has had no answer for some seconds."""
        self._of(upstream).note(answers=False, problem=f"no answer within {seconds:g} seconds")

    def served_old(self, upstream: Upstream, age: float) -> None:
        """Note that a client got a page that was checked *age* seconds ago."""
        state, checked = self._of(upstream), time.time() - age
        state.oldest = checked if state.oldest is None else min(state.oldest, checked)

    def to_tree(self) -> dict[str, object]:
        """Return it as JSON has it, see `proxy.md`."""
        failing = [each.answers is False for each in self._indexes.values()]
        others = any(each.answers is False for each in self._places.values())
        status = "degraded" if any(failing) or others else "ok"
        return {
            "status": "failing" if failing and all(failing) else status,
            "upstreams": len(self._indexes),
            "since": _time(self._begun),
            "indexes": _listed(self._indexes),
            "places": _listed(self._places),
        }

    def _of(self, upstream: Upstream) -> Answering:
        state = self._indexes.get(upstream.name)
        return self._places.setdefault(upstream.name, Answering()) if state is None else state


def _listed(states: Mapping[str, Answering]) -> list[dict[str, object]]:
    return [{"name": name, **state.to_tree()} for name, state in sorted(states.items())]


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="seconds")
