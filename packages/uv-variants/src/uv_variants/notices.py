"""What the user should know after uv ran: variants taken, ignored or missing, and why."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from pep_variants.errors import shortened

from .catalog_builds import builds_taken, remarks
from .dry_run import Planned, would_take
from .forced_variants import admitted_choices
from .installed_state import versions_by_project
from .locked_variants import Lock
from .report import report_variants, warn, why_missing

if TYPE_CHECKING:
    from packaging.version import Version

    from .context import Context
    from .installed_state import InstalledState
    from .proxy_client import Choices, VersionChoice

MOST_REASONS = 3
"""Most projects for which a failure says why none of their variants fits."""


def after_success(state: InstalledState, noted: Iterable[str], planned: Planned = ()) -> None:
    """Print what there is to know after a command that succeeded.

    Args:
        state: of environment and lock file.
        noted: projects (normalized names) that uv asked for and that the proxy has notices about.
        planned: what a dry run would install.
    """
    noted = list(noted)
    changed = _report_taken(state, noted, planned)
    if not state.context.is_quiet:
        for line in remarks(state, noted):
            warn(line)
        for line in _version_notices(state, [*noted, *changed], planned):
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
    lines.update(dict.fromkeys(remarks(state, names)))
    lines.update(dict.fromkeys(_added_by_markers(state.context, choices, names)))
    lines.update(dict.fromkeys(_markers_of_local_projects(state.context)))
    for line in lines:
        warn(line)


def _report_taken(state: InstalledState, noted: Iterable[str], planned: Planned) -> list[str]:
    """Print the variants that were taken; return the names of their projects."""
    context = state.context
    if context.is_quiet:
        return []
    if context.invocation.has("dry-run"):
        would = list(would_take(planned, state, verbose=context.is_verbose))
        report_variants(would, state.choices, verbose=context.is_verbose)
        return [each.name for each in would]
    if context.invocation.command == ("run",) and not context.is_verbose:
        return []  # the output is the program's
    taken = [*state.taken(verbose=context.is_verbose), *builds_taken(state, noted)]
    if not taken:
        return []
    state.choices.ask(each.name for each in taken)
    state.remember_fitting(taken)
    report_variants(taken, state.choices, verbose=context.is_verbose)
    return [each.name for each in taken]


def _version_notices(
    state: InstalledState, names: Iterable[str], planned: Planned
) -> dict[str, None]:
    """Return notices about the versions of projects that were installed or locked."""
    names = list(dict.fromkeys(names))
    lines: dict[str, None] = {}
    if not names:
        return lines
    context, choices = state.context, state.choices
    choices.ask(names)
    is_dry = context.invocation.has("dry-run")
    versions = versions_by_project(planned) if is_dry else state.versions_now()
    for name in names:
        admitted = admitted_choices(context, choices, name)
        present = versions.get(name)
        relevant = admitted if present is None else choices.of(name)
        for version, choice in relevant.items():
            if present is None or _is_among(version, choice, present):
                lines.update(dict.fromkeys(_notices_of(context, name, version, choice)))
                older = choice.older_build
                if older is not None and _asks_for(context, name, older.version):
                    lines[older.text] = None
                break
        if present and admitted:
            lines.update(dict.fromkeys(_passed_over(admitted, max(present))))
    return lines


def _asks_for(context: Context, name: str, version: str) -> bool:
    """Return whether the command admits *version* of a project."""
    from .named_projects import admits, requirement_texts

    invocation = context.invocation
    if invocation.command == ("add",):  # uv has written the version that it took to the project
        return admits(invocation.operands, name, version)
    return admits(requirement_texts(invocation, context.place), name, version)


def _is_among(version: str, choice: VersionChoice, present: Collection[Version]) -> bool:
    """Return whether a version, or a build of it that the catalogue describes, is *present*."""
    from pep_variants.model.filename import read_version

    wanted = read_version(version)
    publics = [each.public for each in present] if choice.published else []
    return wanted in present or str(wanted) in publics


def _notices_of(context: Context, name: str, version: str, choice: VersionChoice) -> Iterator[str]:
    """Yield why variants of a version are ignored or left out, and which plugins were not run."""
    for problem in choice.problems:
        yield f"the variant wheels of {name} {version} are ignored: {problem}"
    for text in choice.left_out:
        yield f"left out {text}"
    yield from _plugins_not_allowed(context, choice)


def _plugins_not_allowed(context: Context, choice: VersionChoice) -> Iterator[str]:
    from .provider_plugins import WantedProvider, refusal

    if context.preferences.platform_file is not None:
        return
    for namespace, tree in choice.providers.items():
        why = refusal(WantedProvider.read(namespace, tree), context.preferences)
        if why is not None:
            yield f"Namespace {namespace!r} is skipped: {why}"


def _passed_over(choices: Mapping[str, VersionChoice], taken: Version) -> Iterator[str]:
    """Yield why the newest version was passed over for *taken*, if it was."""
    from pep_variants.model.filename import read_version

    for version, choice in choices.items():
        found = read_version(version)
        if found is None or (found.is_prerelease and not taken.is_prerelease):
            continue
        if found > taken and choice.passed_over:
            from variants_proxy.choice.remarks import TAKEN

            yield choice.passed_over.replace(TAKEN, str(taken))
        return


def _added_by_markers(context: Context, choices: Choices, names: Iterable[str]) -> Iterator[str]:
    """Yield the dependencies that variant markers add and that no version satisfies.

    uv's own message names the dependency, but neither the variant nor the marker.
    """
    from variants_proxy.choice.offers import version_in

    from .named_projects import admits, requirement_texts

    requested = context.requested
    texts = requirement_texts(context.invocation, context.place)
    client = choices.client
    for name, versions in client.choices(names, markers=True).items():
        admitted = admitted_choices(context, choices, name)
        for each in next((c.conditional for v, c in versions.items() if v in admitted), ()):
            available = [
                version
                for filename in client.filenames(each.name)
                if (version := version_in(filename)) is not None
            ]
            if each.name in requested or not any(
                admits([each.requires, *texts], each.name, str(version)) for version in available
            ):
                yield each.text


def _markers_of_local_projects(context: Context) -> Iterator[str]:
    """Yield the dependencies of local projects that have variant markers, which uv cannot read."""
    from .named_projects import with_variant_markers

    for path, text in with_variant_markers(context.invocation, context.place):
        yield (
            f"{path}: the dependency {shortened(text)!r} has a variant marker, which uv does "
            "not evaluate in projects that it builds: build a wheel and install it from an index, "
            "or leave the marker out"
        )


def _warn_of_lock(state: InstalledState) -> None:
    """Print what plain uv cannot do with a lock file that was written."""
    context, before = state.context, state.context.lock
    now = Lock.read(before.path)
    if now.path is None or now.text is None or now.text == before.text:
        return
    if context.preferences.catalog is not None and now.projects and not now.is_floating:
        warn(
            f"{now.path.name}: plain uv cannot fetch {', '.join(now.projects)}: install with "
            "uv-variants or through a variants-proxy, or export what others install: uv-variants "
            "export -o requirements.txt"
        )
    elif now.without_hash:
        files = "1 file" if now.without_hash == 1 else f"{now.without_hash} files"
        warn(
            f"{now.path.name} lists {files} of variants without a hash, which plain uv cannot "
            "verify: install from it with uv-variants only, or lock with hashes: "
            "uv-variants --variant-lock pinned lock"
        )
