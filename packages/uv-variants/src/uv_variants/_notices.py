"""Notices for the user after uv ran.

That is which variants were taken, ignored or missing, and why, and what there is to know of a lock
on this machine: variants that do not fit, or that it lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from pep_variants import machines
from pep_variants import metadata as variant_metadata
from pep_variants import selection as wheel_selection
from pep_variants.machines import Detector

from ._checks import admitted_choices
from ._choices import label_for, label_of_build, not_reached, report_variants, why_missing
from ._command_line import Scope
from ._context import ALL_HASHES
from ._environments import (
    installed,
    installed_requirements,
    installed_variants,
    installed_without_variant,
    listed,
)
from ._errors import warn
from ._missed_builds import Planned, lock_command, script_option
from ._named_projects import admits, further_texts, name_of, normalized, requirement_texts
from ._provider_plugins import refusal
from ._state import FittingMarks, versions_by_project
from ._switching import judgement
from ._uv_lock import Lock, LockMachine, path_beside
from ._version_bounds import puts_first

if TYPE_CHECKING:
    from packaging.version import Version

    from pep_variants.selection import NewestBuild
    from pep_variants.wheel_files import Installed
    from variants_proxy.service import VersionReport

    from ._context import Context
    from ._state import CommandState


MOST_ASKED = 8
"""Most projects of a lock without variants that the index is asked about."""

_PAGE = "docs/how-to/uv-locks.md"


def after_lock(state: CommandState) -> None:
    """Write which machine a lock is for, and print what is to be known of it on this one.

    After a command that succeeded.
    """
    idle = list(_idle(state))
    lines = [*_machine_of_lock(state), *_unfit(state), *(idle or _lacking(state))]
    if not state.context.is_quiet:
        for line in (line for line in lines if line not in state.choices.said):
            warn(line)


def _machine_of_lock(state: CommandState) -> Iterator[str]:
    """Write which machine the lock is for that has variants now; yield what is to be known."""
    context, before = state.context, state.context.lock
    now = Lock.read(before.path)
    is_asked = "variant-platform" in context.options.variants
    is_new = now.text != before.text or context.kept.keys() != before.names.keys() or is_asked
    if now.path is None or now.text is None or not is_new or context.is_checked:
        return
    known = context.lock_machine
    if known is not None:
        if not known.is_like(state.machine_here.machine):
            yield (
                f"{now.path.name} was locked for {known}, which is not this machine; "
                "--variant-platform names another one to lock for (native: this one)"
            )
        return
    has_record = path_beside(now.path).exists()
    if has_record and not is_asked:
        return  # it cannot be read, or is not about what this command chose
    if state.plugins is not None or not (now.labels or has_record or _builds(state, now)):
        return  # what plugins say has no place in a platform file
    if {*before.labels, *_builds(state, before)} & context.kept.keys():
        return  # it was chosen for a machine that nothing is known of
    given = context.preferences.platform_file
    name = "" if given is None or machines.names_file(given) else given
    machine = LockMachine.of(now.path, state.machine.machine, name)
    machine.write(now.path.name)
    yield (
        f"{now.path.name} is for {name or 'this machine'}, as {machine.path.name} beside it says: "
        "keep both together"
    )


def _builds(state: CommandState, lock: Lock) -> set[str]:
    """Return the projects of a lock with a version whose local part names a catalogue's build."""
    if state.context.preferences.catalog is None:
        return set()
    found = {name for name, versions in lock.versions.items() if any("+" in v for v in versions)}
    state.choices.ask(found)
    return {name for name in found if any(c.published for c in state.choices.of(name).values())}


def _unfit(state: CommandState) -> Iterator[str]:
    """Yield which variants are installed because the lock has them, and do not fit this machine."""
    context = state.context
    now = installed_variants(state.environments_now)
    if context.invocation.command == ("run",) and now == state.before:
        return  # the output is the program's; `sync` has said it
    locked = context.lock.labels
    found = [
        (each, why)
        for name, each in now.items()
        if any(map(each.is_variant, locked.get(name, {}).get(str(each.version), ())))
        if (why := _why_unfit(each, state))
    ]
    if not found:
        return
    first, why = found[0]
    others = ", ".join(f"{each.project} {each.version} ({each.label!r})" for each, _ in found[1:])
    lock = context.lock.path.name if context.lock.path else "the lock"
    machine = f" for {context.lock_machine}" if context.lock_machine is not None else ""
    yield (
        f"{first.project} {first.version} is installed as variant {first.label!r}, which {lock} has"
        f"{machine} and which does not fit this machine: {why}"
        + (f"; the same holds for {others}" if others else "")
        + f"; see {_PAGE} for locks that fit several machines"
    )


