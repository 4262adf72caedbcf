"""What is known of a uv command before it runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .command_scope import Scope
from .configuration import workspace_root
from .lockfile import lock_path
from .named_projects import requested
from .report import warn

if TYPE_CHECKING:
    from pep_variants.choose.preferences import Preferences

    from .invocation import Invocation
    from .own_options import Options
    from .place import Place


@dataclass(frozen=True)
class Context:
    """One command of uv's.

    Attributes:
        uv: path of uv.
        invocation: uv's command line.
        scope: what it works on.
        place: where it runs.
        options: our own options.
        preferences: which variants are preferred or forced, from options, variables and files.
        cache: directory of our cache.
        lock: path of the lock file, None for commands without one.
    """

    uv: str
    invocation: Invocation
    scope: Scope
    place: Place
    options: Options
    preferences: Preferences
    cache: Path
    lock: Path | None

    @property
    def requested(self) -> list[str]:
        """Names of the projects that the command names, or that its project depends on."""
        return requested(self.invocation, self.place)

    @property
    def is_quiet(self) -> bool:
        """Whether uv was asked to print no more than it has to."""
        return self.invocation.has("q", "quiet")

    @property
    def is_verbose(self) -> bool:
        """Whether uv was asked to print more."""
        return self.invocation.has("v", "verbose")


def read_preferences(options: Options, place: Place) -> Preferences:
    """Return the preferences of options, variables and ``variants.toml``.

    Raises:
        PreferenceError: one of them is not valid.
    """
    from pep_variants.settings.loader import load_preferences
    from pep_variants.settings.places import places

    # An activated environment is the user's; the one in a project may come with the checkout.
    activated = place.environ.get("VIRTUAL_ENV")
    candidates = places(
        place.cwd, activated or str(place.project / ".venv"), prefix_is_project=not activated
    )
    return load_preferences(options.variants, place.environ, warn=warn, candidates=candidates)


def find_lock(invocation: Invocation, scope: Scope, place: Place) -> Path | None:
    """Return the path of the lock file that the command uses, None without one."""
    if scope is not Scope.PROJECT:
        return None
    script = invocation.last("script")
    if invocation.command == ("run",) and invocation.operands:
        operand = invocation.operands[0]
        if operand.endswith(".py") and lock_path(None, place.cwd / operand).is_file():  # type: ignore[union-attr]
            script = operand
    return lock_path(
        workspace_root(place.project.absolute()), place.cwd / script if script else None
    )
