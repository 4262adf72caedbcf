"""A project that wants a third-party provider plugin, and the plugin's package."""

from __future__ import annotations

from .index import Index
from .wheels import Release, Wheel, metadata

ACME = {"requires": ["acme-provider>=1,<2"], "plugin-api": "acme_provider:Plugin"}

PLUGIN = """
from types import SimpleNamespace

class Plugin:
    namespace = "acme"

    @classmethod
    def get_supported_configs(cls):
        return [SimpleNamespace(name="speed", values=["fast", "slow"], multi_value=False)]

    get_all_configs = get_supported_configs
"""
"""Code of a plugin that answers."""


def acme_index(plugin: str) -> Index:
    """Return an index with a project with variants, ``app``, and the provider they want.

    Args:
        plugin: source code of the provider's module.
    """
    speeds = {speed: {"acme": {"speed": [speed]}} for speed in ("slow", "fast", "faster")}
    found = metadata({"null": {}, **speeds}, namespaces=["acme"], providers={"acme": ACME})
    index = Index()
    index.add_release(Release("app", "1.0", found))
    index.add_wheel(Wheel("acme-provider", "1.5", files={"acme_provider/__init__.py": plugin}))
    return index
