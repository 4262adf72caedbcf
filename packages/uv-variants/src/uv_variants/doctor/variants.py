"""Whether variants that are installed or locked fit a machine, and what would be chosen now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from pep_variants.model.filename import read_version
from variants_index.platforms import is_for_platform
from variants_proxy.in_place_names import HERE

from .findings import Problem, VariantState

if TYPE_CHECKING:
    from ..locked_variants import Lock
    from ..proxy_client import VersionChoice
    from ..site_packages import Installed

Choices = Mapping[str, Mapping[str, "VersionChoice"]]

_UNKNOWN = "the index has no such version, or could not be asked"


def installed_states(installed: Iterable[Installed], choices: Choices) -> list[VariantState]:
    """Return the states of variants, and of projects without one that could have one."""
    found = []
    for each in installed:
        choice = _of_version(choices.get(each.name, {}), each.version)
        if choice is None and each.label is None:
            continue
        best = None if choice is None else choice.label_for(each.tags)
        state = _state(each.name, each.version, each.label or "", choice, best)
        if each.label is not None or state.best not in ("", "null"):
            found.append(state)
    return sorted(found, key=lambda state: state.name)


def locked_states(lock: Lock, target: str, choices: Choices) -> list[VariantState]:
    """Return the states of the variants that a lock has for a machine.

    Args:
        lock: the lock file.
        target: the machine's, ``linux-x86_64``.
        choices: for the machine.
    """
    found: dict[tuple[str, str, str], VariantState] = {}
    for file in lock.wheels:
        if not _is_for(file.plain, target):
            continue
        label = file.label or ""
        choice = _of_version(choices.get(file.project, {}), file.version)
        best = choice.chosen.label if choice is not None and choice.chosen is not None else None
        state = _state(file.project, file.version, label, choice, best)
        found.setdefault((file.project, file.version, label), state)
    return sorted(found.values(), key=lambda state: state.name)


def installed_problems(
    installed: Iterable[VariantState], locked: Iterable[VariantState], *, has_lock: bool
) -> list[Problem]:
    """Return what is wrong with installed variants.

    Args:
        installed: their states.
        locked: states of what is locked, for which there are problems of their own.
        has_lock: whether the environment is that of a project with a lock file.
    """
    names = {(state.name, state.version): state for state in locked}
    problems = []
    for state in installed:
        same = names.get((state.name, state.version))
        if same is not None and same.label == state.label:
            continue
        command = (
            "uv-variants sync"
            if has_lock and same is not None
            else f"uv-variants --variant-switch pip install {state.name}=={state.version}"
        )
        problems += _problems(state, "is installed", command)
    return problems


def locked_problems(locked: Iterable[VariantState]) -> list[Problem]:
    """Return what is wrong with locked variants."""
    problems = []
    for state in locked:
        requirement = f"{state.name}=={state.version}"
        command = f"uv-variants lock --upgrade-package {requirement} && uv-variants sync"
        problems += _problems(state, "is locked", command)
    return problems


def _problems(state: VariantState, how: str, command: str) -> list[Problem]:
    label = f"variant {state.label}" if state.label else "no variant"
    would = f"{state.best} would be chosen" if state.best else "no variant would be chosen"
    because = f" ({state.best_why})" if state.best_why else ""
    if state.fits is False:
        return [
            Problem(
                f"{state.name} {state.version}: {label} {how}, which does not fit this machine: "
                f"{state.why}; {would}{because}",
                command,
            )
        ]
    if not state.is_best:
        text = f"{state.name} {state.version}: {label} {how}; {would} now{because}"
        return [Problem(text, command, fails=False)]
    return []


def _state(
    name: str, version: str, label: str, choice: VersionChoice | None, best: str | None
) -> VariantState:
    if choice is None:
        return VariantState(name, version, label, None, _UNKNOWN)
    best_why = choice.reason_for(best) if best else ""
    if label == HERE:
        why = "floating: each machine gets what fits it"
        return VariantState(name, version, label, True, why, best or "", best_why)
    if not label:
        return VariantState(name, version, label, True, "", best or "", best_why)
    verdict = next((row for row in choice.verdicts if row.label == label), None)
    if verdict is None:
        why = f"the index has no variant {label} of it any more"
        return VariantState(name, version, label, None, why, best or "", best_why)
    fits = verdict.verdict != "rejected"
    why = choice.reason_for(label)
    return VariantState(name, version, label, fits, why, best or "", best_why)


def _of_version(versions: Mapping[str, VersionChoice], version: str) -> VersionChoice | None:
    if version in versions:
        return versions[version]
    wanted = read_version(version)
    return next(
        (item for text, item in versions.items() if wanted and read_version(text) == wanted), None
    )


def _is_for(name: str, target: str) -> bool:
    """Return whether a wheel is for the platform of *target*."""
    try:
        tags = parse_wheel_filename(name)[3]
    except (InvalidWheelFilename, ValueError):
        return False
    return any(is_for_platform(tag.platform, target) for tag in tags)
