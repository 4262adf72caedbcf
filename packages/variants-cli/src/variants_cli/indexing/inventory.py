"""A cache of what the last run knew of the files in a directory, and of what it wrote.

Reading a distribution hashes the whole file. A file whose size and modification time are those of
the last run is not read again, and a project none of whose files changed is not written again. The
inventory is safe to delete, and is ignored if it is not valid. What has to be kept, such as upload
times, is on the pages.
"""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.version import Version

from pep_variants.files import replacing

from .scanning import FileState, FoundFile
from .wheelhouse import CoreMetadata, Distribution, VariantFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

FORMAT = 2
FILENAME = ".inventory.json"

_SETTLED = 2_000_000_000
"""Nanoseconds: a file that changed this shortly before it was read may change again without
another modification time, on file systems with a resolution of seconds."""


@dataclass
class KnownProject:
    """A project as the last run left it.

    Attributes:
        files: of each distribution, by path relative to the directory: size and time, version,
            label, SHA-256, Requires-Python, SHA-256 and size of METADATA, place in `variants`,
            states of its attestations by path.
        variants: texts of variant metadata in wheels.
        outputs: states of the files that were written for the project, by path.
        counts: numbers of wheels, source distributions, and versions with variants.
    """

    files: dict[str, list[Any]] = field(default_factory=dict)
    variants: list[str] = field(default_factory=list)
    outputs: dict[str, list[int]] = field(default_factory=dict)
    counts: list[int] = field(default_factory=list)

    def distributions(self, name: str, directory: Path) -> dict[str, Distribution]:
        """Return the distributions by relative path.

        Args:
            name: of the project.
            directory: that they are in.
        """
        found = {}
        versions: dict[str, Version] = {}
        variants = [text.encode() for text in self.variants]
        for path, row in self.files.items():
            size, _, version, label, sha256, requires_python, metadata, variant, _ = row
            parsed = versions.get(version) or versions.setdefault(version, Version(version))
            place = directory / path
            found[path] = Distribution(
                place,
                name,  # type: ignore[arg-type] # it was normalized
                parsed,
                label,
                size,
                sha256,
                requires_python,
                None if metadata is None else CoreMetadata(metadata[0], metadata[1], None),
                None if variant is None else VariantFile(variants[variant], str(place)),
            )
        return found


class Inventory:
    """What the last run left, by project.

    Attributes:
        projects: by normalized name.
    """

    def __init__(self, path: Path, settings: Mapping[str, object]) -> None:
        """Read the inventory at *path*.

        Args:
            path: of the file.
            settings: what pages depend on besides files. If they are not those of the last run,
                everything is written again.
        """
        self._path = path
        self._settings = dict(settings)
        self._stored = b""
        self.projects: dict[str, KnownProject] = {}
        try:
            stored = path.read_bytes()
            digest, _, body = stored.partition(b"\n")
            if digest.decode() != _digest(body):
                return
            tree = json.loads(body)
            if tree["format"] != FORMAT:
                return
            self.projects = {
                name: KnownProject(**project) for name, project in tree["projects"].items()
            }
            if tree["settings"] != self._settings:
                for project in self.projects.values():
                    project.outputs = {}
            self._stored = stored
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            self.projects = {}  # missing, or not written by us

    def write(self, projects: Mapping[str, KnownProject]) -> None:
        """Replace the inventory.

        Raises:
            OSError: it cannot be written.
        """
        tree = {
            "format": FORMAT,
            "settings": self._settings,
            "projects": {name: vars(project) for name, project in sorted(projects.items())},
        }
        body = json.dumps(tree, separators=(",", ":")).encode()
        data = f"{_digest(body)}\n".encode() + body
        if data == self._stored:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(self._path) as stream:
            stream.write(data)


def known_project(
    files: Iterable[tuple[FoundFile, Distribution, Mapping[str, FileState]]],
    outputs: Mapping[str, FileState],
    counts: Iterable[int],
) -> KnownProject:
    """Return what the next run needs to know of a project.

    Args:
        files: its distributions, each with its state and those of its attestations by path.
        outputs: what was written for it.
        counts: numbers of wheels, source distributions, and versions with variants.
    """
    now = time.time_ns()
    variants: dict[str, int] = {}
    rows: dict[str, list[Any]] = {}
    for found, item, attestations in files:
        if now - found.state.time < _SETTLED or found.state.size != item.size:
            continue
        text = None if item.variant is None else item.variant.data.decode()
        known = item.core_metadata
        rows[found.path] = [
            *found.state,
            str(item.version),
            item.label,
            item.sha256,
            item.requires_python,
            None if known is None else [known.sha256, known.size],
            None if text is None else variants.setdefault(text, len(variants)),
            {path: list(state) for path, state in attestations.items()},
        ]
    written = {path: list(state) for path, state in outputs.items()}
    return KnownProject(rows, list(variants), written, list(counts))


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()
