"""The files of a directory that an index is made of."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from pep_variants.model.label import METADATA_SUFFIX

from .wheelhouse import SDIST_SUFFIXES, sdist_name

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CORE_METADATA_SUFFIX = ".metadata"
ATTESTATION_SUFFIX = ".attestation"


class FileState(NamedTuple):
    """What shows that a file was not changed.

    Attributes:
        size: in bytes.
        time: of the last modification, in nanoseconds.
    """

    size: int
    time: int


class FoundFile(NamedTuple):
    """A distribution in the directory.

    Attributes:
        path: relative to the directory, with slashes.
        name: its filename.
        state: of the file.
    """

    path: str
    name: str
    state: FileState


@dataclass
class Scan:
    """The files of a directory.

    Attributes:
        distributions: wheels and source distributions, by name.
        metadata_files: sizes of the ``.metadata`` files, by path.
        documents: names of the ``*-variants.json`` in the directory itself.
        attestations: states of the attestations of a distribution by path, by the path of the
            distribution.
    """

    distributions: list[FoundFile] = field(default_factory=list)
    metadata_files: dict[str, int] = field(default_factory=dict)
    documents: list[str] = field(default_factory=list)
    attestations: dict[str, dict[str, FileState]] = field(default_factory=dict)


def scan(directory: Path, leave_out: Path) -> Scan:
    """Return what is in *directory* and below, except in *leave_out*. Nothing is opened.

    Archives that are no distributions are skipped.

    Raises:
        OSError: a folder cannot be read.
    """
    left_out = os.fspath(leave_out.resolve())
    found = Scan()
    for path, entry in _walk(os.fspath(directory.resolve()), "", left_out):
        name = entry.name
        if name.endswith(".whl") or (
            name.endswith(SDIST_SUFFIXES) and sdist_name(name) is not None
        ):
            found.distributions.append(FoundFile(path, name, state_of(entry)))
        elif name.endswith(CORE_METADATA_SUFFIX):
            found.metadata_files[path] = state_of(entry).size
        elif path == name and name.endswith(METADATA_SUFFIX):
            found.documents.append(name)
        elif name.endswith(ATTESTATION_SUFFIX):
            # FILE.KIND.attestation
            owner = path.removesuffix(ATTESTATION_SUFFIX).rpartition(".")[0]
            found.attestations.setdefault(owner, {})[path] = state_of(entry)
    found.distributions.sort(key=lambda file: (file.name, file.path))
    return found


def state_of(entry: os.DirEntry[str] | Path) -> FileState:
    """Return the state of a file, one of no size if it is not there (a broken link)."""
    try:
        status = entry.stat()
    except OSError:
        return FileState(-1, 0)
    return FileState(status.st_size, status.st_mtime_ns)


def _walk(folder: str, prefix: str, leave_out: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
    if folder == leave_out:
        return
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(entry.path, f"{prefix}{entry.name}/", leave_out)
            else:
                yield f"{prefix}{entry.name}", entry
