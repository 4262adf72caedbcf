"""What the indexes have for this machine, and whether what is installed and locked fits it.

The indexes are asked without uv and without a background process.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from pep_variants.choose.rejections import Advice
from pep_variants.errors import redacted
from pep_variants.model.filename import read_version
from variants_index.doctor import (
    UNKNOWN,
    Problem,
    State,
    missed_problem,
    state_of,
    switch_problem,
)
from variants_index.platforms import is_for_platform
from variants_proxy.choice.in_place_names import HERE
from variants_proxy.errors import ANSWERED, ProxyError
from variants_proxy.service import Service
from variants_proxy.settings import Limits, Settings
from variants_proxy.upstream.single_flight import gather_limited
from variants_proxy.upstream.upstream_options import bare_url

from ..proxy_client import VersionChoice, read_choices

if TYPE_CHECKING:
    from pathlib import Path

    from ..lock_machine import LockMachine
    from ..locked_variants import Lock
    from ..platform_key import PlatformKey
    from ..site_packages import Installed
    from ..used_indexes import UsedIndexes

_NULL = "null"
_LIMITS = Limits(read_seconds=5.0, page_seconds=10.0, file_seconds=20.0)
_AT_ONCE = 8


@dataclass(frozen=True)
class IndexAnswers:
    """The answers of the indexes.

    Attributes:
        choices: by project and version; projects without variants are missing.
        problems: why an index could not be asked, by its name.
        sources: URL of the index, without credentials, by project.
    """

    choices: Mapping[str, Mapping[str, VersionChoice]]
    problems: Mapping[str, str]
    sources: Mapping[str, str] = field(default_factory=dict)


def ask_indexes(
    projects: Iterable[str],
    used: UsedIndexes,
    machine: PlatformKey,
    cache: Path,
    environ: Mapping[str, str],
) -> IndexAnswers:
    """Ask the indexes for *projects*, each the first index that has it, as uv does.

    An index that fails is not asked again.

    Args:
        projects: normalized names.
        used: the indexes.
        machine: that variants are to fit.
        cache: directory of the proxy's cache.
        environ: environment variables.

    Raises:
        InvalidSetting: the URL of an index is not valid.
    """
    settings = Settings(
        tuple(index.upstream() for index in used.indexes.values()),
        cache,
        dict(machine.platforms),
        limits=_LIMITS,
        keyring=environ.get("UV_KEYRING_PROVIDER") == "subprocess",
        environ=environ,
    )
    return asyncio.run(_asked(sorted(projects), settings, used, machine.key))


async def _asked(
    projects: list[str], settings: Settings, used: UsedIndexes, key: str
) -> IndexAnswers:
    service = Service(settings)
    choices: dict[str, dict[str, VersionChoice]] = {}
    problems: dict[str, str] = {}
    sources: dict[str, str] = {}

    async def ask(project: str) -> None:
        client = service.clients.client(key)
        for name, index in used.indexes.items():
            if index.explicit and project not in used.projects.get(name, ()):
                continue
            if name in problems:
                return  # not the next one either: the project may be on this one
            try:
                shown = await service.views.view(client, service.upstream(name), project)
                if shown is None:
                    continue
                tree = await service.report.decisions(shown)
            except (ProxyError, *ANSWERED) as error:
                problems.setdefault(name, redacted(" ".join(str(error).split())))
                return
            if versions := read_choices(tree):
                choices[project] = versions
                sources[project] = redacted(bare_url(index.url))
            return

    try:
        await gather_limited([partial(ask, project) for project in projects], _AT_ONCE)
    finally:
        service.upstreams.close()
    return IndexAnswers(choices, problems, sources)


def installed_states(installed: Iterable[Installed], answers: IndexAnswers) -> list[State]:
    """Return the states of variants, and of projects without one that could have one."""
    found = []
    for each in installed:
        choice = _of_version(answers, each.name, each.version)
        if choice is None and each.label is None:
            continue
        best = None if choice is None else choice.label_for(each.tags)
        state = _state(answers, each.name, each.version, each.label, choice, best)
        if each.label is not None or state.now not in (None, _NULL):
            found.append(state)
    return sorted(found, key=lambda state: state.project)


def locked_states(lock: Lock, target: str, answers: IndexAnswers) -> list[State]:
    """Return the states of the variants that a lock has for a machine.

    Args:
        lock: the lock file.
        target: the machine's, ``linux-x86_64``.
        answers: of the indexes, for the machine.
    """
    found: dict[tuple[str, str, str | None], State] = {}
    for file in lock.wheels:
        if not _is_for(file.plain, target):
            continue
        choice = _of_version(answers, file.project, file.version)
        best = choice.chosen.label if choice is not None and choice.chosen is not None else None
        state = _state(answers, file.project, file.version, file.label or None, choice, best)
        found.setdefault((file.project, file.version, file.label), state)
    return sorted(found.values(), key=lambda state: state.project)


def installed_problems(
    installed: Iterable[State],
    locked: Iterable[State],
    answers: IndexAnswers,
    *,
    has_lock: bool,
) -> Iterator[Problem]:
    """Yield what is wrong with installed variants, and why nothing better fits.

    Args:
        installed: their states.
        locked: states of what is locked, for which there are problems of their own.
        answers: of the indexes, for the machine.
        has_lock: whether the environment is that of a project with a lock file.
    """
    names = {(state.project, state.version): state for state in locked}
    for state in installed:
        same = names.get((state.project, state.version))
        wanted = shlex.quote(f"{state.project}=={state.version}")
        if same is None or same.label != state.label:
            command = f"uv-variants --variant-switch pip install {wanted}"
            if has_lock and same is not None:
                command = "uv-variants sync"
            if problem := switch_problem(state, command):
                yield problem
                continue
        choice = _of_version(answers, state.project, state.version)
        if state.advice is None and choice is not None and (missed := _missed(choice)):
            command = f"uv-variants -v pip install --dry-run --reinstall {wanted}"
            yield missed_problem(state, missed, command)


def locked_problems(locked: Iterable[State], other: LockMachine | None) -> Iterator[Problem]:
    """Yield what is wrong with locked variants.

    Args:
        locked: their states.
        other: the machine that the lock is for, if it is another one: then no command is advised,
            as it would change the lock for everybody.
    """
    for state in locked:
        command = "uv-variants --variant-platform native lock && uv-variants sync"
        problem = switch_problem(state, command, "locked")
        if problem is not None and other is not None:
            text = f"{problem.text}; the lock is for {other}, --variant-platform names another one"
            problem = replace(problem, text=text, command="")
        if problem is not None:
            yield problem


def _state(
    answers: IndexAnswers,
    project: str,
    version: str,
    label: str | None,
    choice: VersionChoice | None,
    best: str | None,
) -> State:
    if choice is None:
        return State(project, version, label, None, UNKNOWN, None)
    verdicts = {answers.sources.get(project, ""): [row._asdict() for row in choice.verdicts]}
    if label == HERE:
        text = "floating: each machine gets what fits it"
        return State(project, version, label, best, text, True, None, verdicts)
    verdict = next((row for row in choice.verdicts if row.label == label), None)
    if label is not None and verdict is None:
        text = f"the index has no variant {label} of it any more"
        return State(project, version, label, best, text, None, None, verdicts)
    unfit = verdict is not None and verdict.verdict == "rejected"
    advice = None
    if unfit or best not in ((None, _NULL) if label is None else (label, None)):
        why = next((row.why for row in choice.verdicts if row.label == best), "")
        unfits = (choice.reason_for(label),) if unfit and label is not None else ()
        advice = Advice(label, best, unfits, "" if best == _NULL else why)
    return state_of(project, version, label, advice, best, verdicts)


def _missed(choice: VersionChoice) -> str:
    """Return the reason against the variant that is missed most, empty for none."""
    row = choice.chosen
    if row is not None and choice.why.startswith(f"{row.why}; "):
        return choice.why.removeprefix(f"{row.why}; ")
    _, found, clause = choice.why.partition("variant fits (")
    return clause.removesuffix(")") if found else ""


def _of_version(answers: IndexAnswers, project: str, version: str) -> VersionChoice | None:
    versions = answers.choices.get(project, {})
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
