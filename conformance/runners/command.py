"""Any installer, as a command that reads a case as JSON on stdin."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hostile.clients import found

from ..case import Case
from ..outcome import Outcome
from ..place import Place
from ..program import Finished, execute
from .base import Runner, not_for_installers, not_for_others


class Command(Runner):
    """The command of ``--command``, split as by a shell."""

    name = "command"
    is_ours = False

    def __init__(self, command: str, plays: Iterable[str] = ()) -> None:
        """Start *command*, which can do in cases with steps what *plays* names."""
        self.title = command
        self.plays = frozenset(plays)

    def refuses(self, case: Case) -> str:
        """Refuse what is not for installers, and our own options."""
        return not_for_installers(case, locks=True) or not_for_others(case)

    def play(self, case: Case, place: Place) -> Outcome:
        """Start the command."""
        with self.environment(place) as folder:
            done = self.step(case, place, folder)
            return Outcome(done.code != 0, installed=found(folder), output=done.output)

    @contextmanager
    def environment(self, place: Place) -> Iterator[Path]:
        """Make the directory to install into."""
        place.target.mkdir()
        yield place.target

    def step(self, step: Case, place: Place, folder: Path) -> Finished:
        """Start the command for a case, or for one of its steps."""
        main, *extra = place.served.indexes
        has_lock = step.form == "lock" or bool(step.tree.get("locked"))
        job = {
            "id": step.id,
            "do": step.tree.get("do", "install"),
            "index": main,
            "extra-indexes": extra,
            "find-links": place.served.find_links,
            "install": place.served.install,
            "locked": step.tree.get("locked"),
            "lock": str(place.lock) if has_lock else None,
            "platform": None if place.platform is None else str(place.platform),
            "target": step.tree.get("target"),
            "environ": step.tree.get("environ", {}),
            "directory": str(folder),
        }
        return execute(shlex.split(self.title), place.variables, place.work, json.dumps(job))
