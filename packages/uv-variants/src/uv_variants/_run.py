"""One uv command whose requests a session answers: prepared, run, and reported.

What ``uv pip install --dry-run`` would take, uv alone knows: nothing is installed that tells of
variants, so its output is read while it is printed.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from pep_variants import safe_files
from pep_variants import selection as wheel_selection
from pep_variants.safe_files import NotPrivate

from ._accelerators.running import run_accelerated
from ._built_wheels import BuiltWheels
from ._checks import (
    check_after,
    check_before,
    check_cache,
    check_direct_wheels,
    check_installed,
    check_lock,
    check_passing,
    check_sources,
)
from ._choices import Choices, report_platform
from ._command_line import EXPORTING, Scope, parse
from ._context import Context
from ._environments import installed, installed_variants
from ._errors import ALLOWED, USER_ERRORS, ProxyFailed, SourcesMissing, VariantMissing, warn
from ._indexes import PROXIES, link_options, link_variables
from ._locked_hashes import complete, completed_meanwhile
from ._missed_builds import tell_of_builds
from ._named_projects import normalized
from ._notices import after_failure, after_lock, after_success
from ._platform_key import machine_key
from ._private_folder import PrivateFolder
from ._provider_plugins import WantedProvider, allowed_plugins
from ._state import CommandState
from ._switching import (
    INSTALLS,
    INSTALLS_TOO,
    NO_CHANGES,
    Changes,
    agreement,
    changes_of,
    staying,
    upgraded,
    with_outdated,
    without_upgrades,
)
from ._upkeep import read_requirements, replaces_builds, tidy, warn_of, warn_of_mismatches
from ._uv_environment import STARTED_BY_UV, program_run, uv_variables, variables_without_session
from ._uv_process import Check, end_as, run_uv
from ._uv_program import become_uv
from ._version_bounds import (
    bound_options,
    bounds_of,
    in_order,
    may_run_again,
    newly_taken,
    required_builds,
    wanted_builds,
)

if TYPE_CHECKING:
    from pep_variants.selection import NewestBuild
    from pep_variants.wheel_files import OwnershipProblem

    from ._command_line import Invocation
    from ._missed_builds import Planned
    from ._own_options import Options


_logger = logging.getLogger(__name__)


def is_planned(context: Context) -> bool:
    """Return whether uv says what the command would install."""
    invocation = context.invocation
    said = (("pip", "install"), ("pip", "sync"), ("sync",))
    return invocation.command in said and invocation.has("dry-run")


def run_and_read(command: Sequence[str], environ: Mapping[str, str]) -> tuple[int, Planned]:
    """Run uv; return its exit code, and what it says that it would install."""
    planned: list[tuple[str, str]] = []

    def read(line: bytes) -> None:
        # " + torch==2.9.0", with colours on a terminal; "~" is a reinstallation.
        plain = re.sub(rb"\x1b\[[0-9;]*m", b"", line)
        match = re.fullmatch(rb"\s*[+~]\s([A-Za-z0-9][\w.-]*)==([\w.+!]+)\s*", plain)
        if match is not None:
            planned.append((normalized(match[1].decode()), match[2].decode()))

    if sys.stderr.isatty() and not environ.get("NO_COLOR"):
        environ = {"FORCE_COLOR": "1", **environ}
    return run_uv(command, environ, read_line=read), planned


_MAY_ASK_NOTHING = (("run",), ("sync",), ("lock",), ("tree",), ("export",))
"""Commands that ask no index if lock file and environment are up to date."""


class UvRun(NamedTuple):
    """Command line and environment of uv, and the decisions behind them.

    Attributes:
        state: of the command, before uv runs.
        arguments, environ: of uv.
        builds: what shall go before newer versions, by project, see `version_bounds`.
        changes: what is decided about what is installed, see `switching`.
        refused: projects of which uv found no solution with these.
        is_idle: uv has nothing to do, and there is nothing to check afterwards.
        wheels: that uv has built before, None if it has nothing to do.
    """

    state: CommandState
    arguments: list[str]
    environ: dict[str, str]
    builds: Mapping[str, NewestBuild] = MappingProxyType({})
    changes: Changes = NO_CHANGES
    refused: Collection[str] = ()
    is_idle: bool = False
    wheels: BuiltWheels | None = None

    @property
    def bounds(self) -> list[str]:
        """Requirements that hold uv back from other versions."""
        return [
            *bounds_of(self.builds),
            *self.changes.pins,
            *renewed_builds(self.state.context),
        ]

    def unbound(self) -> UvRun:
        """Return the same without `bounds`: what is installed stays as it is."""
        self.state.session.hold_back(None)
        arguments = _arguments(self.state, keeps_versions=False)
        return self._replace(
            arguments=arguments, builds={}, changes=NO_CHANGES, refused=frozenset(self.builds)
        )


def prepare(context: Context) -> UvRun:
    """Prepare the run of uv; its session is open from now on if uv may ask for something.

    Raises:
        UvVariantsError, ProxyError, VariantError: see `errors.USER_ERRORS`.
    """
    _warn_of_settings(context)
    check_direct_wheels(context.invocation)
    plugins = allowed_plugins(context)
    state = CommandState(context, plugins)
    try:
        if context.is_verbose and state.machine.platform is not None:
            report_platform(state.machine.platform)
        if plugins is not None and learn(state, context.requested):
            state.session.close()
            state = CommandState(context, plugins)  # for a machine of which the plugins told more
        try:
            check_before(context, state.choices)
        except VariantMissing as error:
            raise VariantMissing(f"{error}{state.lock_note}") from None
        if _may_have_nothing_to_do(state):
            arguments = _arguments(state, with_outdated(state))
            # No reinstallation was added to those that the check has.
            if len(arguments) == len(context.options.uv_arguments) and context.check.passes():
                preferences = context.preferences
                is_idle = preferences.use_variants and not preferences.forced
                environ = variables_without_session(state)
                return UvRun(state, arguments, environ, is_idle=is_idle)
        context.check.close()
        state.session.open()
        if context.lock.text is None or context.invocation.command not in _MAY_ASK_NOTHING:
            state.session.start()
        environ = uv_variables(state)
        environ |= link_variables(context.invocation, context.place, context.local_links)
        changes = with_outdated(state, changes_of(state))
        if context.scope is not Scope.PROJECT:
            state.session.keep(staying(state, changes))
        wheels = BuiltWheels(state)
        rebuilt = wheels.settle()
        if context.invocation.command in (*INSTALLS, *INSTALLS_TOO):
            changes = changes._replace(replaced=(*changes.replaced, *rebuilt))
        if context.asks_offline:
            check_cache(state, state.uv_cache, changes.replaced)
        builds = wanted_builds(state, changes)
        state.session.hold_back(in_order(state, changes))
        bounds = bound_options(state, builds, changes.pins)
        arguments = _arguments(state, changes, bounds)
        read_requirements(context, state.installed)
        for name in changes.replaced:
            _logger.debug("Having %s reinstalled: another build fits better", name)
        _logger.debug("Running uv with: %s", " ".join(arguments))
        if not context.is_quiet:
            for line in changes.before:
                warn(line)
        return UvRun(state, arguments, environ, builds, changes, wheels=wheels)
    except BaseException:
        context.check.close()
        state.session.close()
        raise


def _may_have_nothing_to_do(state: CommandState) -> bool:
    """Return whether the command is ``sync --frozen`` without settings that have to be checked."""
    context = state.context
    preferences = context.preferences
    given = context.options.variants or preferences.platform_file or preferences.catalog
    if given or state.plugins is not None or context.local_links or context.is_verbose:
        return False
    is_frozen = context.invocation.has("frozen") or context.place.is_on("UV_FROZEN")
    return context.invocation.command == ("sync",) and is_frozen and context.lock.text is not None


def learn(state: CommandState, projects: Iterable[str]) -> bool:
    """Run the plugins that *projects* want; return whether one of them is new.

    Raises:
        PluginFailed: one of them fails.
    """
    if state.plugins is None:
        return False
    names, choices = list(projects), Choices(state.session)
    choices.ask(names)
    return state.plugins.learn(
        WantedProvider(namespace, provider.requires, provider.plugin_api)
        for name in names
        for choice in choices.of(name).values()
        for namespace, provider in choice.providers.items()
    )


def learn_afterwards(state: CommandState) -> None:
    """Run the plugins that dependencies want, which were not known before uv ran.

    A warning says that the next command uses their answers.

    Raises:
        PluginFailed: one of them fails.
    """
    if state.plugins is None:
        return
    context, before = state.context, state.machine.key
    if not learn(state, state.projects_now()):
        return
    if machine_key(context, state.plugins, context.lock_machine).key != before:
        is_locked = context.scope is Scope.PROJECT
        again = "lock with uv-variants --variant-switch lock" if is_locked else "run it again"
        warn(
            "dependencies need provider plugins that ran for the first time in this "
            f"command: {again} to use their variants"
        )


def _arguments(
    state: CommandState,
    changes: Changes = NO_CHANGES,
    bounds: Sequence[str] = (),
    *,
    keeps_versions: bool = True,
) -> list[str]:
    """Return the user's arguments, and what has to be added to them."""
    context, invocation = state.context, state.context.invocation
    builds = renewed_builds(context)
    if not keeps_versions:
        builds = [text.partition("==")[0] for text in builds]
    added = [*added_options(context, changes), *_locks_anew(state, builds), *bounds]
    names = upgraded(context)
    if changes.held and (names is None or not changes.held.isdisjoint(names)):
        # What is installed does not count where it is upgraded. So all but what stays is.
        names = (state.installed.keys() if names is None else {*names}) - changes.held
        added += [part for name in sorted(names) for part in ("--upgrade-package", name)]
        invocation = without_upgrades(invocation)
    links, more = link_options(invocation, context.place, context.local_links)
    values = {**cache_options(state, invocation), **links}
    return invocation.rewritten(values, [*added, *more])


