"""uv commands of a project that locks a group for each accelerator: run with the group that fits.

uv alone is run: the lock has everything, and no index is asked for variants.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.pylock import is_valid_pylock_path

from pep_variants.errors import LockError
from variants_catalog import setting
from variants_catalog.catalogs import is_accelerator

from .._errors import AcceleratorsUnknown, warn
from .._named_projects import normalized
from .._uv_process import end_as, run_uv
from .._uv_program import become_uv
from .declared import Declared
from .environment import NO_GROUP, record_group, without_others
from .lock import GroupedLock

if TYPE_CHECKING:
    from .._command_line import Invocation
    from .._context import Context
    from .project import AcceleratedProject

_TAKE_GROUPS = ("sync", "run", "tree", "export", "audit")
_SYNC_AFTERWARDS = ("add", "remove", "version")
"""Commands that sync as well, and take no group away."""
_CHOOSE_ONE = frozenset(
    ("no-variants", "variant", "variant-prefer", "variant-exclude", "variant-platform")
)
"""Our options that say which group is taken."""
_CHOOSE = _CHOOSE_ONE | {"variant-enable", "variant-catalog", "variant-catalog-mirror"}
"""Our options that count where a group is chosen."""
_NEVER_IDLE = ("no-variants", "variant-coherent", "allow-missing-sources", "variant-switch")
"""Our options that ask for no more than a lock with groups does, or have a line elsewhere."""
_SAME_PLACE = ("directory", "project", "python", "config-file", "cache-dir")
_SAME_FLAGS = ("offline", "no-config", "q", "quiet", "v", "verbose", "active")


def run_accelerated(context: Context) -> int | None:
    """Run uv with the group that fits; None for a project without accelerators.

    Raises:
        AcceleratorsUnknown: no group of the lock fits, and there is none for CPUs.
    """
    root, invocation = context.place.root, context.invocation
    if root is None or not (declared := Declared.read(root)).accelerators:
        return None
    context.check.close()
    uv, environ = context.uv, context.place.environ
    command = invocation.command[0]
    syncs = command in _SYNC_AFTERWARDS and not _leaves_environment(context)
    is_taken = (syncs or command in _TAKE_GROUPS) and not is_chosen(context, declared)
    _tell_of_options(context, is_taken=is_taken)
    if not is_taken:
        return become_uv([uv, *invocation.arguments], environ)
    if syncs:
        code = run_uv([uv, *invocation.rewritten({}, ("--no-sync",))], environ)
        _tell_of_tables(context)
        if code:
            return end_as(code)
        arguments = ["sync", *_same_place(invocation)]
        group = _group(context, declared)
        return become_uv([uv, *arguments], without_others(environ, declared.accelerators, group))
    if not (root / "uv.lock").is_file() and not context.is_frozen:
        code = run_uv([uv, "lock", *_same_place(invocation)], environ)
        if code:
            return end_as(code)
    is_one = _asked(context, declared) or not _CHOOSE_ONE.isdisjoint(context.options.variants)
    if _is_pylock(invocation) and not is_one:
        commands = {
            name: _command(context, without_others(environ, declared.accelerators, name))
            for name in declared.accelerators
        }
        return end_as(_project(context).export(context, commands))
    group = _group(context, declared)
    found = _command(context, without_others(environ, declared.accelerators, group))
    if command != "sync" or not is_one or invocation.has("dry-run", "check"):
        return become_uv(*found)
    code = run_uv(*found)
    for path in context.environments if code == 0 else ():
        record_group(path, group)
    return end_as(code)


def _is_pylock(invocation: Invocation) -> bool:
    """Return whether *invocation* exports a pylock.toml; a name says that to uv as well."""
    output, wanted = invocation.last("output-file"), invocation.last("format")
    if wanted is None and output is not None and is_valid_pylock_path(Path(output)):
        wanted = "pylock.toml"
    return invocation.command == ("export",) and wanted == "pylock.toml"


def _command(
    context: Context, environ: Mapping[str, str]
) -> tuple[Sequence[str], Mapping[str, str]]:
    """Return uv's command line for *environ*, whose groups count beside those of options."""
    left_out = environ[NO_GROUP].split() if context.invocation.values("no-group") else ()
    added = [f"--no-group={name}" for name in left_out]
    return [context.uv, *context.invocation.rewritten({}, added)], environ


def _group(context: Context, declared: Declared) -> str:
    """Return the group that is named, else the one that fits.

    Raises:
        AcceleratorsUnknown: no group fits, or has what ``--variant`` asks for.
    """
    asked = _asked(context, declared)
    if asked is None or context.preferences.forced:
        return _chosen(context, asked)
    return asked


