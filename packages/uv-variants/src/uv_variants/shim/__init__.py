"""The index shim: an ASGI application that serves real indexes with plain wheels only.

Every version shows the variant that fits the machine, under its plain filename. `create_app` makes
the application of `Settings`; `encode` makes the platform key of a `Machine`, which is a part of
every URL (see `urls`).
"""

from .app import create_app
from .key import Machine, decode, encode, host_target
from .settings import Limits, Settings, Upstream
from .urls import index_url, links_url, variants_url

__all__ = [
    "Limits",
    "Machine",
    "Settings",
    "Upstream",
    "create_app",
    "decode",
    "encode",
    "host_target",
    "index_url",
    "links_url",
    "variants_url",
]