def _why_unfit(installed: Installed, state: CommandState) -> str:
    """Return why a variant does not fit the machine at hand, empty if it does."""
    here = state.machine_here
    marks = FittingMarks(state.context.cache / "fits", (f"lock {here.key}",))
    metadata = installed.metadata
    if metadata is None or here.platform is None or marks.is_known(installed):
        return ""
    preferences = state.context.preferences
    platform = Detector(enabled=preferences.enable, platform=here.platform).platform(metadata)
    ranking = wheel_selection.rank(metadata, platform, preferences)
    label = str(installed.label)
    if all(
        reason.namespace == variant_metadata.ABI_DEPENDENCY for reason in ranking.reasons(label)
    ):
        marks.remember(installed)
        return ""
    return "; ".join(wheel_selection.why_not(ranking, label))


def _idle(state: CommandState) -> Iterator[str]:
    """Yield that what is locked leaves an accelerator idle, and what to type, in one line.

    The index is asked once a day, for the same versions and machine.
    """
    context = state.context
    if context.invocation.command != ("sync",) or context.scope is not Scope.PROJECT:
        return
    if not context.preferences.use_variants or context.lock.path is None:
        return
    there = installed(state.environments_now)
    names = [
        name
        for name in dict.fromkeys((*context.requested, *there))
        if name in there and (there[name].label is not None or context.used_entry(name))
    ]
    if not names:
        return
    asked = " ".join(f"{name}=={there[name].version} {there[name].label}" for name in names)
    yield from _kept(state, f"idle {asked}", lambda: (_idle_line(state, there, names), True))


def _kept(state: CommandState, asked: str, line: Callable[[], tuple[str, bool]]) -> Iterator[str]:
    """Yield the *line* that answers what is *asked* for a day on one machine, unless it is empty.

    It is not kept if it is of the pages that are in the cache. One that is not for every command
    is yielded by the first one.
    """
    context = state.context
    marks = state.marks(f"{state.machine_here.key} {context.preferences!r}")
    text = marks.said(asked)
    if text is None:
        text, is_for_all = line()
        if not context.is_offline:
            marks.remember(asked, text if is_for_all else "")
    yield from filter(None, [text])


def _idle_line(state: CommandState, there: Mapping[str, Installed], names: list[str]) -> str:
    """Return the line of `_idle`, empty if nothing is idle."""
    context = state.context
    of_command = context.invocation, context.place
    texts = [*requirement_texts(*of_command), *further_texts(*of_command)]
    key, better, older = state.machine_here.key, {}, ""
    for name in names:
        required = installed_requirements(state.environments_now, name)
        moves_along = context.used_entry(name)  # with its family
        fits = partial(_is_admitted, texts if moves_along else [*texts, *required], name)
        found = judgement(state, there, name, fits, key)
        if found is not None and found.older:  # a lock keeps the newest release
            older = older or found.older
        elif found is not None and found.advice is not None and found.leaves_idle:
            better[name] = found.advice
    if not better or context.lock.path is None:
        return older
    name, advice = next(iter(better.items()))
    text = advice.text(name, str(there[name].version))
    command = lock_command(context, better)
    return f"{text}: {command} takes it, for everybody who uses {context.lock.path.name}"


def _is_admitted(texts: list[str], name: str, version: Version) -> bool:
    return admits(texts, name, str(version))


def _lacking(state: CommandState) -> Iterator[str]:
    """Yield that there are variants of projects of a lock that has none, in one line.

    The index is asked about few projects, once a day.
    """
    context, lock = state.context, state.context.lock
    asks = context.scope is Scope.PROJECT and context.invocation.command == ("sync",)
    if not asks or not context.preferences.use_variants or lock.projects:
        return
    further = further_texts(context.invocation, context.place)
    named = (normalized(name_of(text) or "") for text in further)
    names = [n for n in dict.fromkeys((*context.requested, *named)) if n in lock.versions]
    asked = " ".join(f"{name}=={min(lock.versions[name])}" for name in names)
    if names and not _plain_marks(state).is_known(asked):
        yield from _kept(state, f"lock {asked}", lambda: _lacking_line(state, names, asked))


def _plain_marks(state: CommandState) -> FittingMarks:
    """Return marks of what has no variants at all: the machine, slow to detect, does not matter."""
    context = state.context
    return state.marks(f"any {context.preferences!r} {state.environments_now}")


