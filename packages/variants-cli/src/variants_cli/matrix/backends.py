"""Build backends that write variant metadata themselves, and their options for it.

All others build plain wheels, which are wrapped afterwards. What the backends accept:

- scikit-build-core 1.0 and newer: ``variant`` (a property, repeatable), ``variant-label`` and
  ``null-variant``, all of it behind ``experimental``.
- meson-python: the same keys without ``experimental``, in its variant branch. Released versions
  refuse keys that they do not know.
- hatchling and flit-core ignore ``config_settings``: their variant branches have options of their
  own commands instead. Their wheels are wrapped.
"""

from __future__ import annotations

from collections.abc import Mapping

from pep_variants.model.label import NULL_LABEL

from .model import Variant

BACKENDS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "meson-python": {},
    "scikit-build-core": {"experimental": ("true",)},
}
"""Additional settings by backend."""


def config_settings(backend: str, variant: Variant) -> dict[str, tuple[str, ...]]:
    """Return the ``config_settings`` for building *variant*.

    Args:
        backend: one of `BACKENDS`, or empty for one that knows nothing of variants.
        variant: what to build.
    """
    settings = dict(variant.settings.config_settings)
    if not backend:
        return settings
    settings.update(BACKENDS[backend])
    if variant.label == NULL_LABEL:
        return {**settings, "null-variant": ("true",)}
    properties = tuple(map(str, variant.settings.properties))
    return {**settings, "variant": properties, "variant-label": (variant.label,)}
