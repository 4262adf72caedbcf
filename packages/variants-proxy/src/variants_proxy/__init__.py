"""The index proxy: an ASGI application that serves upstream indexes with plain wheels only.

Of each version it lists the variant that fits the machine, under its plain filename. `create_app`
makes the application for `Settings`; `encode` makes the platform key of a `Machine`, which is part
of every URL (see `urls`).

The names in ``__all__`` are stable: changes are announced in the changelog. They are imported on
first use, so that clients, which make keys and URLs, do not import a server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .index_urls import index_url, links_url, variants_url
    from .key import Machine, decode, encode, host_target
    from .server.app import create_app
    from .settings import Limits, Settings, Upstream
    from .simple_repository import VariantSelected

__all__ = [
    "Limits",
    "Machine",
    "Settings",
    "Upstream",
    "VariantSelected",
    "create_app",
    "decode",
    "encode",
    "host_target",
    "index_url",
    "links_url",
    "variants_url",
]

_NAMES = {
    "key": "Machine decode encode host_target",
    "server.app": "create_app",
    "settings": "Limits Settings Upstream",
    "simple_repository": "VariantSelected",
    "index_urls": "index_url links_url variants_url",
}
"""The names of each module, imported on first access."""


def __getattr__(name: str) -> object:
    """Import the public *name* from its module (PEP 562)."""
    from pep_variants.internal import lazy_name

    return lazy_name(__name__, _NAMES, name)


def __dir__() -> list[str]:
    """List the public names, imported or not."""
    return sorted(__all__)