def _asked(context: Context, declared: Declared) -> str | None:
    """Return the accelerator whose group is named on the command line."""
    asked = set(map(normalized, context.invocation.values("group", "only-group")))
    return next((name for name in declared.accelerators if normalized(name) in asked), None)


def _chosen(context: Context, named: str | None) -> str:
    """Return the group for the machine; the one that the user *named* if it is what is forced."""
    project, forced = _opened(context), context.preferences.forced
    try:
        choice = project.chosen(named=[named] if named else ())
    except LockError as error:
        label = next(iter(forced.values()), "")
        name = label if is_accelerator(label) else "native"
        there = (f"{each}.".startswith(f"{name}.") for each in project.declared.accelerators)
        way = "" if any(there) else f"; or add a group: uv-variants accelerators --add {name}"
        raise AcceleratorsUnknown(f"uv.lock: {error}{way}") from None
    for name, label in forced.items():
        if name not in choice.projects:
            raise AcceleratorsUnknown(
                f"--variant {name}={label}: no group of uv.lock has a build of {name}; there are "
                f"groups with builds of {', '.join(sorted(choice.projects)) or 'nothing'}"
            )
    if named and choice.unfit:
        raise AcceleratorsUnknown(f"--variant with --group {named}: {choice}")
    if not context.is_quiet and not named:
        why = f": {choice.why}" if choice.why else ""
        none = f" (no group fits: {'; '.join(choice.unfit)})" if choice.unfit else ""
        warn(f"group {choice.name}{why}{none}")
        if best := project.idle(choice.name):
            warn(f"{best} fits this machine: type uv-variants accelerators --add {best}")
    return choice.name


def _tell_of_options(context: Context, *, is_taken: bool) -> None:
    """Print a line for options about variants that have no effect on a lock with groups.

    Args:
        context: the command.
        is_taken: a group is chosen.
    """
    given = context.options.variants
    idle = [
        f"--{name}"
        for name in given
        if name not in _NEVER_IDLE and not (is_taken and name in _CHOOSE)
    ]
    if idle and not context.is_quiet:
        why = "" if is_taken else ", and this command takes none of them by itself"
        warn(f"{', '.join(idle)} has no effect: uv.lock has a group for each accelerator{why}")


def _opened(context: Context) -> GroupedLock:
    assert context.place.root is not None
    catalog = setting.open_local(context.preferences)
    if catalog is None:
        return _project(context)
    environ = context.place.environ
    return GroupedLock(context.place.root, catalog, context.preferences, environ)


def _project(context: Context) -> AcceleratedProject:
    from .project import AcceleratedProject  # 120 ms for the client of indexes

    assert context.place.root is not None
    return AcceleratedProject.open(context.place.root, context.preferences, context.place.environ)


def is_chosen(context: Context, declared: Declared) -> bool:
    """Return whether the user leaves out groups of accelerators, or those that are there anyhow."""
    invocation, environ = context.invocation, context.place.environ
    names = set(map(normalized, declared.accelerators))
    left_out = [*invocation.values("no-group"), *environ.get(NO_GROUP, "").split()]
    if not names.isdisjoint(map(normalized, left_out)):
        return True
    asked = set(map(normalized, invocation.values("only-group")))
    without = invocation.has("no-default-groups", "only-dev") or context.place.is_on(
        "UV_NO_DEFAULT_GROUPS"
    )
    return bool(without or asked) and names.isdisjoint(
        {*asked, *map(normalized, invocation.values("group"))}
    )


def _leaves_environment(context: Context) -> bool:
    invocation = context.invocation
    if invocation.command == ("version",) and not (
        invocation.operands or invocation.values("bump")
    ):
        return True
    return invocation.has("no-sync", "frozen", "dry-run", "short") or any(
        map(context.place.is_on, ("UV_NO_SYNC", "UV_FROZEN"))
    )


def _same_place(invocation: Invocation) -> Sequence[str]:
    given = [
        text
        for item in invocation.given
        if item.name in _SAME_PLACE
        for text in (f"--{item.name}", item.value)
    ]
    flags = [f"-{each}" if len(each) == 1 else f"--{each}" for each in _SAME_FLAGS]
    return [*given, *(each for each in flags if invocation.has(each.lstrip("-")))]


def _tell_of_tables(context: Context) -> None:
    """Print a line if something that was added has builds for the accelerators."""
    if context.is_quiet:
        return
    try:
        names = _project(context).outdated()
    except AcceleratorsUnknown as error:
        warn(f"the groups of accelerators are not known to be up to date: {error}")
        return
    if names:
        warn(
            f"{', '.join(names)}: builds for the accelerators are in no group yet; type "
            "uv-variants accelerators"
        )
