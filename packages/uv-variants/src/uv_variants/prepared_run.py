"""Preparing a uv command: its session, its variables, and what it adds to them."""

from __future__ import annotations

import subprocess
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from .checks import check_before, check_direct_wheels
from .command_scope import Scope
from .configuration import PROXIES
from .errors import VariantMissing
from .installed_state import FittingMarks, InstalledState
from .invocation import parse
from .local_links import link_options, link_variables
from .proxy_client import Choices, OlderBuild, asked
from .report import report_platform, warn
from .session import Session
from .session_plan import SessionPlan
from .uv_environment import uv_variables, variables_without_session
from .version_bounds import bound_options, wanted_builds

if TYPE_CHECKING:
    from .context import Context

_MAY_ASK_NOTHING = (("run",), ("sync",), ("lock",), ("tree",), ("export",))
"""Commands that ask no index if lock file and environment are up to date."""

_INSTALLS = (("run",), ("sync",), ("add",), ("remove",), ("tool", "run"))
_INSTALLS_TOO = (("pip", "install"), ("pip", "sync"), ("tool", "install"), ("tool", "upgrade"))


@dataclass(frozen=True)
class PreparedRun:
    """All that is needed to run uv.

    Attributes:
        session: that answers uv's requests.
        plan: what the session was asked for.
        state: of environment and lock file before uv runs.
        arguments, environ: of uv.
        builds: what shall go before newer versions, by project, see `version_bounds`.
        refused: projects of which uv found no solution with these.
    """

    session: Session
    plan: SessionPlan
    state: InstalledState
    arguments: list[str]
    environ: dict[str, str]
    builds: Mapping[str, OlderBuild] = field(default_factory=dict)
    refused: Collection[str] = ()

    def unbound(self) -> PreparedRun:
        """Return the same without `builds`."""
        arguments = _arguments(self.plan, self.state)
        return replace(self, arguments=arguments, builds={}, refused=frozenset(self.builds))


def prepare(context: Context) -> PreparedRun:
    """Return what uv is run with; its session is open from now on if uv may ask for something.

    Raises:
        UvVariantsError, ProxyError, VariantError: see `errors.USER_ERRORS`.
    """
    _warn_of_settings(context)
    check_direct_wheels(context.invocation)
    plan = SessionPlan(context)
    if context.is_verbose and plan.machine.platform is not None:
        report_platform(plan.machine.platform)
    session = Session(plan.settings)
    try:
        if plan.plugins is not None and learn(plan, session, context.requested):
            plan.relearned()
            session.close()
            session = Session(plan.settings)
        choices = Choices(session)
        try:
            check_before(context, choices)
        except VariantMissing as error:
            raise VariantMissing(f"{error}{plan.lock_note}") from None
        marks = FittingMarks(context.cache / "fits", lambda: plan.machine.key, tuple(plan.indexes))
        state = InstalledState.of(context, choices, marks)
        if _may_have_nothing_to_do(plan):
            arguments = _arguments(plan, state)
            environ = variables_without_session(context, plan.uv_cache)
            if _has_nothing_to_do(context, arguments, environ):
                return PreparedRun(session, plan, state, arguments, environ)
        session.open()
        if context.lock.text is None or context.invocation.command not in _MAY_ASK_NOTHING:
            session.start()
        environ = uv_variables(context, session, plan.uv_cache)
        environ |= link_variables(context.invocation, context.place, context.local_links)
        builds = wanted_builds(plan, choices)
        arguments = _arguments(plan, state, bound_options(context, session, builds))
        return PreparedRun(session, plan, state, arguments, environ, builds)
    except BaseException:
        session.close()
        raise


def _may_have_nothing_to_do(plan: SessionPlan) -> bool:
    """Return whether the command is ``sync --frozen`` without settings that have to be checked."""
    context = plan.context
    preferences = context.preferences
    given = context.options.variants or preferences.platform_file or preferences.catalog
    if given or plan.plugins is not None or context.local_links or context.is_verbose:
        return False
    is_frozen = context.invocation.has("frozen") or context.place.is_on("UV_FROZEN")
    return context.invocation.command == ("sync",) and is_frozen and context.lock.text is not None


