"""The catalogue in the shim's own wheel, from which a pip may be run without being unpacked.

Imports the engine: only imported if the user asks for that catalogue.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import resources
from typing import Any

import variants_catalog
from pep_variants.catalog.model import CatalogProject
from pep_variants.catalog.reader import read_entry

_SUFFIX = ".toml"


class BundledCatalog:
    """The entries of the bundled `variants_catalog`."""

    def __init__(self) -> None:
        self._folder: Any = resources.files(variants_catalog) / "projects"

    def names(self) -> Iterable[str]:
        """Return the normalized names of the projects, ascending."""
        files = (item.name for item in self._folder.iterdir())
        return sorted(name[: -len(_SUFFIX)] for name in files if name.endswith(_SUFFIX))

    def project(self, name: str) -> CatalogProject | None:
        """Return the entry of the project *name* (normalized), None without one.

        Raises:
            CatalogError: it cannot be read.
        """
        filename = f"{name}{_SUFFIX}"
        try:
            data = (self._folder / filename).read_bytes()
        except (FileNotFoundError, KeyError):  # KeyError: not in the zip file
            return None
        return read_entry(data, f"variants-catalog: {filename}")
