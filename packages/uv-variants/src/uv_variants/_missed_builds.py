"""Lines about what is installed or locked and does not use the accelerator that is here.

Of builds that are missed because no catalogue is on, see `missed_builds`, and of those that have a
publisher's own name, see `unfit_builds`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pep_variants.machines import Detector
from variants_catalog import missed_builds, possible_builds, project_names
from variants_catalog.entries import platform_kind
from variants_catalog.missed_builds import MissedBuild, Taken
from variants_index import target as target_machines

from ._command_line import Scope
from ._environments import installed, installed_requirements
from ._errors import warn
from ._named_projects import admits, name_of, normalized, requirement_texts
from ._state import versions_by_project
from ._uv_lock import Lock, path_beside

if TYPE_CHECKING:
    from packaging.version import Version

    from ._context import Context
    from ._state import CommandState

_logger = logging.getLogger(__name__)

Planned = Sequence[tuple[str, str]]
"""Normalized names and versions."""


def script_option(context: Context) -> str:
    """Return the words with which a command is about the script of this one, empty without one."""
    return f" --script {context.place.script}" if context.place.script is not None else ""


def lock_command(context: Context, names: Iterable[str]) -> str:
    """Return the command that locks projects for the machine at hand, and installs them."""
    script, upgraded = script_option(context), "".join(f" --upgrade-package {n}" for n in names)
    return (
        f"uv-variants --variant-platform native lock{upgraded}{script} && uv-variants sync{script}"
    )


def tell_of_builds(state: CommandState, asked: Iterable[str], planned: Planned = ()) -> None:
    """Print the lines for what is installed or locked after a command.

    Args:
        state: of the command, which succeeded.
        asked: projects (normalized names) that uv asked for.
        planned: what a dry run would install.
    """
    context = state.context
    names = {*asked, *context.requested, *context.lock.versions}
    for advice in (_missed_lines, _unfit_lines) if not context.is_quiet else ():
        try:
            for line in advice(state, names, planned):
                warn(line)
        except Exception:
            _logger.debug("No advice about builds of the catalogue", exc_info=True)


def _missed_lines(state: CommandState, names: set[str], planned: Planned) -> Iterator[str]:
    """Yield the line about the first build that is missed: once a day, for `sync` always."""
    context = state.context
    known, preferences = project_names() & names, context.preferences
    if not known or preferences.catalog is not None or not preferences.use_variants:
        return
    if context.uses_torch_backend:
        return
    missed = [*_missed(state, sorted(known.difference(context.pinned)), planned)]
    if missed:
        enable, again = "uv-variants catalog enable", f"then {_again(context, missed)}"
        line = missed_builds.line_of_day(missed, enable, again, context.place.environ)
        if line or context.invocation.command == ("sync",):
            yield line or missed[0].text(f"{enable}, {again}")


def _unfit_lines(state: CommandState, names: set[str], planned: Planned) -> Iterator[str]:
    """Yield which builds with a publisher's own name do not run here."""
    context, platform = state.context, state.machine.platform
    builds = possible_builds(names)
    if not builds or platform is None:
        return
    detect = Detector(enabled=context.preferences.enable, platform=platform).platform
    machine = target_machines.platform_tag(state.machine.machine.target)
    versions = _versions(state, planned)
    newest = {name: max(versions[name]) for name in builds if name in versions}
    yield from missed_builds.unfit_builds(newest, detect, context.preferences, machine)


def _versions(state: CommandState, planned: Planned) -> dict[str, set[Version]]:
    """Return the versions that are installed, planned or locked, by project."""
    here = {} if planned else installed(state.environments_now)
    found = {name: {item.version} for name, item in here.items()}
    lock = Lock.read(state.context.lock.path)
    locked = ((each, text) for each, texts in lock.versions.items() for text in texts)
    return found or versions_by_project(planned or locked)


