"""What must not be used, although uv succeeded: an incomplete lock, or two names for one build."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from .errors import SourcesMissing, TwoNames
from .locked_variants import Lock
from .report import warn
from .site_packages import installed_files, installed_versions

if TYPE_CHECKING:
    from .context import Context
    from .installed_state import InstalledState
    from .proxy_client import Choices

_ALLOWED = "VARIANTS_ALLOW_MISSING_SOURCES"
_NEVER = "{} ; sys_platform == 'never'"
"""An override with which uv takes a project for not required."""


def check_sources(
    context: Context, choices: Choices, names: Iterable[str], restore: Callable[[], str]
) -> None:
    """Check that all places could be reached that the catalogue names for what was locked.

    Args:
        context: the command.
        choices: of the proxy.
        names: normalized names of projects.
        restore: undoes what uv wrote; returns what that is.

    Raises:
        SourcesMissing: one could not.
    """
    if context.preferences.catalog is None or context.place.is_on(_ALLOWED):
        return
    from variants_proxy.commands.catalog_remarks import failures

    lines = failures(choices.reports(names))
    for line in lines:
        warn(line)
    if lines:
        raise SourcesMissing(
            f"{restore()}: the next run might lock other builds; try again, or lock without these "
            f"with the variable {_ALLOWED}=1"
        )


def check_lock(state: InstalledState, noted: Iterable[str]) -> None:
    """Check the lock file that a command wrote.

    Args:
        state: of the lock file.
        noted: projects (normalized names) that the proxy has notices about.

    Raises:
        SourcesMissing: `check_sources`.
        TwoNames: two of its packages have the same files.
    """
    context, before = state.context, state.context.lock
    now = Lock.read(before.path)
    if context.preferences.catalog is None or now.text is None or now.text == before.text:
        return
    if context.invocation.command == ("lock",):
        names = [name for name in noted if name in now.versions]
        check_sources(context, state.choices, names, before.restore)
    for project, name in _two_names(context, now.versions):
        if _together(now, project, name):
            raise TwoNames(
                f"{now.path}: {name} is what its publisher calls a build of {project}, with the "
                f"same files, and both would be installed: require one of them; to keep {name}, "
                "add to pyproject.toml [tool.uv] override-dependencies = "
                f'["{_NEVER.format(project)}"], and lock again'
            )


def check_installed(state: InstalledState) -> None:
    """Check what a command installed.

    Raises:
        TwoNames: two distributions have the same files.
    """
    environments = state.context.environments
    if state.context.preferences.catalog is None or not environments:
        return
    now = installed_versions(environments)
    if now == state.versions_before:
        return
    for project, name in _two_names(state.context, (name for name, _ in now)):
        if installed_files(environments, project) & installed_files(environments, name):
            raise TwoNames(
                f"{name} is what its publisher calls a build of {project}, and both are "
                "installed, with the same files: uv-variants pip uninstall "
                f"{project} {name}, then install one of them; to keep {name} where something "
                f"requires {project}, with --override FILE, in which there is: "
                f"{_NEVER.format(project)}"
            )


def _two_names(context: Context, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    from variants_proxy.commands.catalog_remarks import two_names

    return two_names(names, context.preferences, context.place.cwd)


def _together(lock: Lock, project: str, name: str) -> bool:
    """Return whether a lock installs both packages without extras, on one platform."""
    from variants_proxy.choice.wheel_environments import ELSEWHERE, environments

    if not {project, name} <= lock.required:
        return False
    places = []
    for each in (project, name):
        files = [plain for text in lock.versions[each] for _, plain in lock.files(each, text)[0]]
        found = environments(files) if files else None
        places.append({region for region, of in found.deciding.items() if of} if found else set())
    both = set.intersection(*places)
    return bool(both) or (all(places) and any(ELSEWHERE in each for each in places))