def cache_options(state: CommandState, invocation: Invocation) -> dict[int, str]:
    """Return other values for ``--cache-dir``: it outranks the variable, and can be given once."""
    given = invocation.given
    return {item.start: str(state.uv_cache) for item in given if item.name == "cache-dir"}


def added_options(context: Context, changes: Changes) -> list[str]:
    """Return the options with which uv replaces variants that it would keep."""
    if context.invocation.command == ("tool", "run"):
        # uv replaces nothing in the environment of a tool then, but it can use another one.
        added = ["--isolated"] if changes.replaced else []
    else:
        added = [part for name in changes.replaced for part in ("--reinstall-package", name)]
    return [*changes.along, *added]


_IN_NO_LOCK = "uv-variants-locks-anew"
"""A project that is in no lock: uv resolves again, and upgrades nothing."""


def renewed_builds(context: Context) -> list[str]:
    """Return the builds of a lock that are chosen anew, as requirements of their release.

    The local part of a version names a build, which another one may replace: uv compares versions
    only, and would take the newest one in place of a build that is not shown any more.
    """
    lock, names = context.lock, upgraded(context)
    if lock.path is None or context.is_frozen or names is None:
        return []
    found = []
    for name, versions in lock.versions.items():
        publics = {version.partition("+")[0] for version in versions}
        if len(publics) > 1 or not (context.renewed is None or name in context.renewed):
            continue
        if any("+" in each for each in versions) or context.entry_of(name) is not None:
            found.append(f"{name}=={publics.pop()}")
    return [text for text in found if text.partition("==")[0] not in names]


