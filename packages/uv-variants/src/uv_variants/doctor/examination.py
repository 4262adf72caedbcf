"""What `variants_index.doctor` finds, and what only uv has: its program, environment and lock.

A part that fails is a problem among others, and the rest is examined all the same. The indexes are
asked without uv.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from pep_variants.internal import (
    Advice,
    PreferenceError,
    Sources,
    cache_directory,
    places,
    read_version,
    redacted,
)
from variants_index.internal import (
    UNKNOWN,
    WITHOUT,
    Findings,
    Part,
    Problem,
    State,
    catalog_hints,
    common_parts,
    environment_problems,
    is_for_platform,
    packages_part,
    settings_of,
    state_problem,
    states_tree,
    uv_part,
)
from variants_proxy import Limits, Settings, host_target
from variants_proxy.internal import (
    ANSWERED,
    ProxyError,
    Service,
    bare_url,
    failures,
    gather_limited,
)

from ..choices import Choices, VersionChoice, read_choices
from ..command_line import Scope, parse
from ..context import Context
from ..environments import installed, listed, site_packages
from ..errors import USER_ERRORS, UvNotFound
from ..named_projects import Place
from ..session_plan import SessionPlan
from ..uv_lock import Lock
from ..uv_program import TESTED_UVS, find_uv, own_version, uv_version

if TYPE_CHECKING:
    from pep_variants.internal import Installed

    from ..own_options import Options
    from ..uv_lock import LockMachine


_NULL = "null"
_LIMITS = Limits(read_seconds=5.0, page_seconds=10.0, file_seconds=20.0)
_AT_ONCE = 8


class IndexAnswers(Choices):
    """The answers of the indexes, which all were asked before.

    Attributes:
        problems: why an index could not be asked, by its name.
    """

    def __init__(
        self, reports: Mapping[str, Mapping[str, Any]], problems: Mapping[str, str]
    ) -> None:
        self._reports = dict(reports)
        self._versions = {name: read_choices(tree) for name, tree in reports.items()}
        self.problems = problems

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
            except (ProxyError, *ANSWERED) as error:
                problems.setdefault(name, redacted(" ".join(str(error).split())))
            return

    try:
        await gather_limited([partial(ask, project) for project in projects], _AT_ONCE)
    finally:
        service.upstreams.close()
    return IndexAnswers(reports, problems)


def locked_items(lock: Lock) -> list[Installed]:
    """Return the variants that a lock has for the platform of this machine."""
    return list(
        dict.fromkeys(
            listed(
                (file.project, file.version, file.label)
                for file in lock.wheels
                if _is_for(file.plain, host_target())
            )
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
        if choice is not None:
            state = _state(each, label, choice)
        elif label is not None:
            state = State(each.project, str(each.version), label, None, UNKNOWN)
        else:
            continue
        if label is not None or state.now not in (None, _NULL):
            found.append(state)
    return sorted(found)


def _state(each: Installed, label: str | None, choice: VersionChoice) -> State:
    project, version = each.project, str(each.version)
    label, best = choice.named(label), choice.named(choice.label_for(each.tags))
    verdict = next((row for row in choice.verdicts if row.label == label), None)
    if not choice.verdicts:
        return State(project, version, label, best, WITHOUT)
    if label is not None and verdict is None:
        text = f"the index has no variant {label} of it any more"
        return State(project, version, label, best, text)
    unfit = verdict is not None and verdict.verdict == "rejected"
    advice = None
    if unfit or best not in ((None, _NULL) if label is None else (label, None)):
        why = next((row.why for row in choice.verdicts if row.label == best), "")
        unfits = (choice.reason_for(label),) if unfit and label is not None else ()
        advice = Advice(label, best, unfits, "" if best == _NULL else why)
    return State.of(project, version, label, advice, best, _missed(choice))


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
        explain = f"uv-variants -v pip install --dry-run --reinstall {wanted}"
        switch = "uv-variants sync" if same else switch_command(wanted)
        if problem := state_problem(state, switch, explain):
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


_MAX_ASKED = 300


def examine(
    options: Options,
    environ: Mapping[str, str],
    folder: Path,
    *,
    offline: bool,
    root: Path = Path("/"),
) -> Findings:
    """Examine everything.

    Args:
        options: of uv-variants, which count for what would be chosen.
        environ: environment variables.
        folder: where, or below the directory where, the project is.
        offline: ask no index.
        root: of the file system in which drivers and device files are looked for.
    """
    place = Place.of(parse(["sync"]), folder, environ)
    activated = environ.get("VIRTUAL_ENV")
    candidates = places(
        place.cwd, activated or str(place.project / ".venv"), prefix_is_project=not activated
    )
    settings, unread = settings_of(options.variants, environ, candidates)
    uv, installers = _installers(environ)
    # Where ``uv sync`` installs, or without a project ``uv pip install``.
    command, scope = ["pip", "install"], Scope.ENVIRONMENT
    if place.root is not None:
        command, scope = ["sync"], Scope.PROJECT
    lock = Lock.read(place.lock_path)
    cache = cache_directory(environ, "proxy")
    context = Context(uv, parse(command), scope, place, options, settings.preferences, cache, lock)
    urls = [redacted(bare_url(index.url)) for index in context.indexes.indexes.values()]
    problems: list[Problem] = []
    environment = None
    with _noting(problems, "lookup"):
        environment = next((path for path in context.environments if path.is_dir()), None)
    found = [*installed(() if environment is None else (environment,)).values()]
    answers, other = IndexAnswers({}, {}), None
    if not offline and not context.is_offline:
        with _noting(problems, "configuration"):
            plan = SessionPlan(context)
            answers = _answers(plan, found, problems)
            other = plan.lock_machine
            if other is not None and other.is_like(plan.machine_here.machine):
                other = None
    if environment is not None:
        problems += environment_problems(
            map(str, site_packages(environment)), "uv-variants pip install", "uv pip uninstall"
        )
        for each in found:
            if each.problem:
                problems.append(Problem("metadata", each.problem, switch_command(each.project)))
    states = states_of(found, answers)
    if settings.preferences.catalog is None:
        known = {state.project for state in states}
        others = ((each.project, each.version) for each in found if each.project not in known)
        problems += catalog_hints(others, lambda _: "uv-variants --variant-catalog default doctor")
    locked = states_of(locked_items(lock), answers)
    path = str(environment or "")
    lock_path = str(lock.path) if lock.text is not None else ""
    parts = common_parts(
        settings,
        unread,
        environ,
        Sources(urls[0] if urls else None, tuple(urls[1:])),
        lambda _: installers,
        root=root,
        start=place.project.absolute(),
        candidates=candidates,
        pip=False,
    )
    parts["environment"] = Part((("path", path or "none"),), tuple(problems), path)
    own = [Problem("lock", lock.problem)] if lock.problem else []
    parts["packages"] = packages_part(states, installed_problems(states, locked))
    parts["lock"] = Part(
        (("path", lock_path or "none"), *(state.row for state in locked)),
        (*own, *locked_problems(locked, other)),
        {"path": lock_path, "packages": states_tree(locked, "locked")},
    )
    return Findings(parts)


def _answers(
    plan: SessionPlan, found: Iterable[Installed], problems: list[Problem]
) -> IndexAnswers:
    """Return what the indexes have of what is *found* and locked; append to *problems*."""
    names = [
        *sorted({each.project for each in found if each.label} | {*plan.context.lock.projects})
    ]
    names += sorted({each.project for each in found} - set(names))
    names = names[:_MAX_ASKED]
    failed = plan.plugins.failures.values() if plan.plugins is not None else ()
    problems += [Problem("plugin", str(error)) for error in failed]
    answers = ask_indexes(names, plan)
    for name, why in answers.problems.items():
        text = f"index {name} could not be asked, so not all is known: {why}"
        problems.append(Problem("lookup", text, fails=False))
    problems += [Problem("catalog-place", text) for text in failures(answers.reports(names))]
    return answers


def _installers(environ: Mapping[str, str]) -> tuple[str, Part]:
    """Return the path of the uv that commands run, empty without one, and the part about uvs."""
    path = version = ""
    problems = []
    try:
        path = find_uv(environ)
        version = uv_version(path, environ)
    except UvNotFound as error:
        problems.append(Problem("uv-missing", str(error), "" if path else "pip install uv"))
    except OSError as error:
        problems.append(Problem("uv-missing", f"{path}: {error.strerror or error}"))
    known = [read_version(text) for text in (version, TESTED_UVS[0], TESTED_UVS[-1])]
    if all(known) and known[0] < known[1]:  # type: ignore[operator]
        text = f"uv {version} is older than {TESTED_UVS[0]}, the oldest that is supported"
        problems.append(Problem("uv-version", text, "uv self update"))
    elif all(known) and known[0] > known[2]:  # type: ignore[operator]
        text = f"uv {version} is newer than {TESTED_UVS[-1]}, the newest that was tested"
        problems.append(Problem("uv-version", text, fails=False))
    found = uv_part(environ)
    shown = f"runs uv {version}, {path}" if version else "runs no uv"
    rows = ((f"uv-variants {own_version()}", shown), *found.rows)
    return path, Part(rows, tuple(problems))


@contextmanager
def _noting(problems: list[Problem], code: str) -> Iterator[None]:
    """Append an error that ends the block to *problems*."""
    try:
        yield
    except OSError as error:
        place = f"{error.filename}: " if error.filename is not None else ""
        problems.append(Problem(code, f"{place}{error.strerror or error}"))
    except (PreferenceError, *USER_ERRORS) as error:
        problems.append(Problem(code, redacted(" ".join(str(error).split()))))