def _again(context: Context, found: Sequence[MissedBuild]) -> str:
    """Return the command that takes the builds."""
    command = context.invocation.command
    names = [item.project for item in found]
    if command == ("pip", "install"):
        return f"uv-variants --variant-switch pip install {' '.join(names)}"
    if command == ("add",):
        named = " ".join(names)
        return f"uv-variants remove {named}, uv-variants add {named}"
    if command in (("lock",), ("sync",), ("run",)):
        if command != ("lock",) and context.lock.path and path_beside(context.lock.path).exists():
            return lock_command(context, names)  # the lock may be for another machine
        what = "lock" if command == ("lock",) else "sync"
        words = " ".join(f"--upgrade-package {name}" for name in names)
        return f"uv-variants {what} {words}{script_option(context)}"
    return "the same command"


def _missed(state: CommandState, names: Iterable[str], planned: Planned) -> Iterator[MissedBuild]:
    context = state.context
    is_here = context.invocation.command in (("sync",), ("run",))
    key = state.machine_here if is_here else state.machine
    if key.platform is None:
        return
    detect = Detector(enabled=context.preferences.enable, platform=key.platform).platform
    machine = target_machines.platform_tag(key.machine.target)
    taken = ((name, _taken(state, name, machine, planned)) for name in names)
    for missed in missed_builds.missed_builds(taken, machine, detect, context.preferences):
        # Tools get no bounds of versions.
        if not (missed.is_other and context.scope is Scope.TOOL):
            yield missed


def _taken(state: CommandState, name: str, machine: str, planned: Planned) -> Taken | None:
    """Return the build of a project that there is after the command.

    None if that is not known, or if the user has named the file.
    """
    context, environments = state.context, state.environments_now
    texts = [text for text in _texts(context) if normalized(name_of(text) or "") == name]
    here = {} if planned else installed(environments)
    item = here.get(name)
    if any("+" in text or "@" in text for text in texts):
        return None
    requires: tuple[str, ...] = ()
    if item is not None:
        tags = item.platforms
        is_named = Path(item.folder, "direct_url.json").exists()
        if not tags or is_named or item.label is not None or item.problem:
            return None
        version, requires = item.version, item.requires
        beside = {each.project: each.version for each in here.values()}
        texts += installed_requirements(environments, name)
    else:
        lock = Lock.read(context.lock.path)
        locked = ((each, text) for each, found in lock.versions.items() for text in found)
        versions = versions_by_project(planned or locked)
        if name not in versions or any("[" in text for text in texts):
            return None  # nothing tells what the extras add
        beside = {each: max(found) for each, found in versions.items()}
        version = beside[name]
        # A dry run does not say which file.
        found = [_plain_tag(machine)] if planned else _locked(lock, name, str(version), machine)
        if found is None:
            return None
        tags = found
    indexes = [index.url for index in context.indexes.indexes.values()]
    admitted = partial(admits, texts, name)
    return Taken(version, tags, requires, beside, lambda each: admitted(str(each)), indexes=indexes)


def _plain_tag(machine: str) -> str:
    """Return a tag of published wheels for *machine*."""
    return machine.replace("linux_", "manylinux_2_17_", 1)


def _texts(context: Context) -> list[str]:
    """Return the requirements of the user; uv has written those of ``add`` into the project."""
    if context.invocation.command == ("add",):
        return list(context.invocation.operands)
    texts = requirement_texts(context.invocation, context.place)
    return [*texts, *context.indexes.configuration.requirements]


def _locked(lock: Lock, name: str, version: str, machine: str) -> list[str] | None:
    """Return the platform tags of the wheel that a lock has for *machine*, nothing for sources.

    None if there is neither, or a variant.
    """
    files, has_sources = lock.files(name, version)
    for label, filename in files:
        tags = missed_builds.platform_tags(filename)
        if label is not None:
            return None
        if any(tag == "any" or platform_kind(tag) == platform_kind(machine) for tag in tags):
            return tags
    return [] if has_sources else None
