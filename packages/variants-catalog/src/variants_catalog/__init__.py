"""Existing builds of projects, described as wheel variants.

``projects`` has a TOML file for each project. They are read only if the user asks for it with
``catalog = "default"`` in `variants.toml`, ``--variant-catalog default`` or
``VARIANTS_CATALOG=default``. `entries` and `entry_reader` are for entries, `catalogs` for several,
`listings` for what their pages list, `installed_builds` for the wheels that are installed.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

__all__ = ["__version__", "projects"]

try:
    __version__ = version("variants-catalog")
except PackageNotFoundError:  # a copy inside another distribution
    __version__ = "0"


def projects() -> Path:
    """Return the directory of the TOML files: `NAME.toml`, the name normalized (PEP 503)."""
    return Path(__file__).parent / "projects"
