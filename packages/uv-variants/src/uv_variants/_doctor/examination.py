"""What `variants_index.doctor` finds, and what only uv has: its program, environment and lock.

A part that fails is a problem among others, and the rest is examined all the same. The indexes are
asked without uv.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from pep_variants import preferences as user_preferences
from pep_variants import safe_files, wheel_files
from pep_variants.errors import PreferenceError, redacted
from pep_variants.machines import Detector
from pep_variants.options import OPTIONS
from pep_variants.wheel_files import Installed
from variants_index import doctor
from variants_index import finder as package_finder
from variants_index import target as target_machines
from variants_index.doctor import Checkup, Commands, Compared, Comparison, Findings, Part, Problem
from variants_index.finder import PackageFinder, Prefetcher, Session, Store
from variants_index.http import PackageIndexError
from variants_plugins.runner import PluginRunner
from variants_proxy import urls as proxy_urls

from .._accelerators.declared import Declared
from .._accelerators.environment import installed_groups, recorded_group
from .._accelerators.project import AcceleratedProject
from .._accelerators.running import is_chosen
from .._command_line import Scope, parse
from .._context import Context
from .._environments import listed, python_version, site_packages
from .._errors import USER_ERRORS, UvNotFound
from .._indexes import sources_of
from .._named_projects import CommandPlace
from .._platform_key import machine_key
from .._provider_plugins import allowed_plugins
from .._uv_lock import Lock
from .._uv_program import find_uv
from .._uv_version import TESTED_UVS, own_version, uv_version

if TYPE_CHECKING:
    from .._own_options import Options
    from .._uv_lock import LockMachine

_RETRIES = 1
_SECONDS = 5.0
_EXPLAIN = "uv-variants -v pip install --dry-run --reinstall"
_LOCK = "uv-variants --variant-platform native lock"

Groups = list[list[Compared]]
Comparisons = Callable[[str], Comparison]


@contextmanager
def comparing(context: Context, checkup: Checkup, root: Path) -> Iterator[Comparisons]:
    """Yield what compares projects with the indexes of a command, for this machine.

    Args:
        context: the command that installs in the environment.
        checkup: of the environment.
        root: of the file system.

    Raises:
        PackageIndexError: the catalogue cannot be fetched.
        VariantError: it cannot be read.
    """
    used, environ = context.indexes, context.place.environ
    preferences = replace(context.preferences, catalog=context.catalog)
    store = Store(safe_files.cache_directory(environ, "index"))
    with ExitStack() as stack:

        @cache
        def of_index(name: str) -> Comparison:
            one = [used.indexes[name]] if name else plain
            sources = sources_of(
                one, context.index_strategy, trusted_hosts=context.insecure_hosts, timeout=_SECONDS
            )
            session = Session(
                sources, store=store, environ=environ, retries=_RETRIES, keyring=context.keyring
            )
            stack.callback(session.close)
            prefetcher = Prefetcher()
            stack.callback(prefetcher.close)
            catalog = package_finder.catalog_of(session, preferences)
            finder = PackageFinder(session, sources, prefetcher, catalog)
            return checkup.comparison(finder, environ, root)

        named = {
            project: name
            for name, index in used.indexes.items()
            for project in (used.projects.get(name, ()) if index.explicit else ())
        }
        plain = [index for index in used.indexes.values() if not index.explicit]
        yield lambda project: of_index(named.get(project, ""))


def locked_items(lock: Lock) -> list[Installed]:
    """Return the variants that a lock has for the platform of this machine."""
    return list(
        listed(
            dict.fromkeys(
                (file.project, file.version, file.label)
                for file in lock.wheels
                if file.label is not None and _is_for(file.plain, proxy_urls.host_target())
            )
        )
    )


def not_locked(groups: Groups, locked: Groups) -> Groups:
    """Return *groups* of what is installed without advice about what is *locked* in the same way.

    The lock has a problem of its own then.
    """
    advised = [each for group in locked for each in group if each.advice is not None]
    known = {(each.item.project, each.release, each.label) for each in advised}
    return [
        [
            replace(each, advice=None, missed="")
            if (each.item.project, each.release, each.label) in known
            else each
            for each in group
        ]
        for group in groups
    ]


def switch_commands(commands: Commands, locked: Groups) -> Callable[[Sequence[Compared]], str]:
    """Return what gives the command that installs what fits: what is locked, if anything is."""
    known = {(each.item.project, each.release) for group in locked for each in group}

    def command(group: Sequence[Compared]) -> str:
        if any((each.item.project, each.release) in known for each in group):
            return "uv-variants sync"
        return commands.switched(each.item.project for each in group)

    return command


def locked_problems(
    locked: Groups, checkup: Checkup, other: LockMachine | None
) -> Iterator[Problem]:
    """Yield what is wrong with locked variants.

    Args:
        locked: what they were compared with.
        checkup: of the environment.
        other: the machine that the lock is for, if it is another one: then no command is advised,
            as it would change the lock for everybody.
    """

    def command(group: Sequence[Compared]) -> str:
        moved = [each.item.project for each in group if each.advice and each.advice.version]
        upgraded = "".join(f" --upgrade-package {name}" for name in moved)
        return f"{_LOCK}{upgraded} && uv-variants sync"

    for problem in doctor.package_problems(
        locked, checkup.commands, checkup.asked, command, "locked"
    ):
        if other is None or not problem.command:
            yield problem
        else:
            text = f"{problem.text}; the lock is for {other}, --variant-platform names another one"
            yield replace(problem, text=text, command="")


def accelerator_problems(context: Context, environment: Path | None) -> Iterator[Problem]:
    """Yield what is wrong about the groups of a lock for several accelerators.

    That is another group than the one that fits in the *environment*, if nobody asked for it, and
    a GPU that none of them uses.
    """
    root, environ = context.place.root, context.place.environ
    if root is None or not (declared := Declared.read(root)).accelerators:
        return
    project = AcceleratedProject.open(root, context.preferences, environ)
    chosen = project.chosen()
    if best := project.idle(chosen.name):
        yield Problem(
            "better-variant",
            f"no group of uv.lock uses the GPU that is here: {best} fits it",
            f"uv-variants accelerators --add {best} && uv-variants sync",
            fails=False,
        )
    if environment is None or is_chosen(context, declared):
        return
    found = installed_groups(context.uv, root, environ, declared.accelerators)
    if {chosen.name, recorded_group(environment)}.isdisjoint(found):
        has = f"group {' and '.join(found)}" if found else "no group as a whole"
        text = f"the environment has {has} of uv.lock, while {chosen.name} fits: {chosen.why}"
        yield Problem("better-variant", text, "uv-variants sync")


def _is_for(name: str, target: str) -> bool:
    """Return whether a wheel is for the platform of *target*."""
    try:
        tags = parse_wheel_filename(name)[3]
    except (InvalidWheelFilename, ValueError):
        return False
    return any(target_machines.is_for_platform(tag.platform, target) for tag in tags)


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
    place = CommandPlace.of(parse(["sync"]), folder, environ)
    activated = environ.get("VIRTUAL_ENV")
    candidates = user_preferences.places(
        place.cwd, activated or str(place.project / ".venv"), prefix_is_project=not activated
    )
    settings, unread = doctor.settings_of(options.variants, environ, candidates)
    uv, installers = _installers(environ)
    # Where ``uv sync`` installs, or without a project ``uv pip install``.
    command, scope = ["pip", "install"], Scope.ENVIRONMENT
    if place.root is not None:
        command, scope = ["sync"], Scope.PROJECT
    lock = Lock.read(place.lock_path)
    cached = safe_files.cache_directory(environ, "proxy")
    context = Context(uv, parse(command), scope, place, options, settings.preferences, cached, lock)
    offline = offline or context.is_offline
    problems: list[Problem] = []
    environment = None
    with _noting(problems, "lookup"):
        environment = next((path for path in context.environments if path.is_dir()), None)
    version = "" if environment is None else python_version(environment)
    usual = (index for index in context.indexes.indexes.values() if not index.explicit)
    sources = sources_of(usual, context.index_strategy)
    parts = doctor.common_parts(
        settings,
        unread,
        environ,
        sources,
        lambda _: installers,
        root=root,
        start=place.project.absolute(),
        candidates=candidates,
        pip=False,
    )
    is_read = all(problem.code != "configuration" for problem in Findings(parts).problems)
    groups: Groups = []
    locked: Groups = []
    checkup = None
    with _noting(problems if is_read else [], "configuration"):
        target = target_machines.make_target(python_version=version or None)
        detector = Detector.of(
            settings.preferences,
            runner=lambda: PluginRunner.of(settings.preferences, sources, offline=offline),
            environment=target.environment,
        )
        checkup = Checkup(
            [] if environment is None else list(map(str, site_packages(environment))),
            target,
            detector.platform,
            settings.preferences,
            sources,
            _commands(options).of_project(place.project),
            store=Store(safe_files.cache_directory(environ, "index")),
        )
        if is_read and not offline:
            with comparing(context, checkup, root) as of:
                wanted = doctor.wants((), every=True)
                groups = _grouped(doctor.compare_all(checkup.items, of, wanted), of)
                locked = _grouped(doctor.compare_all(locked_items(lock), of, wanted), of)
    parts["environment"] = doctor.environment_part(environment, "", version)._replace(
        problems=tuple(problems)
    )
    found: list[Problem] = []
    states, locks = [], []
    other = None
    if checkup is not None:
        commands = checkup.commands
        found += checkup.problems(
            not_locked(groups, locked), switch_commands(commands, locked), reads_settings=is_read
        )
        parts["code"] = doctor.code_part(checkup.items, checkup.codes)
        indexes = checkup.asked.indexes
        states = doctor.shown_states((each for group in groups for each in group), indexes)
        others = [Compared(item, item.label) for item in locked_items(lock)] if not locked else []
        locks = doctor.shown_states(
            [*others, *(each for group in locked for each in group)], indexes
        )
        with _noting(found, "configuration"):
            other = context.lock_machine
            if other is not None:
                here = machine_key(context, allowed_plugins(context))
                other = None if other.is_like(here.machine) else other
    parts["packages"] = doctor.packages_part(states, found)
    lock_path = str(lock.path) if lock.text is not None else ""
    own = [Problem("lock", lock.problem)] if lock.problem else []
    if checkup is not None:
        own += locked_problems(locked, checkup, other)
        with _noting(own, "configuration"):
            own += accelerator_problems(context, environment)
    parts["lock"] = Part(
        (("path", lock_path or "none"), *(state.row for state in locks)),
        tuple(own),
        {"path": lock_path, "packages": doctor.states_tree(locks, "locked")},
    )
    return Findings(parts)


def _grouped(found: Iterable[Compared], of: Comparisons) -> Groups:
    return doctor.agreed(found, lambda one, two: of(one).finder.entries.together(one, two))


def _commands(options: Options) -> Commands:
    """Return what to type, with our *options*, which were given for this command."""
    words: list[str] = []
    for option in OPTIONS:
        value = options.variants.get(option.name)
        for each in value if isinstance(value, list) else [value] if value else []:
            words += [f"--{option.name}", *([redacted(str(each))] if option.metavar else [])]
    return doctor.uv_commands(
        words, explain=_EXPLAIN, doctor=shlex.join(("uv-variants", *words, "doctor"))
    )


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
    known = [wheel_files.read_version(text) for text in (version, TESTED_UVS[0], TESTED_UVS[-1])]
    if all(known) and known[0] < known[1]:  # type: ignore[operator]
        text = f"uv {version} is older than {TESTED_UVS[0]}, the oldest that is supported"
        problems.append(Problem("uv-version", text, "uv self update"))
    elif all(known) and known[0] > known[2]:  # type: ignore[operator]
        text = f"uv {version} is newer than {TESTED_UVS[-1]}, the newest that was tested"
        problems.append(Problem("uv-version", text, fails=False))
    found = doctor.uv_part(environ)
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
    except (PreferenceError, PackageIndexError, *USER_ERRORS) as error:
        problems.append(Problem(code, redacted(" ".join(str(error).split()))))
