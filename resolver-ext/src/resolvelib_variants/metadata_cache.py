"""The variant metadata of versions, each asked for once, errors included."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

from pep_variants.model.metadata import Metadata

from .interfaces import CandidateFiles

CT = TypeVar("CT")


class MetadataCache(Generic[CT]):
    """Metadata by project, version and source."""

    def __init__(self, files: CandidateFiles[CT]) -> None:
        """Set up; *files* gives the metadata."""
        self._files = files
        self._found: dict[tuple[str, Hashable, str], Metadata | Exception] = {}

    def read(self, project: str, version: Hashable, source: str, candidate: CT) -> Metadata:
        """Return the metadata beside *candidate*; raises what its first reading raised."""
        key = (project, version, source)
        if key not in self._found:
            try:
                self._found[key] = self._files.metadata(project, candidate)
            except Exception as error:  # an internal error would happen again, too
                self._found[key] = error
        found = self._found[key]
        if isinstance(found, Exception):
            raise found
        return found