def _locks_anew(state: CommandState, builds: Sequence[str]) -> list[str]:
    """Return the options with which uv resolves a lock again that it takes for valid."""
    context = state.context
    lock, given = context.lock, context.invocation
    if (
        lock.path is None
        or not lock.versions
        or context.is_frozen
        or context.renewed == frozenset()
    ):
        return []
    if context.is_checked and state.is_locked_for:
        return []
    is_resolved = given.has("upgrade", "U") or given.values("upgrade-package")
    texts = builds or ([] if is_resolved else [_IN_NO_LOCK])
    return [part for text in texts for part in ("--upgrade-package", text)]


def _warn_of_settings(context: Context) -> None:
    """Print a warning if a setting of uv's sends its requests elsewhere."""
    scalars = context.indexes.configuration.scalars
    for name in PROXIES:
        if scalars.get(name):
            variable = name.upper().replace("-", "_")
            warn(
                f"variant wheels are ignored: uv's setting {name!r} in a file outranks the proxy "
                f"of this command: set the variable {variable} in its place"
            )
            return


def run(
    uv: str,
    invocation: Invocation,
    scope: Scope,
    options: Options,
    environ: Mapping[str, str],
    check: Check,
) -> int:
    """Run uv with wheel variants; return the exit code.

    Args:
        uv: path of uv.
        invocation: uv's command line.
        scope: what it works on.
        options: our own options.
        environ: environment variables of the user.
        check: whether the command changes nothing; ended here.

    Raises:
        UvVariantsError, ProxyError, VariantError: see `errors.USER_ERRORS`.
    """
    if invocation.has("v", "verbose"):
        wheel_selection.log_decisions("uv-variants")
    with (
        contextlib.closing(check),
        writable_cache(safe_files.cache_directory(environ, "proxy")) as cache,
    ):
        context = Context.of(uv, invocation, scope, options, environ, cache, check)
        if context.preferences.coherent:
            warn(
                "--variant-coherent has no effect with uv, which asks for one project "
                "at a time; name the variants with --variant NAME=LABEL"
            )
        if scope is Scope.PROJECT and (code := run_accelerated(context)) is not None:
            return code
        if context.lock.problem:
            warn(f"{context.lock.problem}: the variants of the lock are not known")
        if not _has_to_do_with_variants(context):
            _logger.debug("Running uv alone: there are no variants to choose from")
            check.close()
            return become_uv([uv, *options.uv_arguments], environ)
        return end_as(_run(context))


