"""Conditions before and after uv runs: variants that are named, and one name for each build."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from pep_variants import labels as wheel_labels
from pep_variants import wheel_files
from variants_catalog.entries import same_files
from variants_proxy import urls as proxy_urls

from ._choices import not_reached, why_missing
from ._environments import (
    installed,
    installed_variants,
    installed_without_variant,
    listed,
    site_packages,
)
from ._errors import ALLOWED, SourcesMissing, TwoNames, VariantMissing, warn
from ._named_projects import admits, name_of, normalized, requirement_texts
from ._uv_lock import Lock

if TYPE_CHECKING:
    from pep_variants.wheel_files import Installed
    from variants_proxy.service import VersionReport

    from ._choices import Choices
    from ._command_line import Invocation
    from ._context import Context
    from ._session import CommandSession
    from ._state import CommandState

_logger = logging.getLogger(__name__)

_NAMING_WHEELS = (
    *(("pip", "install"), ("pip", "download"), ("pip", "wheel"), ("add",), ("run",)),
    *(("tool", "install"), ("tool", "run")),
)

_NEVER = "{} ; sys_platform == 'never'"
"""An override with which uv takes a project for not required."""


def check_direct_wheels(invocation: Invocation) -> None:
    """Check that no variant wheel is named directly.

    Raises:
        VariantMissing: one is; the message has the command that installs it.
    """
    given = invocation.values("preview-features", "preview-feature")
    if invocation.command not in _NAMING_WHEELS or invocation.has("preview") or given:
        return  # newer uvs read them with these options
    named = invocation.operands if invocation.command != ("run",) else ()
    for text in (*named, *invocation.values("with", "from")):
        place = text.partition(" @ ")[2] or text
        folder, _, name = place.partition("#")[0].replace("\\", "/").rpartition("/")
        plain, label = wheel_labels.split_label(unquote(urlsplit(name).path))
        parts = plain.split("-")
        if plain.endswith(".whl") and label and len(parts) >= 5:
            project, version = normalized(parts[0]), parts[1]
            command = " ".join(invocation.command)
            raise VariantMissing(
                f"{place}: uv cannot read the names of variant wheels: name the project and where "
                f"its files are: uv-variants --variant {project}={label} {command} "
                f"--find-links {folder or '.'} {project}=={version}"
            )


def check_before(context: Context, choices: Choices) -> None:
    """Check that what is forced can be had, before uv runs.

    Raises:
        VariantMissing: no version that the requirements admit has the variant, or the lock has
            another one and has to stay as it is.
    """
    if context.is_frozen or context.asks_offline:
        _check_lock(context, choices, context.lock)
    if not context.is_offline and not context.is_frozen:
        _check_forced(context, choices, context.requested)


def _check_forced(context: Context, choices: Choices, there: Collection[str]) -> None:
    """Check that the projects *there* (normalized names) have the variants that are forced.

    Raises:
        VariantMissing: no version that the requirements admit has one.
    """
    forced = context.preferences.forced
    names = [name for name in forced if name in there]
    choices.ask(names)
    for name in names:
        admitted = admitted_choices(context, choices, name)
        _logger.debug(
            "Checking %d versions of project %s for the variant %r",
            len(admitted),
            name,
            forced[name],
        )
        if not any(choice.shows(forced[name]) for choice in admitted.values()):
            why = why_missing(name, forced[name], admitted or choices.of(name))
            if why is not None:
                raise VariantMissing(why)


def _check_lock(
    context: Context, choices: Choices, lock: Lock, restore: Callable[[], str] = str
) -> None:
    """Check that a lock that stays has what options on the command line ask for.

    Args:
        context: the command: the lock is frozen, or nothing can be chosen offline.
        choices: of the proxy, offline those of the cached pages.
        lock: before the command, or after it.
        restore: undoes what uv wrote; returns what that is.

    Raises:
        VariantMissing: it has something else, or it is not known whether it has.
    """
    given, preferences = context.options.variants, context.preferences
    forced = dict(preferences.forced) if "variant" in given else {}
    if "no-variants" in given:
        forced |= dict.fromkeys(lock.projects, "")
    asked = frozenset(forced) if context.is_frozen else context.asked_anew
    names = [name for name in lock.names if asked is None or name in asked]
    if preferences.catalog is not None or not context.is_frozen:
        choices.ask(names)
    for name in names:
        for each in listed((name, version, None) for version in lock.names[name]):
            files, choice = lock.files(name, str(each.version))[0], choices.of_installed(each)
            if choice is not None:
                shown = {(label, plain) for plain, label in choice.labels.items()}
                shown |= {(None, published) for published in choice.published.values()}
            else:  # the lock may still say that it is what is named, or that there are no variants
                wanted = forced.get(name, "")
                labels = {label or "" for label, _ in files} if not each.version.local else set()
                is_met = wanted in labels and (wanted or labels == {wanted})
                shown = {*files} if is_met else set()
            for label, _ in (file for file in files if file not in shown):
                has = f"variant {label!r} of {name}" if label else name
                option = _option(name, forced[name]) if name in forced else "this command"
                why = f"not what {option} asks for, and {_stays(context)}"
                parts = (f"{lock.path} has {has} {each.version}, {why}", restore())
                raise VariantMissing("; ".join(filter(None, parts)))


def check_cache(state: CommandState, cache: Path, replaced: Collection[str]) -> None:
    """Check that uv has pages in its cache with what is chosen offline, before it uses them.

    They are those of the last command, which may have chosen something else.

    Args:
        state: before the command.
        cache: directory of uv's cache.
        replaced: projects (normalized names) that it is to install again.

    Raises:
        VariantMissing: it has not, or what is chosen is not known.
    """
    context, choices, asked = state.context, state.choices, state.context.asked_anew
    lines = map(name_of, context.indexes.configuration.requirements)
    named = (*context.requested, *(normalized(name) for name in lines if name), *replaced)
    names = [name for name in dict.fromkeys(named) if name not in context.lock.names]
    names = [name for name in names if asked is None or name in asked]
    choices.ask(names)
    for name in names:
        label, found = context.preferences.forced.get(name), state.installed.get(name)
        admitted = admitted_choices(context, choices, name).values()
        if label is None:
            choice = next((each for each in admitted if each.chosen is not None), None)
            if choice is None or choice.chosen is None or (found and name not in replaced):
                continue
            label = choice.chosen.label or ""
        else:
            choice = next((each for each in admitted if each.shows(label)), None)
            if found is not None and choices.as_installed(found).is_variant(label or None):
                continue
        files = [] if choice is None else _in_urls(choice, label)
        pages = [path.read_bytes() for path in cache.glob(f"simple-v*/**/{name}.rkyv")]
        if (files or label) and not any(file.encode() in page for file in files for page in pages):
            what = f"{label or 'a wheel without variant'} of {name}"
            raise VariantMissing(f"uv's cache has no {what}, and {_stays(context)}")


def _in_urls(report: VersionReport, label: str) -> list[str]:
    """Return parts of the URLs of the files that uv is shown with *label*."""
    return [
        report.published.get(plain)
        or (f"{proxy_urls.FOLDER}/{label}/{'-'.join(plain.split('-')[:2])}-" if label else plain)
        for plain, shown in report.labels.items()
        if (shown or "") == label
    ]


def _stays(context: Context) -> str:
    if context.is_frozen:
        return "--frozen or --locked keeps it: lock without them"
    return f"another one can only be chosen online: run it again without {context.offline_by}"


def check_after(state: CommandState) -> None:
    """Check that what is forced is installed, after uv succeeded.

    Raises:
        VariantMissing: something else is.
    """
    context = state.context
    environments = context.environments
    if context.invocation.has("dry-run"):
        return
    if not environments:
        for name, label in context.preferences.forced.items():
            if context.invocation.command in (("pip", "install"), ("pip", "sync")):
                raise VariantMissing(
                    f"uv succeeded, but where it installed is not known, so {name} may be other "
                    f"than {_option(name, label)} asks for: name the environment with --python PATH"
                )
        return
    now = installed_variants(environments)
    forced = dict(context.preferences.forced)
    if not context.preferences.use_variants:
        forced |= dict.fromkeys(now, "")
    for name, label in forced.items():
        found = now.get(name) or installed_without_variant(environments, name)
        if found is None or found.is_variant(label or None):
            continue
        if context.preferences.catalog is not None:
            state.choices.ask([name])
        if not state.choices.as_installed(found).is_variant(label or None):
            kept = f"uv kept it; install it again with --reinstall-package {name}"
            how = _stays(context) if context.is_offline else kept
            raise VariantMissing(f"{_has(found)}, not as {_option(name, label)} asks: {how}")


def _has(found: Installed) -> str:
    has = f"variant {found.label!r}" if found.label else "the non-variant wheel"
    return f"{found.project} {found.version} is installed as {has}"


def admitted_choices(context: Context, choices: Choices, name: str) -> dict[str, VersionReport]:
    """Return the choices for the versions of a project that the requirements admit."""
    texts = requirement_texts(context.invocation, context.place)
    return {
        version: choice
        for version, choice in choices.of(name).items()
        if admits(texts, name, version)
    }


def _option(name: str, label: str) -> str:
    return f"--variant {name}={label}" if label else f"--no-variants or --variant {name}="


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
    if context.preferences.catalog is None or context.is_lenient:
        return
    lines = not_reached(choices.reports(names), context.asked_versions())
    for line in lines:
        warn(line)
    if lines:
        raise SourcesMissing(
            f"{restore()}: the next run might lock other builds; {ALLOWED} goes on without these"
        )


def check_passing(session: CommandSession) -> None:
    """Check that uv did not end because of what may be there at the next try.

    Raises:
        SourcesMissing: it did.
    """
    for text in session.passing():
        raise SourcesMissing(f"{text}; {ALLOWED} goes on without it")


def check_lock(state: CommandState, noted: Iterable[str]) -> None:
    """Check the lock file that a command wrote.

    Args:
        state: of the lock file.
        noted: projects (normalized names) that the proxy has notices about.

    Raises:
        SourcesMissing: `check_sources`.
        VariantMissing: it has not what is forced.
        TwoNames: two of its packages have the same files.
    """
    context, before = state.context, state.context.lock
    now = Lock.read(before.path)
    if context.asks_offline and now.text not in (None, before.text):
        _check_lock(context, state.choices, now, before.restore)
    if now.text is None or now.text == before.text:
        return
    if not context.is_offline:
        try:
            _check_forced(context, state.choices, now.versions.keys())
        except VariantMissing as error:
            raise VariantMissing(f"{error}; {before.restore()}") from None
    if context.preferences.catalog is None:
        return
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


def check_installed(state: CommandState) -> None:
    """Check what a command installed.

    Raises:
        TwoNames: two distributions have the same files.
    """
    environments = state.context.environments
    if state.context.preferences.catalog is None or not environments:
        return
    now = installed(environments)
    if now == state.installed:
        return
    pairs = list(_two_names(state.context, now))
    if not pairs:
        return
    folders = [str(folder) for each in environments for folder in site_packages(each)]
    shared = {
        frozenset(owner.partition("==")[0] for owner in each.owners)
        for each in wheel_files.ownership_problems(folders)
    }
    for project, name in pairs:
        if any({project, name} <= owners for owners in shared):
            raise TwoNames(
                f"{name} is what its publisher calls a build of {project}, and both are "
                "installed, with the same files: uv-variants pip uninstall "
                f"{project} {name}, then install one of them; to keep {name} where something "
                f"requires {project}, with --override FILE, in which there is: "
                f"{_NEVER.format(project)}"
            )


def _two_names(context: Context, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield projects and publishers' names for their builds that are both among *names*.

    Of a catalogue at a URL nothing is known here.

    Raises:
        CatalogError: the catalogue cannot be read.
    """
    known, catalog = frozenset(names), context.local_catalog
    described = known.intersection(catalog.names()) if catalog is not None else ()
    for name, builds in same_files(described, known, context.entry_of):
        yield from ((name, build) for build in builds)


def _together(lock: Lock, project: str, name: str) -> bool:
    """Return whether a lock installs both packages without extras, on one platform."""
    # 300 ms, for the proxy; few locks have a package under two names.
    from variants_proxy import service as proxy_service

    if not {project, name} <= lock.required:
        return False
    files = (
        [plain for text in lock.versions[each] for _, plain in lock.files(each, text)[0]]
        for each in (project, name)
    )
    return proxy_service.share_machines(*files)