def _has_nothing_to_do(
    context: Context, arguments: Sequence[str], environ: Mapping[str, str]
) -> bool:
    """Return whether uv itself says that ``sync --frozen`` with these *arguments* changes nothing.

    uv only compares lock file and environment then, in a few milliseconds. An older uv, which has
    no ``--check`` for this command, ends with an error, and so does one that needs an index.
    """
    checking = parse(arguments).rewritten({}, ("--check", "--offline"))
    try:
        done = subprocess.run(
            [context.uv, *checking],
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
    except OSError:
        return False
    return done.returncode == 0


def learn(plan: SessionPlan, session: Session, projects: Iterable[str]) -> bool:
    """Run the plugins that *projects* want; return whether one of them is new.

    Raises:
        PluginFailed: one of them fails.
    """
    if plan.plugins is None:
        return False
    from .provider_plugins import WantedProvider

    return plan.plugins.learn(
        WantedProvider.read(namespace, tree)
        for versions in asked(session, projects).values()
        for choice in versions.values()
        for namespace, tree in choice.providers.items()
    )


def learn_afterwards(prepared: PreparedRun) -> None:
    """Run the plugins that dependencies want, which were not known before uv ran.

    A warning says that the next command uses their answers.

    Raises:
        PluginFailed: one of them fails.
    """
    plan, state = prepared.plan, prepared.state
    if plan.plugins is None or not learn(plan, state.choices.client, state.projects_now()):
        return
    before = plan.machine.key
    plan.relearned()
    if plan.machine.key != before:
        is_locked = plan.context.scope is Scope.PROJECT
        again = "lock with uv-variants --variant-switch lock" if is_locked else "run it again"
        warn(
            "dependencies need provider plugins that ran for the first time in this "
            f"command: {again} to use their variants"
        )


def _arguments(plan: SessionPlan, state: InstalledState, bounds: Sequence[str] = ()) -> list[str]:
    """Return the user's arguments, and what has to be added to them."""
    context, invocation = plan.context, plan.context.invocation
    links, more = link_options(invocation, context.place, context.local_links)
    values = {**cache_options(plan), **links}
    return invocation.rewritten(values, [*added_options(context, state), *more, *bounds])


def cache_options(plan: SessionPlan) -> dict[int, str]:
    """Return other values for ``--cache-dir``: it outranks the variable, and can be given once."""
    given = plan.context.invocation.given
    return {item.start: str(plan.uv_cache) for item in given if item.name == "cache-dir"}


def added_options(context: Context, state: InstalledState) -> list[str]:
    """Return the options with which uv replaces variants that it would keep."""
    invocation = context.invocation
    added = []
    if invocation.command in (*_INSTALLS, *_INSTALLS_TOO) and context.environments:
        replaced = state.replaced()
        if invocation.command == ("tool", "run"):
            # uv replaces nothing in the environment of a tool then, but it can use another one.
            added += ["--isolated"] if replaced else []
        else:
            added += [part for name in replaced for part in ("--reinstall-package", name)]
    return added + _locks_anew(context)


def _locks_anew(context: Context) -> list[str]:
    """Return the options with which uv chooses the files of a lock that it takes for valid anew.

    No version changes: uv compares versions only, and `--upgrade-package` names the present one.
    """
    lock, renewed = context.lock, context.renewed
    invocation = context.invocation
    if lock.path is None or not lock.versions or context.is_frozen or renewed == frozenset():
        return []
    if invocation.has("upgrade", "U") or invocation.values("upgrade-package"):
        return []
    names = [name for name in lock.names if renewed is None or name in renewed]
    found: list[str] = []
    needed = False
    for name in names:
        # The local part of a version names a build, which another one may replace.
        versions = {version.partition("+")[0] for version in lock.names[name]}
        if len(versions) == 1:
            is_build = any("+" in version for version in lock.names[name])
            # One is enough to have the lock resolved again, and all pages read.
            if is_build or not needed:
                found.append(f"{name}=={versions.pop()}")
            needed = True
    return [part for text in found for part in ("--upgrade-package", text)]


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
