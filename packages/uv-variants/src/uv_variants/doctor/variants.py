"""What the indexes have for this machine, and whether what is installed and locked fits it.

The indexes are asked without uv.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from pep_variants.internal import Advice, redacted
from variants_index.internal import (
    UNKNOWN,
    Problem,
    State,
    is_for_platform,
    state_of,
    state_problem,
)
from variants_proxy import Limits, Settings, host_target
from variants_proxy.internal import ANSWERED, ProxyError, Service, bare_url, gather_limited

from ..proxy_client import Choices, VersionChoice, read_choices
from ..site_packages import Installed

if TYPE_CHECKING:
    from ..lock_machine import LockMachine
    from ..locked_variants import Lock
    from ..session_plan import SessionPlan

_NULL = "null"
_LIMITS = Limits(read_seconds=5.0, page_seconds=10.0, file_seconds=20.0)
_AT_ONCE = 8


class IndexAnswers(Choices):
    """The answers of the indexes, which all were asked before.

    Attributes:
        problems: why an index could not be asked, by its name.
        sources: URL of the index, without credentials, by project.
    """

    def __init__(
        self,
        reports: Mapping[str, Mapping[str, Any]],
        problems: Mapping[str, str],
        sources: Mapping[str, str],
    ) -> None:
        self._reports = dict(reports)
        self._versions = {name: read_choices(tree) for name, tree in reports.items()}
        self.problems = problems
        self.sources = sources

    def ask(self, names: Iterable[str]) -> None:
        """Ask for nothing more."""


def ask_indexes(projects: Iterable[str], plan: SessionPlan) -> IndexAnswers:
    """Ask the indexes for *projects*, each the first index that has it, as uv does.

    An index that fails is not asked again.

    Args:
        projects: normalized names.
        plan: of the command that installs in the environment.

    Raises:
        InvalidSetting: the URL of an index is not valid.
        VariantError: the machine or the catalogue cannot be read.
    """
    environ = plan.context.place.environ
    settings = Settings(
        tuple(index.upstream() for index in plan.indexes.values()),
        plan.context.cache,
        dict(plan.machine_here.platforms),
        limits=_LIMITS,
        insecure_hosts=frozenset(plan.insecure_hosts),
        keyring=environ.get("UV_KEYRING_PROVIDER") == "subprocess",
        environ=environ,
        catalog=plan.catalog,
        catalog_mirrors=plan.context.preferences.catalog_mirrors,
    )
    return asyncio.run(_asked(sorted(projects), settings, plan))


async def _asked(projects: list[str], settings: Settings, plan: SessionPlan) -> IndexAnswers:
    service = Service(settings)
    reports: dict[str, Mapping[str, Any]] = {}
    problems: dict[str, str] = {}
    sources: dict[str, str] = {}

    async def ask(project: str) -> None:
        client = service.clients.client(plan.machine_here.key)
        for name, index in plan.indexes.items():
            if index.explicit and project not in plan.context.indexes.projects.get(name, ()):
                continue
            if name in problems:
                return  # not the next one either: the project may be on this one
            try:
                shown = await service.views.view(client, service.upstream(name), project)
                if shown is None:
                    continue
                reports[project] = await service.decisions(shown)
                sources[project] = redacted(bare_url(index.url))
            except (ProxyError, *ANSWERED) as error:
                problems.setdefault(name, redacted(" ".join(str(error).split())))
            return

    try:
        await gather_limited([partial(ask, project) for project in projects], _AT_ONCE)
    finally:
        service.upstreams.close()
    return IndexAnswers(reports, problems, sources)


def locked_items(lock: Lock) -> list[Installed]:
    """Return the variants that a lock has for the platform of this machine."""
    return list(
        dict.fromkeys(
            Installed(file.project, file.version, file.label)
            for file in lock.wheels
            if _is_for(file.plain, host_target())
        )
    )


def states_of(items: Iterable[Installed], answers: IndexAnswers) -> list[State]:
    """Return the states of variants, and of projects without one that could have one.

    Args:
        items: what is installed or locked.
        answers: of the indexes, for the machine.
    """
    found = []
    for each in items:
        choice = answers.of_installed(each)
        label = answers.label_of(each)
        if choice is None and label is None:
            continue
        best = None if choice is None else choice.label_for(each.tags)
        state = _state(answers, each, label, choice, best)
        if label is not None or state.now not in (None, _NULL):
            found.append(state)
    return sorted(found, key=lambda state: state.project)


def installed_problems(installed: Iterable[State], locked: Iterable[State]) -> Iterator[Problem]:
    """Yield what is wrong with installed variants, and why nothing better fits.

    Args:
        installed: their states.
        locked: states of what is locked, which has problems of its own.
    """
    names = {(state.project, state.version): state for state in locked}
    for state in installed:
        same = names.get((state.project, state.version))
        if same is not None and same.label == state.label and state.advice is not None:
            continue
        wanted = shlex.quote(f"{state.project}=={state.version}")
        switch = switch_command(wanted)
        explain = f"uv-variants -v pip install --dry-run --reinstall {wanted}"
        if problem := state_problem(state, "uv-variants sync" if same else switch, explain):
            yield problem


def switch_command(wanted: str) -> str:
    """Return the command that installs what fits in place of what is there."""
    return f"uv-variants --variant-switch pip install {wanted}"


def locked_problems(locked: Iterable[State], other: LockMachine | None) -> Iterator[Problem]:
    """Yield what is wrong with locked variants.

    Args:
        locked: their states.
        other: the machine that the lock is for, if it is another one: then no command is advised,
            as it would change the lock for everybody.
    """
    command = "uv-variants --variant-platform native lock && uv-variants sync"
    for state in locked:
        problem = state_problem(state, command, how="locked")
        if problem is not None and other is not None:
            text = f"{problem.text}; the lock is for {other}, --variant-platform names another one"
            problem = replace(problem, text=text, command="")
        if problem is not None:
            yield problem


def _state(
    answers: IndexAnswers,
    each: Installed,
    label: str | None,
    choice: VersionChoice | None,
    best: str | None,
) -> State:
    project, version = each.name, each.version
    if choice is None:
        return State(project, version, label, None, UNKNOWN, None)
    verdicts = {answers.sources.get(project, ""): [row._asdict() for row in choice.verdicts]}
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
    return state_of(project, version, label, advice, best, verdicts, _missed(choice))


def _missed(choice: VersionChoice) -> str:
    """Return the reason against the variant that is missed most, empty for none."""
    row = choice.chosen
    if row is not None and choice.why.startswith(f"{row.why}; "):
        return choice.why.removeprefix(f"{row.why}; ")
    _, found, clause = choice.why.partition("variant fits (")
    return clause.removesuffix(")") if found else ""


def _is_for(name: str, target: str) -> bool:
    """Return whether a wheel is for the platform of *target*."""
    try:
        tags = parse_wheel_filename(name)[3]
    except (InvalidWheelFilename, ValueError):
        return False
    return any(is_for_platform(tag.platform, target) for tag in tags)
