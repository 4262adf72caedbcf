"""Detection as the user's preferences want it, for the commands that need a platform."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from pep_variants import limits
from pep_variants import metadata as variant_metadata
from pep_variants import preferences as user_preferences
from pep_variants.machines import Detector
from pep_variants.preferences import Sources

from ._console import warn

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pep_variants.machines import Platform
    from pep_variants.metadata import Metadata
    from pep_variants.preferences import Preferences
    from variants_plugins.runner import PluginRunner


def detector_for(preferences: Preferences) -> Detector:
    """Return the detector of this machine, or of the platform file that is preferred.

    Plugins that the user allowed are installed from where pip's ``PIP_...`` variables say.

    Raises:
        PlatformFileError: the platform file cannot be read.
        PreferenceError: an allowed provider is malformed.

    Asking the detector raises `PluginFailed` where an allowed plugin fails.
    """
    return Detector.of(preferences, runner=lambda: plugin_runner(preferences))


def plugin_runner(preferences: Preferences) -> PluginRunner:
    """Return what runs the plugins that the user allowed, from where pip installs.

    Raises:
        PreferenceError: an allowed provider is malformed.
    """
    from variants_plugins.runner import PluginRunner  # 40 ms, which most commands do without

    return PluginRunner.of(preferences, Sources.from_environ(os.environ))


def plugin_runner_of(options: Mapping[str, Any]) -> PluginRunner:
    """Return the plugin runner for *options* of a command, and the user's settings.

    Args:
        options: values by the names of `OPTIONS`.
    """
    return plugin_runner(user_preferences.load_preferences(options, os.environ, warn=warn))


def platform_tree(platform: Platform) -> dict[str, object]:
    """Return *platform* as JSON data: support by namespace."""
    return {
        namespace: {
            "features": {feature: list(values) for feature, values in support.features.items()},
            "resolved": list(support.resolved),
            "plugin-api": support.plugin_api,
            "notice": support.notice,
            "facts": [fact._asdict() for fact in support.facts],
        }
        for namespace, support in platform.namespaces.items()
    }


def read_metadata_file(path: Path) -> Metadata:
    """Read the variant metadata at *path*, bounded.

    Raises:
        MetadataError: it is broken.
        OSError: it cannot be opened.
    """
    with path.open("rb") as stream:
        return variant_metadata.read_metadata(stream.read(limits.DOCUMENT_BYTES + 1), str(path))
