"""What the user should know after uv ran: variants taken, ignored or missing, and why."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from .checks import admitted_choices
from .dry_run import Planned, would_take
from .installed_state import versions_by_project
from .locked_variants import Lock
from .report import report_variants, warn, why_missing
from .site_packages import installed_requirements
from .version_bounds import puts_first

if TYPE_CHECKING:
    from packaging.version import Version

    from .context import Context
    from .installed_state import InstalledState
    from .proxy_client import OlderBuild, VersionChoice
    from .site_packages import Installed

MOST_REASONS = 3
"""Most projects for which a failure says why none of their variants fits."""


def after_success(
    state: InstalledState,
    noted: Iterable[str],
    planned: Planned = (),
    builds: Mapping[str, OlderBuild] = MappingProxyType({}),
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
        names = [*noted, *(each.name for each in taken)]
        state.choices.ask(names)
        report_variants(taken, state.choices, verbose=state.context.is_verbose)
        notices = _version_notices(state, names, planned, builds, refused)
        for line in (*_of_catalog(state, noted), *notices):
            warn(line)
    _warn_of_lock(state)


def after_failure(state: InstalledState, names: Iterable[str]) -> None:
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


def _taken(state: InstalledState, noted: Iterable[str], planned: Planned) -> list[Installed]:
    """Return the variants that were taken, or would be."""
    context = state.context
    if context.invocation.has("dry-run"):
        return list(would_take(planned, state, verbose=context.is_verbose))
    if context.invocation.command == ("run",) and not context.is_verbose:
        return []  # the output is the program's
    return state.taken(noted, verbose=context.is_verbose)


def _of_catalog(state: InstalledState, names: Iterable[str]) -> list[str]:
    """Return what is not taken of the catalogue for projects, one line for each reason."""
    names = list(names)
    if state.context.preferences.catalog is None or not names:
        return []
    from variants_proxy.internal import excluded, failures

    reports = state.choices.reports(names)
    lines = failures(reports)
    if plain := excluded(reports):
        lines.append(
            f"hashes are given for {', '.join(plain)}: no build of the catalogue is taken that has "
            "others, or that would be changed"
        )
    return lines


def _version_notices(
    state: InstalledState,
    names: Iterable[str],
    planned: Planned,
    builds: Mapping[str, OlderBuild],
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
    for name in names:
        admitted = admitted_choices(context, choices, name)
        present = versions.get(name)
        relevant = admitted if present is None else choices.of(name)
        if present is None and name in builds:  # what uv printed has the build
            lines[builds[name].preferred] = None
            continue
        for version, choice in relevant.items():
            if present is None or _is_among(version, choice, present):
                lines.update(dict.fromkeys(_notices_of(context, name, version, choice)))
                if name not in refused:
                    lines.update(dict.fromkeys(_of_version(context, name, choice.older_build)))
                if name in builds and builds[name].version == version:
                    lines[builds[name].preferred] = None
                break
        if present and admitted:
            lines.update(dict.fromkeys(_passed_over(admitted, max(present))))
    return lines


def _of_version(context: Context, name: str, older: OlderBuild | None) -> Iterator[str]:
    """Yield the line about an older version with a build for the accelerator."""
    if older is None:
        return
    if older.version is None:
        if puts_first(context)(name):
            yield older.preferred
    elif _asks_for(context, name, older.version):
        yield older.text


def _asks_for(context: Context, name: str, version: str) -> bool:
    """Return whether the command admits *version* of a project."""
    from .named_projects import admits, requirement_texts

    invocation = context.invocation
    if not admits(installed_requirements(context.environments, name), name, version):
        return False
    if invocation.command == ("add",):  # uv has written the version that it took to the project
        return admits(invocation.operands, name, version)
    texts = requirement_texts(invocation, context.place)
    return admits([*texts, *context.indexes.configuration.requirements], name, version)


def _is_among(version: str, choice: VersionChoice, present: Collection[Version]) -> bool:
    """Return whether a version, or a build of it that the catalogue describes, is *present*."""
    from pep_variants.internal import read_version

    wanted = read_version(version)
    publics = [each.public for each in present] if choice.published else []
    return wanted in present or str(wanted) in publics


def _notices_of(context: Context, name: str, version: str, choice: VersionChoice) -> Iterator[str]:
    """Yield why variants of a version are ignored or left out, and which plugins were not run."""
    from .provider_plugins import refusal

    for problem in choice.problems:
        yield f"the variant wheels of {name} {version} are ignored: {problem}"
    for text in choice.left_out:
        yield f"left out {text}"
    if context.preferences.platform_file is None:
        for namespace, tree in choice.providers.items():
            why = refusal(namespace, tree, context.preferences)
            if why is not None:
                yield f"Namespace {namespace!r} is skipped: {why}"


def _passed_over(choices: Mapping[str, VersionChoice], taken: Version) -> Iterator[str]:
    """Yield why the newest version was passed over for *taken*, if it was."""
    from pep_variants.internal import read_version

    for version, choice in choices.items():
        found = read_version(version)
        if found is None or (found.is_prerelease and not taken.is_prerelease):
            continue
        if found > taken and choice.passed_over:
            from variants_proxy.internal import TAKEN

            yield choice.passed_over.replace(TAKEN, str(taken))
        return


def _warn_of_lock(state: InstalledState) -> None:
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
    elif now.without_hash:
        files = "1 file" if now.without_hash == 1 else f"{now.without_hash} files"
        warn(
            f"{now.path.name} lists {files} of variants without a hash, which plain uv cannot "
            "verify: install from it with uv-variants only, or lock again after a sync"
        )
