"""What one uv command needs of its session: indexes, machine, and what a lock keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pep_variants.internal import PluginFailed

from .indexes import UserIndex

_PROXIES = (
    *("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"),
    *("ALL_PROXY", "all_proxy"),
)
_NETWORK_VARIABLES = (
    *_PROXIES,
    *("NO_PROXY", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR", "SSL_CLIENT_CERT", "NETRC"),
    *("UV_NATIVE_TLS", "UV_SYSTEM_CERTS", "HOME", "USERPROFILE", "PATH"),
)
"""Variables that say how the user's uv reaches the network; a session has no others."""


@dataclass(frozen=True)
class SessionSettings:
    """What one uv command needs.

    Attributes:
        indexes: of the user, in the order in which uv asks them.
        projects: for explicit indexes, by `UserIndex.proxy_name`, the projects (normalized names)
            that they are used for.
        key: platform key of the machine, or name of one of `platforms`.
        platforms: platform files by name.
        locked: labels that an existing lock file has, by project and version: they stay.
        floating: whether variants are listed without label, see ``--variant-lock``.
        cache: directory of our cache.
        insecure_hosts: hosts whose certificates are not verified.
        keyring: whether the keyring is asked for credentials.
        failures: of plugins that the user allowed, by `provider_id`.
        requested: projects (normalized names) that uv is going to ask for, as far as known.
        environ: the user's variables for the network, see `network_variables`.
        hashes: whether pages need hashes of all wheels, for a lock file.
        catalog: of existing builds: a name, path or URL, None for none.
        catalog_mirrors: beginnings of its URLs, and what replaces them.
        pinned: projects (normalized names) whose index the user gives, which the catalogue leaves
            alone.
        given_hashes: SHA-256 of all files that may be taken of a project, by normalized name.
        system_certs: whether the command line or a file asks for the system's certificates.
    """

    indexes: tuple[UserIndex, ...]
    key: str
    cache: Path
    projects: Mapping[str, frozenset[str]] = field(default_factory=dict)
    platforms: Mapping[str, Path] = field(default_factory=dict)
    locked: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    floating: bool = False
    insecure_hosts: tuple[str, ...] = ()
    keyring: bool = False
    failures: Mapping[str, PluginFailed] = field(default_factory=dict)
    requested: tuple[str, ...] = ()
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    hashes: bool = True
    catalog: str | None = None
    catalog_mirrors: Mapping[str, str] = field(default_factory=dict)
    pinned: tuple[str, ...] = ()
    given_hashes: Mapping[str, frozenset[str]] = field(default_factory=dict)
    system_certs: bool = False


def network_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return those of the user's variables that a session has; uv ignores what is no proxy."""
    return {
        name: environ[name]
        for name in _NETWORK_VARIABLES
        if environ.get(name) and (name not in _PROXIES or _may_be_proxy(name, environ[name]))
    }


def _may_be_proxy(name: str, value: str) -> bool:
    from variants_index.internal import InvalidProxy, read

    try:
        read(value, name)
    except InvalidProxy:
        return value.startswith("socks")  # one that uv does not know either is its error
    return True
