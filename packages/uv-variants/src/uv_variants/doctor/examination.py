"""What `variants_index.doctor` finds, and what only uv has: its program, environment and lock.

A part that fails is a problem among others, and the rest is examined all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pep_variants.internal import (
    PreferenceError,
    Sources,
    cache_directory,
    find_installed,
    places,
    read_version,
    redacted,
)
from variants_index.internal import (
    Findings,
    Part,
    Problem,
    catalog_hints,
    common_parts,
    environment_problems,
    settings_of,
    uv_part,
)
from variants_proxy.internal import bare_url, failures

from ..command_scope import Scope
from ..context import Context
from ..errors import USER_ERRORS, UvNotFound
from ..invocation import parse
from ..locked_variants import FLOATS, Lock
from ..place import Place
from ..program_version import TESTED_UVS, own_version, uv_version
from ..session_plan import SessionPlan
from ..site_packages import Installed, installed, site_packages
from ..uv_program import find_uv
from .variants import (
    IndexAnswers,
    ask_indexes,
    installed_problems,
    locked_items,
    locked_problems,
    states_of,
    switch_command,
)

if TYPE_CHECKING:
    from ..own_options import Options

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
    found = installed(() if environment is None else (environment,))
    answers, other = IndexAnswers({}, {}, {}), None
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
        for each in find_installed(map(str, site_packages(environment))):
            if each.problem:
                problems.append(Problem("metadata", each.problem, switch_command(each.project)))
    states = states_of(found, answers)
    if settings.preferences.catalog is None:
        known = {state.project for state in states}
        others = ((each.name, each.version) for each in found if each.name not in known)
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
    parts["packages"] = Part(
        tuple(row for state in states for row in state.rows())
        or (("variants", "none to compare"),),
        tuple(installed_problems(states, locked)),
        [state.as_tree() for state in states],
    )
    parts["lock"] = Part(
        (("path", lock_path or "none"), *(row for state in locked for row in state.rows())),
        (*_lock_problems(lock), *locked_problems(locked, other)),
        {"path": lock_path, "packages": [state.as_tree("locked") for state in locked]},
    )
    return Findings(parts)


def _answers(
    plan: SessionPlan, found: Iterable[Installed], problems: list[Problem]
) -> IndexAnswers:
    """Return what the indexes have of what is *found* and locked; append to *problems*."""
    names = [*sorted({each.name for each in found if each.label} | {*plan.context.lock.projects})]
    names += sorted({each.name for each in found} - set(names))
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
    used = {"uv-variants": own_version(), "uv": version or None, "path": path,
            "tested": version in TESTED_UVS}  # fmt: skip
    shown = f"runs uv {version}, {path}" if version else "runs no uv"
    rows = ((f"uv-variants {own_version()}", shown), *found.rows)
    return path, Part(rows, tuple(problems), {"pip": [], **found.tree, "used": used})


def _lock_problems(lock: Lock) -> Iterator[Problem]:
    if lock.problem:
        yield Problem("lock", lock.problem)
    if lock.is_floating:
        yield Problem("lock", f"{lock.path}: {FLOATS}", "uv-variants lock")


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
