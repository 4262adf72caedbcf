"""The settings of a command's session: indexes, machine, and what a lock keeps."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple

from pep_variants.errors import redacted
from pep_variants.limits import MIB
from variants_index import http
from variants_index.http import Credentials, InvalidProxy
from variants_proxy.settings import ClientSettings, Limits, Settings, Upstream

from ._command_line import EXPORTING, Scope
from ._context import ALL_HASHES
from ._indexes import PROXY_VARIABLES
from ._named_projects import pinned_versions
from ._uv_lock import Lock

if TYPE_CHECKING:
    from pep_variants.errors import PluginFailed

    from ._context import Context
    from ._indexes import UserIndex

_logger = logging.getLogger(__name__)

_NETWORK_VARIABLES = (
    *PROXY_VARIABLES,
    *("NO_PROXY", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR", "SSL_CLIENT_CERT", "NETRC"),
    *("UV_NATIVE_TLS", "UV_SYSTEM_CERTS", "HOME", "USERPROFILE", "PATH"),
)
"""Variables that say how the user's uv reaches the network; a session has no others."""


class SessionSettings(NamedTuple):
    """Settings of the session of one uv command.

    Attributes:
        proxy: settings of the service, whose upstreams are the indexes.
        indexes: of the user, in the order in which uv asks them.
        client: what the service chooses for; labels that a lock file has stay.
        projects: for explicit indexes, by `UserIndex.proxy_name`, the projects (normalized names)
            that they are used for.
        forced: projects (normalized names) whose variant the user names.
        system_certs: whether the command line or a file asks for the system's certificates.
        python: oldest version of Python that is installed for, empty for an unknown one.
    """

    proxy: Settings
    indexes: tuple[UserIndex, ...]
    client: ClientSettings
    projects: Mapping[str, frozenset[str]] = MappingProxyType({})
    forced: frozenset[str] = frozenset()
    system_certs: bool = False
    python: str = ""

    def may_keep(self, project: str) -> bool:
        """Return whether a page without variants stays as it is while its index does not change it.

        The catalogue, find-links and variants that are asked for by name change it.
        """
        is_simple = all(each.kind == "simple" for each in self.proxy.upstreams)
        return is_simple and self.proxy.catalog is None and project not in self.forced


def session_settings(
    context: Context,
    key: str,
    platforms: Mapping[str, Path],
    failures: Mapping[str, PluginFailed],
) -> SessionSettings:
    """Return the settings of the session of a command.

    Args:
        context: the command.
        key: platform key of the machine.
        platforms: platform files that keys name.
        failures: of plugins, by `provider_id`.

    Raises:
        ProxyError, VariantError: a setting is not valid.
    """
    indexes = context.answered_indexes
    for index in indexes.values():
        _logger.debug("Answering for the index %s", redacted(index.url))
    for name in sorted(context.lock.projects if context.lock.path else ()):
        _logger.debug("The lock has %s: its variants stay unless they are renewed", name)
    _logger.debug("Choosing for the machine with the platform key %s", key)
    has_catalog = context.catalog is not None
    has_links = any(index.links for index in indexes.values())
    proxy = Settings(
        tuple(map(upstream_of, indexes.values())),
        context.cache,
        platforms,
        limits=_limits(context),
        fresh_seconds=10.0**9,  # each page is asked for once, or when uv asks for a new one
        insecure_hosts=frozenset(context.insecure_hosts),
        keyring=context.keyring,
        environ=network_variables(context.place.environ),
        failures=failures,
        # The projects for which uv is going to ask, as far as known.
        requested=frozenset((*context.requested, *context.lock.versions) if has_links else ()),
        catalog=context.catalog,
        catalog_mirrors=context.preferences.catalog_mirrors if has_catalog else {},
        pinned=frozenset(context.pinned if has_catalog else ()),
        hashes=context.hashes,
        offline=context.is_offline,
        serves_old=context.is_lenient,
        allow_missing_sources=context.is_lenient,
        versions=context.asked_versions(),
    )
    return SessionSettings(
        proxy,
        tuple(indexes.values()),
        ClientSettings(
            key,
            _locked(context),
            context.exact if has_catalog else {},
            hashes=context.scope is Scope.PROJECT or context.invocation.command in EXPORTING,
            shown_hashes=_shown_hashes(context),
        ),
        projects={
            name: context.indexes.projects.get(name, frozenset())
            for name, index in indexes.items()
            if index.explicit
        },
        forced=frozenset(context.preferences.forced),
        system_certs=context.invocation.has("native-tls", "system-certs"),
        python=context.python,
    )


def upstream_of(index: UserIndex) -> Upstream:
    """Return an index of the user as an upstream of the proxy.

    Raises:
        InvalidSetting: its URL is not valid.
    """
    credentials = None
    if index.username or index.password:
        credentials = Credentials(index.username, index.password)
    return Upstream(
        index.proxy_name,
        index.url,
        "find-links" if index.links else "simple",
        credentials,
        explicit=index.explicit,
    )


def _limits(context: Context) -> Limits:
    # As uv, which asks again itself for pages, and is not to wait for ours in vain. Any page has
    # room in memory: the report asks for it once more.
    limits = Limits(retries=3, patient=False, page_retries=0, kept_page_bytes=128 * MIB)
    if not context.place.is_on(ALL_HASHES):
        return limits
    return replace(limits, hashed=sys.maxsize, hashed_bytes=sys.maxsize)


def _shown_hashes(context: Context) -> Literal["served", "none", "published"]:
    if context.scope is not Scope.PROJECT:
        return "published" if context.invocation.command in EXPORTING else "served"
    return "served" if context.is_checked else "none"


def _locked(context: Context) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return the wheels that the lock keeps, and none for versions that requirements pin.

    The proxy chooses from these versions as well, however old they are.
    """
    kept = context.kept
    if context.scope is Scope.BUILD:  # it will be beside what the project has locked
        source = next(iter(context.invocation.operands), context.place.project)
        project = replace(context.place, project=context.place.cwd / source)
        kept = Lock.read(project.lock_path).names
    locked = {name: {**versions} for name, versions in kept.items()}
    if context.asks_offline:  # what they would be, uv does not ask
        locked = {name: dict.fromkeys(versions, ()) for name, versions in locked.items()}
    for name, pins in pinned_versions(context.texts).items():
        for version in pins:
            locked.setdefault(name, {}).setdefault(version, ())
    return locked


def network_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return those of the user's variables that a session has; uv ignores what is no proxy."""
    return {
        name: environ[name]
        for name in _NETWORK_VARIABLES
        if environ.get(name) and (name not in PROXY_VARIABLES or _may_be_proxy(name, environ[name]))
    }


def _may_be_proxy(name: str, value: str) -> bool:
    try:
        http.read(value, name)
    except InvalidProxy:
        return value.startswith("socks")  # one that uv does not know either is its error
    return True