@contextmanager
def writable_cache(directory: Path) -> Iterator[Path]:
    """Yield *directory*, or with a warning a temporary one.

    That is if it cannot be written, or if other users could write it: nothing in it is opened then.
    """
    problem = _problem(directory)
    if problem is None:
        yield directory
        return
    warn(
        f"{directory}: the cache cannot be used ({problem}): using a temporary one; "
        "set VARIANTS_CACHE_DIR to a writable directory"
    )
    temporary = PrivateFolder()
    try:
        yield temporary.path
    finally:
        temporary.remove()


def _problem(directory: Path) -> str | None:
    """Return why *directory* cannot be used, None if it can."""
    try:
        safe_files.make_private(directory)
    except NotPrivate as error:
        return str(error)
    except OSError as error:
        return error.strerror or str(error)
    return None if os.access(directory, os.W_OK | os.X_OK) else "permission denied"


def _has_to_do_with_variants(context: Context) -> bool:
    """Return whether there may be variants; with ``--no-variants`` only if they are there."""
    return bool(
        context.preferences.use_variants
        or context.lock.wheels
        or renewed_builds(context)
        or installed_variants(context.environments)
    )


def _run(context: Context) -> int:
    try:
        prepared = prepare(context)
    except ProxyFailed as error:
        return _without_variants(context, str(error), error)
    except USER_ERRORS:
        raise
    except Exception as error:
        # A bug here must not stop uv, unless the command needs variants.
        fault = f"an internal error in uv-variants: {type(error).__name__}: {error}"
        return _without_variants(context, fault, error)
    try:
        if any("pylock" in text for text in context.invocation.arguments):
            from ._exports import group_options

            added = group_options(context, prepared.state.machine.platform, warn)
            prepared = prepared._replace(arguments=[*prepared.arguments, *added])
        if prepared.is_idle:
            after_lock(prepared.state)
            tell_of_builds(prepared.state, ())
            prepared.state.session.close()
            return become_uv([context.uv, *prepared.arguments], prepared.environ)
        _install_first(context, prepared)
        code, planned = _run_uv(context, prepared)
        required = required_builds(prepared.state)
        if code == 0 and required:
            prepared = _brought_back(context, prepared, required, planned)
        else:
            prepared = prepared._replace(builds={**required, **prepared.builds})
        if code == 1 and prepared.bounds and not context.is_offline:  # no solution
            bounds = ", ".join(prepared.bounds)
            if may_run_again(context):
                wanted = f"{bounds}, for a build that uses the accelerator"
                warn(f"uv found no solution with {wanted}; running it without")
                prepared = prepared.unbound()
                code, planned = _run_uv(context, prepared)
            else:
                how = "--variant-before-version :none: runs it without"
                warn(f"uv ran with {bounds}, for a build that uses the accelerator; {how}")
        complete(prepared.state)
        if code == 0 and (contested := tidy(context, prepared.state.installed, prepared.environ)):
            prepared, contested = _agreed(context, prepared, contested)
            if not context.is_quiet:
                warn_of(contested, installed(context.environments))
        if prepared.wheels is not None:
            prepared.wheels.note()
        if code >= 0:  # after a signal the user does not wait for explanations
            _report(context, prepared, code, planned)
        return code
    finally:
        prepared.state.session.close()


