"""Bounds of versions: uv takes the newest build for the accelerator before newer versions.

uv orders versions itself. What ``--variant-before-version`` puts first is decided before uv runs:
a bound such as ``torch<=2.14.0`` for the command alone, which nothing writes down. ``pip install``
gets it as a constraint, ``tool run`` as ``--with``, as it is for what that names, and other
commands as ``--upgrade-package``, which does not upgrade what was not there. Where uv finds no
solution with it, uv runs again without.

Bounds are for projects that the command or its requirement files name, or on which its project
depends. Of others it is not known before uv runs that they are needed: uv is shown their newer
releases as yanked, as by a shared proxy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from pep_variants import machines
from pep_variants import selection as wheel_selection

from ._checks import admitted_choices
from ._named_projects import admits, name_of, normalized
from ._switching import NO_CHANGES, upgraded

if TYPE_CHECKING:
    from pep_variants.selection import NewestBuild

    from ._context import Context
    from ._state import CommandState
    from ._switching import Changes

_CONSTRAINED = (("pip", "install"),)
_WITH = (("tool", "run"),)
_UPGRADED = (
    *(("lock",), ("sync",), ("add",), ("remove",), ("run",), ("export",), ("tree",)),
    ("pip", "compile"),
)
_YANKED = (*_CONSTRAINED, ("lock",), ("sync",), ("add",))
"""Commands that may run once more, where something requires what is yanked."""


def wanted_builds(state: CommandState, changes: Changes = NO_CHANGES) -> dict[str, NewestBuild]:
    """Return which builds shall go before newer versions, by project (normalized name).

    Args:
        state: before the command.
        changes: what is decided about what is installed.
    """
    context = state.context
    if context.invocation.command not in (*_CONSTRAINED, *_WITH, *_UPGRADED):
        return {}
    names = _names(state, changes) if _has_rule(context) else ()
    if not names or not _has_accelerator(state):
        return {}
    state.choices.ask(names)
    found = {}
    for name in names:
        admitted = admitted_choices(context, state.choices, name)
        newest = next((each for each in admitted.values() if each.labels or each.older_build), None)
        older = None if newest is None else newest.older_build
        if older is not None and older.version and admits(context.texts, name, str(older.version)):
            found[name] = older
    return found


def in_order(state: CommandState, changes: Changes) -> set[str] | None:
    """Return the projects that are not yanked, see `ClientSettings.in_order`.

    What is named may have a bound, what is there stays, and a label that is forced decides.
    """
    context = state.context
    if context.invocation.command not in _YANKED or not _has_rule(context):
        return None
    if context.invocation.has("reinstall", "force-reinstall"):
        return None  # a second run would take nothing for there
    is_elsewhere = context.catalog is not None and context.local_catalog is None
    if is_elsewhere or not _has_accelerator(state):
        return None
    known = (*_named(context), *changes.along, *context.preferences.forced)
    present = state.installed if context.invocation.command in _CONSTRAINED else changes.held
    return {*known, *_kept(context, state), *present}


def required_builds(state: CommandState) -> dict[str, NewestBuild]:
    """Return builds for which uv was shown newer versions as yanked, one of each project."""
    left, is_first = state.session.in_order, puts_first(state.context)
    if left is None:
        return {}
    names = sorted(filter(is_first, {*state.session.noted_projects()}.difference(left)))
    state.choices.ask(names)
    reports = ((name, each) for name in reversed(names) for each in state.choices.of(name).values())
    builds = [(name, each.older_build) for name, each in reports]
    return {name: each for name, each in reversed(builds) if each is not None and each.version}


def newly_taken(state: CommandState, builds: Mapping[str, NewestBuild]) -> list[str]:
    """Return the projects that uv resolved, without those of *builds*."""
    return sorted({*state.projects_now()} - {*_kept(state.context, state)} - builds.keys())


def bounds_of(builds: Mapping[str, NewestBuild]) -> list[str]:
    """Return the requirements that hold uv back from newer versions than those of *builds*."""
    return [f"{name}<={build.version}" for name, build in builds.items()]


def may_run_again(context: Context) -> bool:
    """Return whether a failure is uv's own: what it runs may have done something, and failed."""
    return context.invocation.command not in (("run",), *_WITH)


def bound_options(
    state: CommandState, builds: Mapping[str, NewestBuild], pins: Iterable[str] = ()
) -> list[str]:
    """Return the options of uv for *builds* and other requirements of ``pip install``."""
    bounds = [*bounds_of(builds), *pins]
    if not bounds:
        return []
    command = state.context.invocation.command
    if command in _CONSTRAINED:
        path = state.session.folder / "bounds.txt"
        path.write_text("".join(f"{bound}\n" for bound in bounds), "utf-8")
        return ["--constraints", str(path)]
    option = "--with" if command in _WITH else "--upgrade-package"
    return [part for bound in bounds for part in (option, bound)]


def puts_first(context: Context) -> Callable[[str], bool]:
    """Return a predicate of projects (normalized names) whose build goes first."""

    def is_first(name: str) -> bool:
        entry = context.entry_of(name)
        by_default = entry is not None and entry.before_version
        return context.preferences.puts_first(name, by_default=by_default)

    return is_first


def _names(state: CommandState, changes: Changes) -> list[str]:
    """Return the projects for which the rule is in force, and which uv would choose anew.

    Those that are named, what belongs to them, and what they require of what is installed.
    """
    context = state.context
    wanted = dict.fromkeys((*_named(context), *changes.along))
    if context.invocation.has("upgrade", "U") and state.installed:
        wanted |= dict.fromkeys(sorted(wheel_selection.required_by(state.installed, wanted)))
    names = [*filter(puts_first(context), wanted)]
    present = {*_kept(context, state)} - {*changes.along} | changes.held if names else ()
    return [name for name in names if name not in present]


def _has_rule(context: Context) -> bool:
    if context.is_offline or context.is_frozen or not context.preferences.use_variants:
        return False
    return bool(context.preferences.before_version) or context.catalog is not None


def _named(context: Context) -> list[str]:
    """Return the projects that the command, its files or its project name."""
    listed = context.indexes.configuration.requirements
    named = {normalized(name) for text in listed if (name := name_of(text)) is not None}
    return [*context.requested, *sorted(named)]


def _kept(context: Context, state: CommandState) -> Iterable[str]:
    """Yield the projects whose version uv keeps: it is locked, or installed."""
    names = upgraded(context)
    if names is None:
        return
    present = [*context.lock.versions] if context.lock.path is not None else []
    if context.invocation.command[:1] in (("pip",), ("tool",)):
        present += state.installed
    yield from (name for name in present if name not in names)


def _has_accelerator(state: CommandState) -> bool:
    machine = state.machine.machine
    if machine.name:  # a name or facts, which the session reads
        return True
    namespaces = {**machine.platform.namespaces, **machine.detected.namespaces}
    return any(name in machines.ACCELERATORS and each.features for name, each in namespaces.items())