def _lacking_line(state: CommandState, names: list[str], asked: str) -> tuple[str, bool]:
    """Return the line of `_lacking`, empty if nothing is lacking, and whether a device is idle."""
    context, choices, is_idle = state.context, state.choices, False
    locked, environments = context.lock_machine, state.environments_now
    if locked is not None and not locked.is_like(state.machine_here.machine):
        return "", False  # what fits here is of no use for the lock
    there = installed(environments)
    found = (installed_without_variant(environments, name) for name in names)
    # What has a local part is a build that the lock names.
    candidates = [each for each in found if each is not None and not each.version.local]
    better = {}
    looked = [each.project for each in candidates[:MOST_ASKED]]
    choices.ask(looked)
    is_plain = choices.asked(looked) and not any(map(choices.of, looked))
    if looked and is_plain and not context.is_offline:
        _plain_marks(state).remember(asked)
    for each in candidates[:MOST_ASKED]:
        if (choice := choices.of_installed(each)) is not None:
            instead = next((row.instead for row in choice.locked if row.label is None), None)
            label = instead or label_for(choice, each.tags)
            if label not in (None, label_of_build(choice, each)):
                better[each.project] = f"{each.project} {each.version} ({label})"
                judged = judgement(state, there, each.project)
                is_idle = is_idle or (judged is not None and judged.leaves_idle)
    if not better:
        return "", False
    options = " ".join(f"--upgrade-package {name}" for name in better) + script_option(context)
    return (
        f"the lock has no variants; there are some that fit this machine: "
        f"{', '.join(better.values())}; uv-variants lock {options} takes them, for everybody "
        "who uses the lock"
    ), is_idle


MOST_REASONS = 3
"""Most projects for which a failure says why none of their variants fits."""


def after_success(
    state: CommandState,
    noted: Iterable[str],
    planned: Planned = (),
    builds: Mapping[str, NewestBuild] = MappingProxyType({}),
    refused: Collection[str] = (),
) -> None:
    """Print what there is to know after a command that succeeded.

    Args:
        state: of environment and lock file.
        noted: projects (normalized names) that uv asked for and that the proxy has notices about.
        planned: what a dry run would install.
        builds: what went before newer versions, by project.
        refused: projects whose older version uv refused, which was said.
    """
    noted = list(noted)
    if not state.context.is_quiet:
        taken = _taken(state, noted, planned)
        names = [*noted, *(each.project for each in taken)]
        state.choices.ask(names)
        report_variants(taken, state.choices, verbose=state.context.is_verbose)
        notices = _version_notices(state, names, planned, builds, refused)
        for line in (*_of_catalog(state, noted), *notices):
            state.choices.said.add(line)
            warn(line)
    _warn_of_lock(state)


def after_failure(state: CommandState, names: Iterable[str]) -> None:
    """Print what may be the reason why uv found no solution.

    Args:
        state: of environment and lock file.
        names: projects (normalized names) that were asked for, or that the proxy has notices about.
    """
    choices, forced = state.choices, state.context.preferences.forced
    names = list(dict.fromkeys((*forced, *names)))
    choices.ask(names)
    lines: dict[str, None] = {}
    for name in names:
        admitted = admitted_choices(state.context, choices, name)
        missing = None
        if name in forced:
            missing = why_missing(name, forced[name], admitted or choices.of(name))
        if missing is not None:
            lines[missing] = None
            continue
        for version, choice in admitted.items():
            if choice.unfit and len(lines) < MOST_REASONS:
                lines[choice.unfit] = None
            lines.update(dict.fromkeys(_notices_of(state.context, name, version, choice)))
            break
    for line in (*lines, *_of_catalog(state, names)):
        warn(line)


def _taken(state: CommandState, noted: Iterable[str], planned: Planned) -> list[Installed]:
    """Return the variants that were taken, or would be."""
    context = state.context
    if context.invocation.has("dry-run"):
        return list(would_take(planned, state, verbose=context.is_verbose))
    if context.invocation.command == ("run",) and not context.is_verbose:
        return []  # the output is the program's
    return state.taken(noted, verbose=context.is_verbose)


def _of_catalog(state: CommandState, names: Iterable[str]) -> list[str]:
    """Return the builds of the catalogue that are not taken, one line for each reason."""
    names = list(names)
    if state.context.preferences.catalog is None or not names:
        return []
    reports = state.choices.reports(names)
    lines = not_reached(reports, state.context.asked_versions())
    excluded = [each.project for each in reports if each.catalog and each.catalog.excluded]
    if excluded:
        lines.append(
            f"hashes are given for {', '.join(excluded)}: builds of the catalogue with other "
            "hashes, name or dependencies are not considered"
        )
    return lines