def _install_first(context: Context, prepared: UvRun) -> None:
    """Have the environment in order before ``uv run`` starts a program, if builds are to change."""
    state, invocation = prepared.state, parse(prepared.arguments)
    if invocation.command != ("run",) or not context.environments or context.lock.text is None:
        return
    if invocation.has(*STARTED_BY_UV) or not replaces_builds(state, prepared.changes.replaced):
        return
    words = [*prepared.arguments[: invocation.end], "--", "python", "-c", ""]
    if run_uv([context.uv, *words], prepared.environ) == 0:
        tidy(context, state.installed, prepared.environ)


def _brought_back(
    context: Context, prepared: UvRun, builds: Mapping[str, NewestBuild], planned: Planned
) -> UvRun:
    """Have uv upgrade what it took an older release of, for the sake of *builds* of others.

    It was shown newer releases of these as yanked, and what requires one was no solution. Now they
    are not yanked, and the builds stay where nothing requires another release.
    """
    state, invocation = prepared.state, context.invocation
    state.session.hold_back(None)
    before = now = state.versions_now()
    if not invocation.has("dry-run", "check", "locked"):
        bounds = bound_options(state, prepared.builds, prepared.changes.pins)
        for name in newly_taken(state, builds):
            bounds += ["--upgrade-package", name]
        changes = prepared.changes._replace(replaced=(), held=prepared.changes.held | {*builds})
        arguments = _arguments(state, changes, [*bounds, "--quiet"])
        run_uv([context.uv, *arguments], prepared.environ)
        now = state.versions_now()
    found = {name: max(now[name]) for name in sorted(now) if now[name] != before.get(name)}
    if found:
        wanted = f"{', '.join(bounds_of(builds))}, for a build that uses the accelerator"
        taken = ", ".join(f"{name} {version}" for name, version in found.items())
        warn(f"uv took older releases with {wanted}; upgraded: {taken}")
    there = {*now, *dict(planned)}.difference(found)
    left = {name: build for name, build in builds.items() if name in there}
    return prepared._replace(builds={**left, **prepared.builds}, refused=frozenset(found))


def _agreed(
    context: Context, prepared: UvRun, contested: list[OwnershipProblem]
) -> tuple[UvRun, list[OwnershipProblem]]:
    """Have projects agree that require packages with the same file, if variants of them do.

    Return what uv was run with, and the files that two projects still need.
    """
    if context.invocation.command != ("pip", "install"):
        return prepared, contested  # a lock decides, or the files of `pip sync`
    state, before = prepared.state, installed(context.environments)
    owners = [owner.partition("==")[0] for owner in contested[0].owners]
    found = agreement(state, before, owners)
    if found is None:
        return prepared, contested
    if not context.is_quiet:
        warn(f"{found.project}: variant {found.label}, for the libraries that {found.other} needs")
    state.session.keep({found.project: {str(found.release): (found.label,)}})
    pin = f"{found.project}=={found.release}"
    bounds = bound_options(state, prepared.builds, [*prepared.changes.pins, pin])
    bounds += ["--refresh-package", found.project]
    names = dict.fromkeys((*prepared.changes.replaced, found.project))
    changes = prepared.changes._replace(replaced=tuple(names))
    read_requirements(context, before)
    again = prepared._replace(arguments=_arguments(state, changes, bounds))
    code, _ = _run_uv(context, again)
    return prepared, contested if code else tidy(context, before, again.environ, removes=True)


