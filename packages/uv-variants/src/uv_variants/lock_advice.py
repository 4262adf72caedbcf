"""What a user should know of a lock on this machine: variants that do not fit, or that it lacks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .command_scope import Scope
from .site_packages import Installed, installed_variants, installed_without_variant

if TYPE_CHECKING:
    from .installed_state import InstalledState

MOST_ASKED = 8
"""Most projects of a lock without variants that the index is asked about."""

_PAGE = "docs/how-to/uv-locks.md"


def unfit(state: InstalledState) -> Iterator[str]:
    """Yield which variants are installed because the lock has them, and do not fit this machine."""
    context = state.context
    locked = context.lock.labels
    now = installed_variants(context.environments)
    if context.invocation.command == ("run",) and now == state.before:
        return  # the output is the program's; `sync` has said it
    concerned = [
        each
        for name, each in now.items()
        if each.label in locked.get(name, {}).get(each.version, ())
        and not state.marks.is_known(each)
    ]
    state.choices.ask(each.name for each in concerned)
    for each in concerned:
        choice = state.choices.of_installed(each)
        rows = choice.locked if choice is not None else ()
        found = next((row for row in rows if row.label == each.label), None)
        if found is None:
            continue
        if found.fits:
            state.marks.remember(each)
            continue
        instead = f"variant {found.instead!r}" if found.instead else "the non-variant wheel"
        yield (
            f"{each.name} {each.version} is installed as variant {each.label!r}, which "
            f"{context.lock.path.name if context.lock.path else 'the lock'} has and which does not "
            f"fit this machine: {found.why}; lock {instead} with uv-variants lock "
            f"--upgrade-package {each.name}, or see {_PAGE} for locks that fit several machines"
        )


def lacking(state: InstalledState) -> Iterator[str]:
    """Yield that there are variants of projects that a lock has without, in one line.

    The index is asked about few projects, once a day.
    """
    context = state.context
    asks = context.scope is Scope.PROJECT and context.invocation.command == ("sync",)
    if not asks or context.is_offline or not context.preferences.use_variants:
        return
    versions = context.lock.versions
    named = context.lock.projects
    names = [name for name in context.requested if name in versions and name not in named]
    asked = Installed("lock", " ".join(f"{name}=={min(versions[name])}" for name in names), None)
    if not names or state.marks.is_known(asked):
        return
    installed = (installed_without_variant(context.environments, name) for name in names)
    # What has a local part is a build that the lock names.
    candidates = [each for each in installed if each is not None and "+" not in each.version]
    found: list[str] = []
    options: list[str] = []
    state.choices.ask(each.name for each in candidates[:MOST_ASKED])
    for each in candidates[:MOST_ASKED]:
        better = _better(state, each)
        if better is not None:
            found.append(f"{each.name} {each.version} ({better})")
            options.append(f"--upgrade-package {each.name}")
    state.marks.remember(asked)
    if found:
        yield (
            f"the lock has no variants; there are some that fit this machine: {', '.join(found)}; "
            f"take them with uv-variants lock {' '.join(options)}"
        )


def _better(state: InstalledState, each: Installed) -> str | None:
    """Return the label that would be chosen for what is installed without one."""
    choice = state.choices.of_installed(each)
    if choice is None:
        return None
    instead = next((row.instead for row in choice.locked if row.label is None), None)
    better = instead or choice.label_for(each.tags)
    return None if better == choice.label_of_build(each) else better
