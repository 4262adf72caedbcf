"""``variants resolve``, of this environment."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.environments import Environments

from ..case import Case
from ..outcome import Outcome
from ..place import Place
from ..program import Finished
from .base import Installer, index_options, not_for_installers, target_options, variant_options


class Resolve(Installer):
    """``variants resolve --download``."""

    name = "resolve"
    title = "variants resolve"
    entry = "variants_cli.main:main"
    command = "variants"

    def __init__(self, environments: Environments) -> None:  # noqa: ARG002
        super().__init__(sys.executable)

    def play(self, case: Case, place: Place) -> Outcome:
        """Resolve and download."""
        arguments = ["resolve", "--no-cache", *index_options(place, last_is_main=True)]
        arguments += [*variant_options(case, place), *target_options(case, "--python-platform")]
        return self.run(place, [*arguments, "--download", str(place.target), *place.install])


class ResolveLock(Resolve):
    """``variants resolve -o`` and ``variants resolve --from``."""

    name = "resolve-lock"
    title = "variants resolve, from a lock file"
    plays = frozenset({"lock", "add", "sync", "other-machine"})

    def refuses(self, case: Case) -> str:
        """Refuse what is not for installers."""
        return not_for_installers(case, locks=True)

    def play(self, case: Case, place: Place) -> Outcome:
        """Lock, unless there is a lock file already, and download what is chosen from it."""
        options = self._options(case, place)
        lock = ["resolve", *options, "-o", str(place.lock), *place.install]
        install = ["resolve", *options, "--from", str(place.lock)]
        install += ["--download", str(place.target)]
        return self.run(place, *([install] if case.form == "lock" else [lock, install]))

    @contextmanager
    def environment(self, place: Place) -> Iterator[Path]:
        """Make a folder for what is downloaded."""
        place.target.mkdir()
        yield place.target

    def step(self, step: Case, place: Place, folder: Path) -> Finished:
        """Lock everything, or download what is chosen from the lock."""
        more = ["-o", str(place.lock), *step.tree["locked"]]
        if step.tree["do"] == "sync":
            more = ["--from", str(place.lock), "--download", str(folder)]
        return self.start(["resolve", *self._options(step, place), *more], place)

    @staticmethod
    def _options(case: Case, place: Place) -> list[str]:
        options = [*variant_options(case, place), *target_options(case, "--python-platform")]
        return [*options, "--no-cache", *index_options(place, last_is_main=True)]  # plugins as well