def _version_notices(
    state: CommandState,
    names: Iterable[str],
    planned: Planned,
    builds: Mapping[str, NewestBuild],
    refused: Collection[str],
) -> dict[str, None]:
    """Return notices about the versions of projects that were installed or locked."""
    names = list(dict.fromkeys(names))
    lines: dict[str, None] = {}
    if not names:
        return lines
    context, choices = state.context, state.choices
    is_dry = context.invocation.has("dry-run")
    versions = versions_by_project(planned) if is_dry else state.versions_now()
    # What they require is not known, as it is of what is installed.
    unread = {*(versions if is_dry else Lock.read(context.lock.path).names)}
    unread -= {*installed(context.environments)}
    for name in names:
        admitted = admitted_choices(context, choices, name)
        present = versions.get(name)
        relevant = admitted if present is None else choices.of(name)
        if present is None and name in builds:  # what uv printed has the build
            lines[builds[name].preferred().text] = None
            continue
        for version, choice in relevant.items():
            if present is None or _is_among(choice, present):
                lines.update(dict.fromkeys(_notices_of(context, name, version, choice)))
                if name not in refused:
                    may_be_excluded = bool(unread - {name})
                    older = _of_version(context, name, choice.older_build, may_be_excluded)
                    lines.update(dict.fromkeys(older))
                if name in builds and builds[name].version == choice.version:
                    lines[builds[name].preferred().text] = None
                break
        if present and admitted:
            lines.update(dict.fromkeys(_passed_over(name, admitted, max(present))))
    return lines


def _of_version(
    context: Context, name: str, older: NewestBuild | None, may_be_excluded: bool
) -> Iterator[str]:
    """Yield the line about an older version with a build for the accelerator."""
    if older is None:
        return
    if older.version is None:
        if puts_first(context)(name):
            yield older.preferred().text
    elif _asks_for(context, name, str(older.version)):
        yield older.missed(may_be_excluded=may_be_excluded).text


def _asks_for(context: Context, name: str, version: str) -> bool:
    """Return whether the command admits *version* of a project."""
    invocation = context.invocation
    if not admits(installed_requirements(context.environments, name), name, version):
        return False
    if invocation.command == ("add",):  # uv has written the version that it took to the project
        return admits(invocation.operands, name, version)
    texts = requirement_texts(invocation, context.place)
    return admits([*texts, *context.indexes.configuration.requirements], name, version)


def _is_among(choice: VersionReport, present: Collection[Version]) -> bool:
    """Return whether a version, or a build of it that the catalogue describes, is *present*."""
    publics = [each.public for each in present] if choice.published else []
    return choice.version in present or str(choice.version) in publics


def _notices_of(context: Context, name: str, version: str, choice: VersionReport) -> Iterator[str]:
    """Yield why variants of a version are ignored or left out, and which plugins were not run."""
    yield from _problems_of(name, version, choice)
    for text in choice.left_out:
        yield f"left out {text}"
    if context.preferences.platform_file is None:
        for namespace, provider in choice.providers.items():
            why = refusal(namespace, provider, context.preferences)
            if why is not None:
                yield f"Namespace {namespace!r} is skipped: {why}"


def _problems_of(name: str, version: str, choice: VersionReport) -> Iterator[str]:
    for problem in choice.problems:
        yield f"the variant wheels of {name} {version} are ignored: {problem}"


def _passed_over(name: str, choices: Mapping[str, VersionReport], taken: Version) -> Iterator[str]:
    """Yield why the newest version was passed over for *taken*, if it was."""
    for version, choice in choices.items():
        if choice.version.is_prerelease and not taken.is_prerelease:
            continue
        if choice.version > taken:
            yield from _problems_of(name, version, choice)
            yield from filter(None, [choice.why_passed_over(taken)])
        return


def _warn_of_lock(state: CommandState) -> None:
    """Print what plain uv cannot do with a lock file that was written."""
    context, before = state.context, state.context.lock
    now = Lock.read(before.path)
    if now.path is None or now.text is None or now.text == before.text:
        return
    if context.preferences.catalog is not None and now.projects:
        warn(
            f"{now.path.name}: plain uv cannot fetch {', '.join(now.projects)}: install with "
            "uv-variants or through a variants-proxy, or export what others install: uv-variants "
            "export -o requirements.txt"
        )
    if now.without_hash:
        count = len(now.without_hash)
        files = "1 file" if count == 1 else f"{count} files"
        named = ", ".join(dict.fromkeys(wheel.project for wheel in now.without_hash))
        warn(
            f"{now.path.name} has no hash of {files} of {named}: the index has none, or they are "
            f"large and changed before they are installed ({ALL_HASHES}=1 reads them, once); "
            "install with uv-variants, which verifies what it downloads with the index's hashes"
        )


def would_take(planned: Planned, state: CommandState, *, verbose: bool) -> Iterator[Installed]:
    """Yield the variants among what is *planned*.

    Args:
        planned: what uv says that it would install.
        state: of the environment.
        verbose: also the variants of what the command names and what stays as it is.
    """
    choices = state.choices
    found = [*listed((name, version, None) for name, version in planned)]
    if verbose:
        names = [name for name in state.context.requested if name not in dict(planned)]
        found += [state.installed[name] for name in names if name in state.installed]
    choices.ask(each.project for each in found)
    for each in found:
        choice = choices.of_installed(each)
        taken = None if choice is None else next(iter(choice.locked), choice.chosen)
        if taken is not None:
            yield replace(each, label=choices.label_of(each) or taken.label)
