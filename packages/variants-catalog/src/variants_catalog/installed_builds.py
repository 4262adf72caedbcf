"""Builds of the catalogue that are installed, and the metadata that they keep."""

from ._installed_builds import Origin, added_files, installed_metadata, read_origin, rewritten
from ._recognition import installed_build

__all__ = [
    "Origin", "added_files", "installed_build", "installed_metadata", "read_origin", "rewritten",
]  # fmt: skip
