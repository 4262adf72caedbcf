"""Build hook: bundles what pip imports into the wheel."""

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class BundleHook(BuildHookInterface):
    """Copies the engine, the resolver extension and their libraries into the wheel."""
