"""``variants resolve``, of this environment."""

from __future__ import annotations

import sys

from support.environments import Environments

from ..case import Case
from ..outcome import Outcome
from ..place import Place
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

    def refuses(self, case: Case) -> str:
        """Refuse what is not for installers."""
        return not_for_installers(case, locks=True)

    def play(self, case: Case, place: Place) -> Outcome:
        """Lock, unless there is a lock file already, and download what is chosen from it."""
        options = [*variant_options(case, place), *target_options(case, "--python-platform")]
        options += ["--no-cache", *index_options(place, last_is_main=True)]  # plugins as well
        lock = ["resolve", *options, "-o", str(place.lock), *place.install]
        install = ["resolve", *options, "--from", str(place.lock)]
        install += ["--download", str(place.target)]
        return self.run(place, *([install] if case.form == "lock" else [lock, install]))
