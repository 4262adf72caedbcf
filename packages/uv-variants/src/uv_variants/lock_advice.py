"""What a user should know of a lock on this machine: variants that do not fit, or that it lacks."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .command_scope import Scope
from .installed_state import FittingMarks
from .locked_variants import Lock
from .report import warn
from .site_packages import Installed, installed_variants, installed_without_variant

if TYPE_CHECKING:
    from .installed_state import InstalledState
    from .session_plan import SessionPlan

MOST_ASKED = 8
"""Most projects of a lock without variants that the index is asked about."""

_PAGE = "docs/how-to/uv-locks.md"


def after_lock(plan: SessionPlan, state: InstalledState) -> None:
    """Write which machine a lock is for, and print what is to be known of it on this one.

    Args:
        plan: of the command, which succeeded.
        state: of lock file and environment before it.
    """
    lines = [*_machine_of_lock(plan), *_unfit(plan, state), *_lacking(plan, state)]
    if not state.context.is_quiet:
        for line in lines:
            warn(line)


def _machine_of_lock(plan: SessionPlan) -> Iterator[str]:
    """Write which machine the lock is for that has variants now; yield what is to be known."""
    context, before = plan.context, plan.context.lock
    now = Lock.read(before.path)
    is_new = now.text != before.text or context.kept.keys() != before.names.keys()
    stays = context.is_frozen or context.invocation.has("dry-run", "check", "check-exists")
    if now.path is None or now.text is None or not is_new or stays:
        return
    from pep_variants.internal import names_file

    from .lock_machine import LockMachine, path_beside

    known = plan.lock_machine
    if known is not None:
        if not known.is_like(plan.machine_here.machine):
            yield (
                f"{now.path.name} was locked for {known}, which is not this machine; "
                "--variant-platform names another one to lock for (native: this one)"
            )
        return
    if path_beside(now.path).exists() and "variant-platform" not in context.options.variants:
        return  # it cannot be read, or is not about what this command chose
    builds = _builds(now) if context.preferences.catalog is not None else set()
    if plan.plugins is not None or not (now.labels or builds):
        return  # what plugins say has no place in a platform file
    if {*before.labels, *_builds(before)} & context.kept.keys():
        return  # it was chosen for a machine that nothing is known of
    given = context.preferences.platform_file
    name = "" if given is None or names_file(given) else given
    machine = LockMachine.of(now.path, plan.machine.machine, name)
    machine.write(now.path.name)
    yield (
        f"{now.path.name} is for {name or 'this machine'}, as {machine.path.name} beside it says: "
        "keep both together"
    )


def _builds(lock: Lock) -> set[str]:
    """Return the projects of a lock with a version whose local part names a build."""
    return {name for name, versions in lock.versions.items() if any("+" in v for v in versions)}


def _unfit(plan: SessionPlan, state: InstalledState) -> Iterator[str]:
    """Yield which variants are installed because the lock has them, and do not fit this machine."""
    context = state.context
    now = installed_variants(context.environments)
    if context.invocation.command == ("run",) and now == state.before:
        return  # the output is the program's; `sync` has said it
    locked = context.lock.labels
    found = [
        (each, why)
        for name, each in now.items()
        if each.label in locked.get(name, {}).get(each.version, ())
        if (why := _why_unfit(each, plan))
    ]
    if not found:
        return
    first, why = found[0]
    others = ", ".join(f"{each.name} {each.version} ({each.label!r})" for each, _ in found[1:])
    lock = context.lock.path.name if context.lock.path else "the lock"
    machine = f" for {plan.lock_machine}" if plan.lock_machine is not None else ""
    yield (
        f"{first.name} {first.version} is installed as variant {first.label!r}, which {lock} has"
        f"{machine} and which does not fit this machine: {why}"
        + (f"; the same holds for {others}" if others else "")
        + f"; see {_PAGE} for locks that fit several machines"
    )


def _why_unfit(installed: Installed, plan: SessionPlan) -> str:
    """Return why a variant does not fit the machine at hand, empty if it does."""
    here = plan.machine_here
    marks = FittingMarks(plan.context.cache / "fits", lambda: f"lock {here.key}", ())
    if installed.folder is None or here.platform is None or marks.is_known(installed):
        return ""
    from pep_variants import Detector, VariantError, rank, read_metadata
    from pep_variants.internal import (
        ABI_DEPENDENCY,
        DOCUMENT_BYTES,
        VARIANT_FILE,
        read_regular,
        why_not,
    )

    path = installed.folder / VARIANT_FILE
    try:
        metadata = read_metadata(read_regular(path, DOCUMENT_BYTES).data, str(path))
    except (OSError, VariantError):
        return ""  # what is installed is what the lock has, whatever became of it
    preferences = plan.context.preferences
    platform = Detector(enabled=preferences.enable, platform=here.platform).platform(metadata)
    ranking = rank(metadata, platform, preferences)
    label = str(installed.label)
    if all(reason.namespace == ABI_DEPENDENCY for reason in ranking.reasons(label)):
        marks.remember(installed)
        return ""
    return "; ".join(why_not(ranking, label))


def _lacking(plan: SessionPlan, state: InstalledState) -> Iterator[str]:
    """Yield that there are variants of projects of a lock that has none, in one line.

    The index is asked about few projects, once a day.
    """
    context, lock = state.context, state.context.lock
    asks = context.scope is Scope.PROJECT and context.invocation.command == ("sync",)
    if not asks or context.is_offline or not context.preferences.use_variants or lock.projects:
        return
    names = [name for name in context.requested if name in lock.versions]
    asked = Installed(
        "lock", " ".join(f"{name}=={min(lock.versions[name])}" for name in names), None
    )
    # Another machine or other settings are another question; what this one supports takes long.
    settings = f"{platform.node()} {context.preferences!r}"
    marks = FittingMarks(context.cache / "fits", lambda: settings, state.marks.indexes)
    if not names or marks.is_known(asked):
        return
    if plan.lock_machine is not None and not plan.lock_machine.is_like(plan.machine_here.machine):
        return  # what fits here is of no use for the lock
    installed = (installed_without_variant(context.environments, name) for name in names)
    # What has a local part is a build that the lock names.
    candidates = [each for each in installed if each is not None and "+" not in each.version]
    better = {}
    state.choices.ask(each.name for each in candidates[:MOST_ASKED])
    for each in candidates[:MOST_ASKED]:
        if (choice := state.choices.of_installed(each)) is not None:
            instead = next((row.instead for row in choice.locked if row.label is None), None)
            label = instead or choice.label_for(each.tags)
            if label not in (None, choice.label_of_build(each)):
                better[each.name] = f"{each.name} {each.version} ({label})"
    marks.remember(asked)
    if better:
        options = " ".join(f"--upgrade-package {name}" for name in better)
        yield (
            f"the lock has no variants; there are some that fit this machine: "
            f"{', '.join(better.values())}; uv-variants lock {options} takes them, for everybody "
            "who uses the lock"
        )
