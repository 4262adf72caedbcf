"""What goes to a proxy process on standard input, and what is read from its error output.

The settings are one line of JSON. Of the log lines those count that begin with a prefix of
`variants_proxy.log_lines`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pep_variants.errors import PluginFailed
from uv_variants.indexes import UserIndex
from variants_proxy.log_lines import HAS_NOTICES, NOT_SERVED, values_after

from .address import RESERVED_HOST

if TYPE_CHECKING:
    from variants_proxy import Settings

MOST_REFUSALS = 3
"""Most files that uv did not get, and the reason for each, that are repeated to the user."""


def settings_message(
    indexes: Iterable[UserIndex],
    cache: Path,
    *,
    projects: Mapping[str, Iterable[str]] | None = None,
    platforms: Mapping[str, Path] | None = None,
    floating: Mapping[str, str] | None = None,
    insecure_hosts: Iterable[str] = (),
    keyring: bool = False,
    failures: Mapping[str, PluginFailed] | None = None,
    requested: Iterable[str] = (),
) -> dict[str, Any]:
    """Return the settings of a proxy process as a tree for JSON.

    Those that are not listed are values of `variants_proxy.Settings` under the same name.

    Args:
        indexes: the proxy's upstreams, in order.
        cache: directory of the proxy's cache.
        projects: for explicit indexes, by name, the projects that they are used for.
    """
    return {
        "indexes": [asdict(index) for index in indexes],
        "cache": str(cache),
        "projects": {name: sorted(names) for name, names in (projects or {}).items()},
        "platforms": {name: str(path) for name, path in (platforms or {}).items()},
        "floating": dict(floating or {}),
        "insecure_hosts": list(insecure_hosts),
        "keyring": keyring,
        "failures": {
            name: (error.plugin, error.cause, error.output)
            for name, error in (failures or {}).items()
        },
        "requested": list(requested),
    }


def read_settings(message: Mapping[str, Any]) -> Settings:
    """Return the settings in *message*, which `settings_message` made.

    Raises:
        InvalidSetting: a value is not valid.
    """
    from variants_proxy import Settings

    return Settings(
        tuple(UserIndex(**item).upstream() for item in message["indexes"]),
        Path(message["cache"]),
        {name: Path(path) for name, path in message["platforms"].items()},
        message["floating"],
        hosts=(RESERVED_HOST,),
        insecure_hosts=frozenset(message["insecure_hosts"]),
        keyring=message["keyring"],
        compress=False,
        failures={name: PluginFailed(*failure) for name, failure in message["failures"].items()},
        requested=frozenset(message["requested"]),
    )


def refusals(output: str) -> list[str]:
    """Return the files that clients did not get, with the reason: each once, the last few."""
    return values_after(NOT_SERVED, output)[-MOST_REFUSALS:]


def noted_projects(output: str) -> list[str]:
    """Return the projects that clients asked for and that the proxy has notices about."""
    return values_after(HAS_NOTICES, output)
