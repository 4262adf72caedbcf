"""Any installer, as a command that reads a case as JSON on stdin."""

from __future__ import annotations

import json
import shlex

from hostile.clients import found

from ..case import Case
from ..outcome import Outcome
from ..place import Place
from ..program import execute
from .base import Runner, not_for_installers, not_for_others


class Command(Runner):
    """The command of ``--command``, split as by a shell."""

    name = "command"
    is_ours = False

    def __init__(self, command: str) -> None:
        self.title = command

    def refuses(self, case: Case) -> str:
        """Refuse what is not for installers, and our own options."""
        return not_for_installers(case, locks=True) or not_for_others(case)

    def play(self, case: Case, place: Place) -> Outcome:
        """Start the command."""
        main, *extra = place.served.indexes
        place.target.mkdir()
        job = {
            "id": case.id,
            "index": main,
            "extra-indexes": extra,
            "find-links": place.served.find_links,
            "install": place.served.install,
            "lock": str(place.lock) if case.form == "lock" else None,
            "platform": None if place.platform is None else str(place.platform),
            "target": case.tree.get("target"),
            "environ": case.tree.get("environ", {}),
            "directory": str(place.target),
        }
        command = shlex.split(self.title)
        done = execute(command, place.variables, place.work, json.dumps(job))
        return Outcome(done.code != 0, installed=found(place.target), output=done.output)
