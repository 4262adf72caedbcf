"""Bounds of versions: uv takes the newest build for the accelerator before newer versions.

uv orders versions itself. What ``--variant-before-version`` puts first is decided before uv runs:
a bound such as ``torch<=2.14.0`` for the command alone, which nothing writes down. ``pip install``
gets it as a constraint, ``tool run`` as ``--with``, as it is for what that names, and other
commands as ``--upgrade-package``, which does not upgrade what was not there. Where uv finds no
solution with it, uv runs again without.

Bounds are for projects that the command or its requirement files name, or on which its project
depends. Of others it is not known before uv runs that they are needed.
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


def wanted_builds(state: CommandState, changes: Changes = NO_CHANGES) -> dict[str, NewestBuild]:
    """Return which builds shall go before newer versions, by project (normalized name).

    Args:
        state: before the command.
        changes: what is decided about what is installed.
    """
    context = state.context
    if context.invocation.command not in (*_CONSTRAINED, *_WITH, *_UPGRADED):
        return {}
    if context.is_offline or context.is_frozen or not context.preferences.use_variants:
        return {}
    names = _names(state, changes)
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
    if not context.preferences.before_version and context.catalog is None:
        return []
    listed = context.indexes.configuration.requirements
    named = {normalized(name) for text in listed if (name := name_of(text)) is not None}
    wanted = dict.fromkeys((*context.requested, *sorted(named), *changes.along))
    if context.invocation.has("upgrade", "U") and state.installed:
        wanted |= dict.fromkeys(sorted(wheel_selection.required_by(state.installed, wanted)))
    names = [*filter(puts_first(context), wanted)]
    present = {*_kept(context, state)} - {*changes.along} | changes.held if names else ()
    return [name for name in names if name not in present]


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
