"""What a command asks the daemon for, and what it gets: one session per uv command."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pep_variants.errors import PluginFailed
from uv_variants.indexes import UserIndex

if TYPE_CHECKING:
    pass

SESSION_VARIABLES = (
    *("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"),
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

    def tree(self) -> dict[str, Any]:
        """Return it as a tree for JSON; equal settings have equal trees."""
        return {
            "indexes": [asdict(index) for index in self.indexes],
            "key": self.key,
            "cache": str(self.cache),
            "projects": {name: sorted(names) for name, names in sorted(self.projects.items())},
            "platforms": {name: str(path) for name, path in sorted(self.platforms.items())},
            "locked": {
                project: {version: list(labels) for version, labels in sorted(versions.items())}
                for project, versions in sorted(self.locked.items())
            },
            "floating": self.floating,
            "insecure_hosts": sorted(self.insecure_hosts),
            "keyring": self.keyring,
            "failures": {
                name: [error.plugin, error.cause, error.output]
                for name, error in sorted(self.failures.items())
            },
            "requested": sorted(self.requested),
            "environ": dict(sorted(self.environ.items())),
            "hashes": self.hashes,
            "catalog": self.catalog,
            "catalog_mirrors": dict(sorted(self.catalog_mirrors.items())),
            "pinned": sorted(self.pinned),
            "given_hashes": {
                name: sorted(every) for name, every in sorted(self.given_hashes.items())
            },
            "system_certs": self.system_certs,
        }

    @classmethod
    def from_tree(cls, tree: Mapping[str, Any]) -> SessionSettings:
        """Return the settings in *tree*, which the method `tree` made.

        Raises:
            KeyError, TypeError, ValueError, AttributeError: it is no such tree.
        """
        return cls(
            indexes=tuple(UserIndex(**item) for item in tree["indexes"]),
            key=str(tree["key"]),
            cache=Path(tree["cache"]),
            projects={name: frozenset(names) for name, names in tree["projects"].items()},
            platforms={name: Path(path) for name, path in tree["platforms"].items()},
            locked={
                project: {version: tuple(labels) for version, labels in versions.items()}
                for project, versions in tree["locked"].items()
            },
            floating=bool(tree["floating"]),
            insecure_hosts=tuple(tree["insecure_hosts"]),
            keyring=bool(tree["keyring"]),
            failures={name: PluginFailed(*parts) for name, parts in tree["failures"].items()},
            requested=tuple(tree["requested"]),
            environ=dict(tree["environ"]),
            hashes=bool(tree["hashes"]),
            catalog=None if tree["catalog"] is None else str(tree["catalog"]),
            catalog_mirrors=dict(tree["catalog_mirrors"]),
            pinned=tuple(tree["pinned"]),
            given_hashes={name: frozenset(every) for name, every in tree["given_hashes"].items()},
            system_certs=bool(tree["system_certs"]),
        )

    @property
    def digest(self) -> str:
        """Hash of all settings: sessions with the same one get the same answers."""
        text = json.dumps(self.tree(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


def network_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return those of the user's variables that a session has."""
    return {name: environ[name] for name in SESSION_VARIABLES if environ.get(name)}
