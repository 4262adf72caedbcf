"""Preparing a uv command: its indexes, the platform key, and the proxy that serves both."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from variants_proxy.urls import index_url, links_url

from .command_scope import Scope
from .daemon.address import RESERVED_URL, proxy_variables
from .daemon.proxy_messages import settings_message
from .installed_state import InstalledState, lock_text
from .lockfile import HERE, locked_versions
from .own_options import FLOATING
from .plan import Plan, make_plan
from .platform_key import PlatformKey, platform_key
from .proxy_client import Choices, ProxyClient
from .report import report_platform, warn
from .uv_directories import cache_directory

if TYPE_CHECKING:
    from .context import Context
    from .daemon.connection import Connection, ProxyChoice
    from .indexes import UserIndex
    from .provider_plugins import Plugins


@dataclass(frozen=True)
class PreparedRun:
    """All that is needed to run uv.

    Attributes:
        proxy: that serves the indexes.
        plan: the indexes.
        state: of environment and lock file before uv runs.
        arguments, environ: of uv.
        plugins: that the user allowed, None if there are none to run.
    """

    proxy: Connection
    plan: Plan
    state: InstalledState
    arguments: list[str]
    environ: dict[str, str]
    plugins: Plugins | None


def prepare(context: Context, proxies: ProxyChoice, locked: str | None) -> PreparedRun:
    """Return what uv is run with; its proxy serves from now on.

    Args:
        context: the command.
        proxies: chooses the proxy.
        locked: platform key of the lock file, None without one.
    """
    place = context.place
    plan = make_plan(context.invocation, context.scope, place)
    plugins = _plugins(context, plan)
    key, machine = proxied_key(context, plugins, locked)
    if context.is_verbose and machine is not None and machine.platform is not None:
        report_platform(machine.platform)
    proxy = proxies.connect(_settings(context, plan, machine, plugins), plan.indexes)
    client = ProxyClient(proxy.port, proxy.token, key, plan.order, plan.projects)
    if plugins is not None and _learn(plugins, client, context.requested):
        key, machine = proxied_key(context, plugins, locked)
        client = replace(client, key=key)
    state = InstalledState.of(context, Choices(client), machine.key if machine else key)

    def url(index: UserIndex) -> str:
        path = (links_url if index.links else index_url)(key, index.proxy_name)
        return RESERVED_URL + path

    arguments, variables = plan.rewritten(context.invocation, url, state.reinstall_options())
    environ = {**place.environ, **variables}
    urls = (index.url for index in plan.indexes.values())
    environ.update(proxy_variables(environ, proxy.port, proxy.token, urls))
    if key == HERE and machine is not None:
        environ["UV_CACHE_DIR"] = str(_floating_cache(context, plan, machine))
    return PreparedRun(proxy, plan, state, arguments, environ, plugins)


def proxied_key(
    context: Context, plugins: Plugins | None, locked: str | None
) -> tuple[str, PlatformKey | None]:
    """Return the key in the URLs that uv gets, and the machine; None for that of the lock file."""
    options = context.options
    if locked not in (None, HERE) and options.lock_mode is None and not options.variants:
        return locked, None
    machine = platform_key(
        context.preferences,
        context.cache,
        python_platform=context.invocation.last("python-platform"),
        answers=plugins.answers if plugins is not None else None,
    )
    floating = context.scope is Scope.PROJECT and (
        options.lock_mode == FLOATING or (options.lock_mode is None and locked == HERE)
    )
    return (HERE if floating else machine.key), machine


def learn_afterwards(context: Context, prepared: PreparedRun) -> None:
    """Run the plugins that dependencies want, which were not known before uv ran.

    A warning says that the next command uses their answers.

    Raises:
        PluginFailed: one of them fails.
    """
    plugins, client = prepared.plugins, prepared.state.choices.client
    if plugins is None or not _learn(plugins, client, prepared.state.projects_now()):
        return
    key, _ = proxied_key(context, plugins, None)
    if key not in (client.key, HERE):
        again = " with --variant-lock pinned" if context.scope is Scope.PROJECT else ""
        warn(
            "dependencies need provider plugins that ran for the first time in this "
            f"command: run it again{again} to use their variants"
        )


def _learn(plugins: Plugins, client: ProxyClient, projects: Iterable[str]) -> bool:
    """Run the plugins that *projects* want; return whether one of them is new.

    Raises:
        PluginFailed: one of them fails.
    """
    if client.key == HERE:
        return False
    from .provider_plugins import WantedProvider

    return plugins.learn(
        WantedProvider.read(namespace, tree)
        for versions in client.choices(projects).values()
        for choice in versions.values()
        for namespace, tree in choice.providers.items()
    )


def _plugins(context: Context, plan: Plan) -> Plugins | None:
    """Return the plugins that the user allowed, None if there are none to run."""
    preferences = context.preferences
    if not preferences.allow_providers or preferences.platform_file is not None:
        return None
    from .provider_plugins import Plugins

    strategy = context.invocation.last("index-strategy")
    strategy = strategy or context.place.environ.get("UV_INDEX_STRATEGY")
    return Plugins(context.cache, preferences, plan, strategy)


def _settings(
    context: Context, plan: Plan, machine: PlatformKey | None, plugins: Plugins | None
) -> dict[str, Any]:
    """Return the settings of the proxy for this command."""
    scalars, environ = plan.configuration.scalars, context.place.environ
    keyring = (
        context.invocation.last("keyring-provider")
        or environ.get("UV_KEYRING_PROVIDER")
        or scalars.get("keyring-provider")
    )
    insecure = context.invocation.values("allow-insecure-host")
    insecure += environ.get("UV_INSECURE_HOST", "").split()
    configured = scalars.get("allow-insecure-host")
    insecure += configured if isinstance(configured, list) else []
    is_project = context.scope is Scope.PROJECT
    has_links = any(index.links for index in plan.indexes.values())
    return settings_message(
        plan.indexes.values(),
        context.cache,
        projects=plan.projects,
        platforms=machine.platforms if machine else None,
        floating={HERE: machine.key} if machine and is_project else None,
        insecure_hosts=insecure,
        keyring=keyring == "subprocess",
        failures=plugins.failures if plugins is not None else None,
        requested=_expected_projects(context) if has_links else (),
    )


def _expected_projects(context: Context) -> list[str]:
    """Return the projects for which uv is going to ask indexes, as far as known before it runs."""
    return sorted({*context.requested, *locked_versions(lock_text(context.lock) or "")})


def _floating_cache(context: Context, plan: Plan, machine: PlatformKey) -> Path:
    """Return a cache directory of uv's for this machine's variants under a floating name.

    uv caches wheels by index and filename, and under a floating name both are the same for every
    variant.
    """
    directory = cache_directory(
        context.place.environ,
        context.invocation.last("cache-dir"),
        plan.configuration.scalars.get("cache-dir"),
        context.place.cwd,
    ).absolute()
    return directory / "variants" / hashlib.sha256(machine.key.encode()).hexdigest()[:16]
