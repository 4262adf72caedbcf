"""An environment in order after a command: nothing of an old build is left, every file is its own.

uv installs and removes packages in any order. Of those that own the same file, such as
``nvidia-nccl-cu12`` and ``-cu13``, the one that is required is installed again. What only the old
build required is removed by ``--variant-switch``, as ``uv pip install`` removes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pep_variants import selection as wheel_selection
from pep_variants.errors import listed

from ._command_line import Scope
from ._environments import installed, site_packages
from ._errors import warn
from ._named_projects import name_of, normalized
from ._uv_process import run_uv

if TYPE_CHECKING:
    from pep_variants.wheel_files import Installed, OwnershipProblem

    from ._context import Context
    from ._state import CommandState

_WHERE = ("python", "target", "prefix", "system", "break-system-packages")
"""Options of ``uv pip`` that say where it installs."""

_KEPT = (
    *("directory", "project", "config-file", "no-config", "keyring-provider", "offline"),
    *("allow-insecure-host", "native-tls", "system-certs", "no-cache", "quiet", "no-progress"),
)
_SOURCES = (
    *("index", "default-index", "index-url", "extra-index-url", "no-index", "find-links"),
    *("index-strategy", "link-mode"),
)
"""Options that hold for the commands that are run afterwards as well."""


def read_requirements(context: Context, before: Mapping[str, Installed]) -> None:
    """Read what the projects with variants require, before they may be replaced."""
    wheel_selection.required_by(before, _with_variants(context, before))


def replaces_builds(state: CommandState, replaced: Collection[str]) -> bool:
    """Return whether the lock has other versions of projects with variants than are installed."""
    locked = state.context.lock.versions
    return any(
        name in replaced or str(state.installed[name].version) not in locked.get(name, ())
        for name in _with_variants(state.context, state.installed)
        if name in locked
    )


def tidy(
    context: Context,
    before: Mapping[str, Installed],
    environ: Mapping[str, str],
    *,
    removes: bool = False,
) -> list[OwnershipProblem]:
    """Put the environment in order after uv succeeded; return files that two projects need.

    Args:
        context: the command.
        before: what was installed before it.
        environ: variables of uv.
        removes: remove what only old builds required, as with ``--variant-switch``.
    """
    if context.invocation.has("dry-run") or not context.environments:
        return []
    now = installed(context.environments)
    names = {*_with_variants(context, before), *_with_variants(context, now)}
    changed = {name for name in names if before.get(name) != now.get(name)}
    if not changed:
        return []
    texts = (*context.requested, *context.indexes.configuration.requirements)
    asked = {normalized(name_of(text) or "") for text in texts}
    gone = wheel_selection.unneeded(before, now, changed, asked)
    is_switch = context.preferences.switch and context.scope is Scope.ENVIRONMENT
    if gone and (is_switch or removes):
        if not context.is_quiet:
            warn(f"removing what only the other build required: {_listed(gone)}")
        names_gone = [each.project for each in gone]
        _run(context, environ, "uninstall", names_gone)
        now = {name: each for name, each in now.items() if name not in names_gone}
    elif gone and context.invocation.command == ("pip", "install") and not context.is_quiet:
        names_gone = [each.project for each in gone]
        warn(f"nothing requires {_listed(gone)} any more: uv pip uninstall {' '.join(names_gone)}")
    folders = [str(folder) for each in context.environments for folder in site_packages(each)]
    found = wheel_selection.repairs(folders, now, changed, {each.project for each in gone})
    if found.again:
        if not context.is_quiet:
            warn(f"installing again, as others had the same files: {_listed(found.again)}")
        words = [part for each in found.again for part in ("--reinstall-package", each.project)]
        pins = [f"{each.project}=={each.version}" for each in found.again]
        _run(context, environ, "install", ["--no-deps", *words, *pins])
    return list(found.contested)


def warn_of(contested: Iterable[OwnershipProblem], found: Mapping[str, Installed]) -> None:
    """Print which of the *contested* files, the first one, works for one project only."""
    for problem in contested:
        owners = [f"{owner} (for {_requirers(found, owner)})" for owner in problem.owners]
        warn(
            f"{Path(problem.path).name} is in {listed(owners, 'and')}, and only one of them works: "
            f"{problem.path}"
        )
        return


def warn_of_mismatches(context: Context, before: Mapping[str, Installed]) -> None:
    """Print which installed variant is built against another release than is there.

    uv compares none. Those that have nothing to do with the command are not named.
    """
    now = installed(context.environments)
    named = {normalized(name_of(text) or "") for text in context.requested}
    concerned = {name for name in now if name in named or before.get(name) != now[name]}
    for mismatch in wheel_selection.abi_mismatches(now):
        if not concerned.isdisjoint((mismatch.installed.project, mismatch.other.project)):
            warn(f"{mismatch}: uv does not compare them, pip with the shim does")


def _with_variants(context: Context, found: Mapping[str, Installed]) -> list[str]:
    """Return the projects among what is installed that have variants."""
    has_catalog = context.preferences.catalog is not None
    return [
        name
        for name, each in found.items()
        if each.label is not None or (has_catalog and context.entry_of(name) is not None)
    ]


def _requirers(found: Mapping[str, Installed], owner: str) -> str:
    """Return the projects that require *owner*, ``name==version``, in a few words."""
    name = owner.partition("==")[0]
    names = [
        each.project
        for each in found.values()
        if any(normalized(name_of(text) or "") == name for text in each.requires)
    ]
    return listed(names, "and") if names else "itself"


def _listed(found: Iterable[Installed]) -> str:
    return ", ".join(f"{each.project} {each.version}" for each in found)


def _run(context: Context, environ: Mapping[str, str], word: str, rest: list[str]) -> None:
    """Run ``uv pip`` where the command installs, with the options of the command."""
    invocation = context.invocation
    names = (*_KEPT, *(_SOURCES if word == "install" else ()))
    words = [f"--python={context.environments[0]}"]
    if invocation.command[:1] == ("pip",):
        names, words = (*names, *_WHERE), []
    words += [f"--{item.name}={item.value}" for item in invocation.given if item.name in names]
    words += [f"--{name}" for name in names if name in invocation.flags]
    words += ["--quiet"] if "q" in invocation.flags else []
    run_uv([context.uv, "pip", word, *words, *rest], environ)
