"""Detection as the user's preferences want it, for the commands that need a platform."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pep_variants.detection import Detector
from pep_variants.platform import load_platform

if TYPE_CHECKING:
    from pathlib import Path

    from pep_variants.metadata import Metadata
    from pep_variants.preferences import Preferences


def detector_for(preferences: Preferences) -> Detector:
    """Return the detector of this machine, or of the platform file that is preferred.

    Plugins that the user allowed are installed from where pip's ``PIP_...`` variables say.

    Raises:
        PlatformFileError: the platform file cannot be read.
        PreferenceError: an allowed provider makes no sense.
    """
    path = preferences.platform_file
    runner = None
    if preferences.allow_providers and path is None:
        from pep_variants.plugins import PluginRunner, Sources

        runner = PluginRunner(preferences.allow_providers, Sources.from_environ(os.environ))
    return Detector(
        enabled=preferences.enable,
        platform=load_platform(path) if path is not None else None,
        runner=runner,
    )


def read_metadata_file(path: Path) -> Metadata:
    """Read the variant metadata at *path*, bounded.

    Raises:
        MetadataError: it is broken.
        OSError: it cannot be opened.
    """
    # Imported late: detection alone needs none of it.
    from pep_variants.reader import MAX_METADATA_BYTES, read_metadata

    with path.open("rb") as stream:
        return read_metadata(stream.read(MAX_METADATA_BYTES + 1), str(path))
