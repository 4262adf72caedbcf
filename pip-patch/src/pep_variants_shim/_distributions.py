"""Wheels and installed distributions: label and properties in ``variant.json``, and upgrades."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pip._internal.exceptions import PipError
from pip._vendor.packaging.tags import sys_tags

from pep_variants import labels as wheel_labels

if TYPE_CHECKING:
    from pep_variants.machines import Platform
    from pep_variants.markers import VariantContext
    from pep_variants.metadata import Metadata
    from variants_catalog.installed_builds import Origin

    Detect = Callable[[Metadata], Platform]
    """Returns what the target supports of the namespaces of the metadata."""

FORCED_FILE = "variant_forced"
"""File of dist-info with the label that the user asked for, like ``REQUESTED``: `freeze` has it."""

RECORDED = b"pip\npep-variants-shim\n"
"""INSTALLER beside records that count. Every installer writes that file anew, so that
no wheel has a say in it; the first line is the name of the installer."""

noted_origins: set[tuple[str, bytes]] = set()
"""Normalized project and record of origin of the wheels that were rewritten."""


def read_file(dist: Any, name: str) -> str | None:
    """Return the text of a file in the dist-info folder, None if there is none that is readable."""
    try:
        text: str = dist.read_text(name)
    except (OSError, ValueError, KeyError, PipError):
        return None
    return text


def read_record(dist: Any, name: str) -> str | None:
    """Return the text of a file that the shim wrote beside `RECORDED`; None if a wheel did."""
    recorded = (read_file(dist, "INSTALLER") or "").split() == RECORDED.decode().split()
    return read_file(dist, name) if recorded else None


def label_of(dist: Any) -> str:
    """Return the label of an installed distribution.

    Empty if it is not a variant, and if its ``variant.json`` is invalid or cannot be read.
    """
    text = read_file(dist, wheel_labels.VARIANT_FILE)
    return "" if text is None else context_of(text.encode(), None, values=False).label


def metadata_of(dist: Any) -> Metadata | None:
    """Return the ``variant.json`` of an installed distribution, None without a valid one."""
    from pep_variants import metadata as variant_metadata
    from pep_variants.errors import VariantError

    text = read_file(dist, wheel_labels.VARIANT_FILE)
    try:
        return (
            None
            if text is None
            else variant_metadata.read_metadata(text, wheel_labels.VARIANT_FILE)
        )
    except VariantError:
        return None


def platforms_of(dist: Any) -> list[str]:
    """Return the platform tags of an installed wheel, nothing if its WHEEL file does not tell."""
    lines = (read_file(dist, "WHEEL") or "").splitlines()
    return [line.rpartition("-")[2].strip() for line in lines if line.startswith("Tag:")]


def machine_of(finder: Any) -> str:
    """Return a platform tag of the machine that pip's *finder* finds files for."""
    return str(next(iter(finder.target_python.platforms or ()), next(sys_tags()).platform))


def origin_of(dist: Any) -> Origin | None:
    """Return what an installed distribution was before it got the name of its project.

    None if it has always had its name, and if that file is invalid, cannot be read or was brought
    by a wheel.
    """
    text = read_record(dist, wheel_labels.ORIGIN_FILE)
    if text is None:
        return None
    from pep_variants.errors import VariantError
    from variants_catalog import installed_builds

    try:
        return installed_builds.read_origin(text, str(dist))
    except VariantError:
        return None


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
    from pep_variants import markers
    from pep_variants import metadata as variant_metadata
    from pep_variants import selection as wheel_selection
    from pep_variants.errors import VariantError
    from pep_variants.markers import VariantContext

    try:
        metadata = (
            None
            if variant_json is None
            else variant_metadata.read_metadata(variant_json, wheel_labels.VARIANT_FILE)
        )
    except VariantError:
        metadata = None
    if metadata is None or len(metadata.variants) != 1:
        return markers.NON_VARIANT
    ((label, properties),) = metadata.variants.items()
    if values and any(len(found) > 1 for item in properties.values() for found in item.values()):
        supported = wheel_selection.rank(metadata, (detect or _host())(metadata)).supported(label)
        # None is after a platform file was used, or the machine has changed since.
        properties = {
            namespace: {
                feature: supported.get(namespace, {}).get(feature) or found
                for feature, found in features.items()
            }
            for namespace, features in properties.items()
        }
    return VariantContext(label, properties)


def upgrades(provider: Any, project: str) -> bool:
    """Return whether pip's *provider* upgrades an installed project where it can."""
    strategy = provider._upgrade_strategy
    return bool(
        strategy == "eager"
        or (strategy == "only-if-needed" and project in provider._user_requested)
    )


@functools.cache
def _host() -> Detect:
    """Return the detection of this machine, shared by all installed distributions."""
    from pep_variants.machines import Detector

    return Detector().platform