def _without_variants(context: Context, why: str, error: Exception) -> int:
    """Run plain uv, unless the command may have variants at the next try, or needs them.

    Raises:
        SourcesMissing: it may.
        ProxyFailed: it does.
    """
    if isinstance(error, (ProxyFailed, OSError)) and not context.is_lenient:
        raise SourcesMissing(f"{why}; {ALLOWED} goes on without variants") from None
    if context.preferences.forced or context.lock.wheels:
        raise ProxyFailed(why) from error
    warn(f"variant wheels are ignored because of {why}")
    return become_uv([context.uv, *context.options.uv_arguments], context.place.environ)


def _run_uv(context: Context, prepared: UvRun) -> tuple[int, Planned]:
    """Run uv; complete what it exports. Return its exit code, and what a dry run has planned."""
    command, environ = program_run(context, prepared.arguments, prepared.environ)
    state = prepared.state
    if is_planned(context):
        return run_and_read(command, environ)
    if context.invocation.command in EXPORTING:
        from ._exports import ExportCommand, ExportedFiles

        export = ExportCommand.of(context.invocation, context.place, context.lock.path)
        if export is not None:
            files = ExportedFiles(
                state.choices,
                context.answered_indexes,
                warn,
                has_catalog=context.preferences.catalog is not None,
                is_universal=context.invocation.has("universal"),
            )

            def check() -> None:
                noted = state.session.noted_projects()
                check_sources(context, state.choices, noted, lambda: "nothing is written")

            return export.run(command, environ, files, check), ()
    if context.invocation.command != ("run",) or context.lock.path is None:
        return run_uv(command, environ), ()
    with completed_meanwhile(state):
        return run_uv(command, environ), ()


def _report(context: Context, prepared: UvRun, code: int, planned: Planned) -> None:
    """Print what there is to know after uv ended with *code*; a dry run has *planned* something.

    Raises:
        ProxyFailed: the session could not answer.
        PluginFailed: a plugin that the next command needs fails.
        VariantMissing: uv did not install what was asked for by name, or offline anew.
        SourcesMissing, TwoNames: what uv wrote or installed is not to be used.
    """
    state, session = prepared.state, prepared.state.session
    failure = session.failure()
    if failure is not None:
        raise failure
    if code == 0:
        if planned:  # a dry run names everything that would be installed
            state.choices.expect_none(session.plain_projects())
            if context.lock.text is not None:  # else everything was asked for
                has_catalog = context.preferences.catalog is not None
                names = {*session.asked(), *context.lock.projects}
                planned = [each for each in planned
                           if each[0] in names or (has_catalog and "+" in each[1])]  # fmt: skip
        noted = list(session.noted_projects())
        check_lock(state, noted)
        after_success(state, noted, planned, prepared.builds, prepared.refused)
        if not context.is_quiet:
            for line in prepared.changes.after:
                warn(line)
            if context.environments and not context.invocation.has("dry-run"):
                warn_of_mismatches(context, state.installed)
        check_after(state)
        check_installed(state)
        after_lock(state)
        if context.scope is Scope.PROJECT:
            planned = ()  # which files they are is in the lock
        tell_of_builds(state, session.asked(), planned)
        learn_afterwards(state)
        return
    refusals = session.refusals()
    passing = session.passing()
    for refusal in refusals:
        if refusal not in passing:
            warn(refusal)
    check_passing(session)  # the reasons are another matter
    after_failure(state, [*context.requested, *session.noted_projects()])
    failures = map(str, state.plugins.failures.values()) if state.plugins else ()
    for problem in dict.fromkeys(failures):
        if problem not in refusals:
            warn(problem)
    if context.asks_offline and may_run_again(context):
        raise VariantMissing(
            f"uv has not all that is chosen in its cache: run it again without {context.offline_by}"
        )
