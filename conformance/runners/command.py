"""Any installer, as a command that reads a case as JSON on stdin."""

from __future__ import annotations

import json
import shlex
import subprocess

from hostile.clients import found

from ..case import Case
from ..outcome import Outcome
from ..place import Place
from ..program import SECONDS
from . import not_for_others


class Command:
    """The command of ``--command``."""

    name = "command"
    is_ours = False

    def __init__(self, command: str) -> None:
        """Use *command*, as a shell would split it."""
        self._command = shlex.split(command)
        self.title = command

    def close(self) -> None:
        """Nothing runs."""

    def refuses(self, case: Case) -> str:
        """Refuse what is not for installers, and our own options."""
        return not_for_others(case) if case.is_installable else "about a library"

    def play(self, case: Case, place: Place) -> Outcome:
        """Start the command."""
        served = place.served
        place.target.mkdir()
        job = {
            "id": case.id,
            "index": served.index,
            "extra-indexes": list(served.extra_indexes),
            "find-links": list(served.find_links),
            "install": list(served.install),
            "lock": str(place.lock) if case.form == "lock" else None,
            "platform": None if place.platform is None else str(place.platform),
            "target": case.tree.get("target"),
            "environ": case.tree.get("environ", {}),
            "directory": str(place.target),
        }
        done = subprocess.run(
            self._command,
            input=json.dumps(job).encode(),
            env=dict(place.variables),
            cwd=place.work,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=SECONDS,
            check=False,
        )
        return Outcome(
            done.returncode != 0,
            installed=found(place.target),
            output=done.stdout.decode("utf-8", "replace"),
            is_ours=False,
        )
