"""What a shim's process is told, as JSON: its settings, and how it is reached."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .indexes import UserIndex

if TYPE_CHECKING:
    from .shim import Settings


def told_index(index: UserIndex) -> dict[str, Any]:
    """Return how a shim's process is told of *index*."""
    return {
        "name": index.shim_name,
        "url": index.url,
        "kind": "find-links" if index.links else "simple",
        "explicit": index.explicit,
        "username": index.username,
        "password": index.password,
    }


def settings_of(told: Mapping[str, Any]) -> Settings:
    """Return the settings of a shim that was *told* this.

    Raises:
        InvalidSetting: one of them makes no sense.
    """
    from resolvelib_variants.index.credentials import Credentials

    from .shim import Settings, Upstream

    upstreams = []
    for item in told["upstreams"]:
        credentials = None
        if item["username"] or item["password"]:
            credentials = Credentials(item["username"], item["password"])
        upstreams.append(
            Upstream(
                item["name"],
                item["url"],
                item["kind"],
                credentials,
                explicit=item["explicit"],
            )
        )
    return Settings(
        tuple(upstreams),
        Path(told["cache"]),
        {name: Path(path) for name, path in told["platforms"].items()},
        told["floating"],
        hosts=tuple(told["hosts"]),
        insecure_hosts=frozenset(told["insecure_hosts"]),
        keyring=told["keyring"],
        compress=told["compress"],
        access_log=told["access_log"],
    )


def encoded(data: bytes) -> str:
    """Return *data* as text."""
    return base64.b64encode(data).decode()
