"""Settings that explain a choice by themselves, in words."""

from __future__ import annotations

from ..uv_files import is_on

MEANINGS = {
    "no-variants": "variants are switched off",
    "variant": "variants are named, whatever fits",
    "variant-exclude": "variants are excluded",
    "variant-platform": "a platform file replaces detection of this machine",
}
"""What it means that an option is set, by its name."""

ATTRIBUTES = {
    "use_variants": "no-variants",
    "forced": "variant",
    "exclude": "variant-exclude",
    "platform_file": "variant-platform",
}
"""Names of these options by the attributes of `Preferences` that they set."""


def meaning(option: str, value: str) -> str:
    """Return what *value* of *option* means, empty where it explains nothing."""
    if not value.strip() or (option == "no-variants" and not is_on(value)):
        return ""
    return MEANINGS.get(option, "")
