"""The values of variant markers, as the ``variant.json`` of a wheel or installed variant has them.

Imports the engine: only imported where metadata has variant markers, or for an installed variant.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from pep_variants.choose.markers import NON_VARIANT, VariantContext
from pep_variants.choose.ranking import Ranking, rank
from pep_variants.detect.detector import Detector
from pep_variants.errors import VariantError
from pep_variants.formats.reader import read_metadata
from pep_variants.model.label import VARIANT_FILE
from pep_variants.model.metadata import Metadata
from pep_variants.model.platform import Platform
from pep_variants.model.property import Properties

Detect = Callable[[Metadata], Platform]
"""Returns what the target supports of the namespaces of the metadata."""


def context_of(
    variant_json: bytes | None, detect: Detect | None, *, values: bool
) -> VariantContext:
    """Return the context for the markers of a wheel from its own ``variant.json``.

    Invalid metadata counts as none: whether the wheel may be installed is checked elsewhere.

    Args:
        variant_json: contents of the file, None without one.
        detect: detection of the target, None for this machine.
        values: whether a marker depends on which of the values are supported.
    """
    try:
        metadata = None if variant_json is None else read_metadata(variant_json, VARIANT_FILE)
    except VariantError:
        metadata = None
    if metadata is None or len(metadata.variants) != 1:
        return NON_VARIANT
    ((label, properties),) = metadata.variants.items()
    if values and any(len(found) > 1 for item in properties.values() for found in item.values()):
        properties = _supported(properties, rank(metadata, (detect or _host())(metadata)), label)
    return VariantContext(label, properties)


def _supported(properties: Properties, ranking: Ranking, label: str) -> Properties:
    """Return *properties* with the supported values of each feature, all where none is.

    None is after a platform file was used, or the machine has changed since the installation.
    """
    supported = ranking.supported(label)
    return {
        namespace: {
            feature: supported.get(namespace, {}).get(feature) or found
            for feature, found in features.items()
        }
        for namespace, features in properties.items()
    }


@functools.cache
def _host() -> Detect:
    """Return the detection of this machine, shared by all installed distributions."""
    return Detector().platform
