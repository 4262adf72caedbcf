"""An environment in order after a command: nothing of an old build is left, every file is its own.

uv installs and removes packages in any order. Of those that own the same file, such as
``nvidia-nccl-cu12`` and ``-cu13``, the one that is required is installed again. What only the old
build required is removed by ``--variant-switch``, as ``uv pip install`` removes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from pep_variants.internal import listed, repairs, required_by, unneeded

from .choices import warn
from .command_line import Scope
from .environments import installed, site_packages
from .named_projects import name_of, normalized
from .uv_process import run_uv

if TYPE_CHECKING:
    from pep_variants.internal import Installed

    from .context import Context
    from .installed_state import InstalledState

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


def read_requirements(state: InstalledState) -> None:
    """Read what the projects with variants require, before they may be replaced."""
    required_by(state.installed, _with_variants(state.context, state.installed))


def tidy(state: InstalledState, environ: Mapping[str, str]) -> None:
    """Put the environment in order after uv succeeded.

    Args:
        state: before the command.
        environ: variables of uv.
    """
    context, before = state.context, state.installed
    if context.invocation.has("dry-run") or not context.environments:
        return
    now = installed(context.environments)
    names = {*_with_variants(context, before), *_with_variants(context, now)}
    changed = {name for name in names if before.get(name) != now.get(name)}
    if not changed:
        return
    texts = (*context.requested, *context.indexes.configuration.requirements)
    asked = {normalized(name_of(text) or "") for text in texts}
    gone = unneeded(before, now, changed, asked)
    if gone and context.preferences.switch and context.scope is Scope.ENVIRONMENT:
        if not context.is_quiet:
            warn(f"removing what only the other build required: {_listed(gone)}")
        names_gone = [each.project for each in gone]
        _run(context, environ, "uninstall", names_gone)
        now = {name: each for name, each in now.items() if name not in names_gone}
    folders = [str(folder) for each in context.environments for folder in site_packages(each)]
    found = repairs(folders, now, changed, {each.project for each in gone})
    if found.again:
        if not context.is_quiet:
            warn(f"installing again, as others had the same files: {_listed(found.again)}")
        words = [part for each in found.again for part in ("--reinstall-package", each.project)]
        pins = [f"{each.project}=={each.version}" for each in found.again]
        _run(context, environ, "install", ["--no-deps", *words, *pins])
    for problem in found.contested[:1]:
        requirers = [_requirers(now, owner.partition("==")[0]) for owner in problem.owners]
        owners = [
            f"{owner} (for {by})" for owner, by in zip(problem.owners, requirers, strict=True)
        ]
        warn(
            f"{os.path.basename(problem.path)} is in {listed(owners, 'and')}, and only one of them "  # noqa: PTH119
            f"works: {problem.path}"
        )


def _with_variants(context: Context, found: Mapping[str, Installed]) -> list[str]:
    """Return the projects among what is installed that have variants."""
    has_catalog = context.preferences.catalog is not None
    return [
        name
        for name, each in found.items()
        if each.label is not None or (has_catalog and context.entry_of(name) is not None)
    ]


def _requirers(found: Mapping[str, Installed], name: str) -> str:
    """Return what requires a project, in a few words."""
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
