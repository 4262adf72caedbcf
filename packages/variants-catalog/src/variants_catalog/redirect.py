"""Wheels that require another project: what stands for a variant published under another name.

The same entry and file give the same bytes everywhere, so hashes in lock files stay valid.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from pep_variants.choose.markers import require_extras
from pep_variants.errors import CatalogError, InvalidMarker
from pep_variants.formats.writer import write_metadata
from pep_variants.model.filename import parse_filename
from pep_variants.model.label import VARIANT_FILE
from pep_variants.wheelfile.core_metadata import METADATA_FILE, iter_fields
from pep_variants.wheelfile.metadata_edits import Edits
from pep_variants.wheelfile.record import RECORD_FILE, record_line

from .model import CatalogProject, PublishedFile

_TIME = (1980, 1, 1, 0, 0, 0)
"""The first time that a zip archive can have."""

_MODE = 0o100644 << 16


def redirect_metadata(project: CatalogProject, file: PublishedFile) -> bytes:
    """Return METADATA of the wheel for *file*, one of `CatalogProject.redirects`.

    Raises:
        CatalogError: *file* is another kind of file.
    """
    if not file.redirect:
        raise CatalogError(project.source, file.filename, "is no redirect to another project")
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {project.name}",
        f"Version: {file.version}",
        f"Summary: Variant {file.label} of {project.name}: installs {', '.join(file.requires)}",
        f"Project-URL: Documentation, {project.documentation}",
        *(f"Requires-Dist: {text}" for text in file.requires),
        "",
        f"Made from the catalogue of existing builds. It has no files of its own: {project.name}",
        f"{file.version} for this machine is {', '.join(file.requires)}.",
        "",
    ]
    return "\n".join(lines).encode()


def redirect_wheel(project: CatalogProject, file: PublishedFile) -> bytes:
    """Return the wheel for *file*, one of `CatalogProject.redirects`.

    Raises:
        CatalogError: *file* is another kind of file.
        InvalidWheelFilename: its name is not valid.
    """
    tags = sorted(map(str, parse_filename(file.filename).tags))
    wheel = ["Wheel-Version: 1.0", "Generator: pep-variants", "Root-Is-Purelib: true"]
    wheel += [f"Tag: {tag}" for tag in tags]
    document = write_metadata(project.metadata([file]))
    folder = f"{'-'.join(file.filename.split('-', 2)[:2])}.dist-info"
    contents = {
        f"{folder}/{METADATA_FILE}": redirect_metadata(project, file),
        f"{folder}/WHEEL": "\n".join((*wheel, "")).encode(),
        f"{folder}/{VARIANT_FILE}": document.encode(),
    }
    rows = [record_line(path, data) for path, data in contents.items()]
    record = f"{folder}/{RECORD_FILE}"
    contents[record] = "".join((*rows, record_line(record, None))).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path, data in contents.items():
            entry = zipfile.ZipInfo(path, _TIME)
            entry.create_system = 3  # as on Unix, wherever it is made
            entry.external_attr = _MODE
            archive.writestr(entry, data)
    return buffer.getvalue()


def with_requirements(metadata: bytes, project: str, file: PublishedFile) -> bytes:
    """Return the published wheel's METADATA with the dependencies that the catalogue adds.

    Of an extra of the project itself these are its dependencies: not every installer accepts a
    project that requires itself.

    Args:
        metadata: contents of METADATA.
        project: normalized name.
        file: one of `CatalogProject.own_files`.

    Raises:
        InvalidWheel: *metadata* is not valid.
    """
    added: list[str] = []
    extras: set[str] = set()
    for text in file.requires:
        requirement = Requirement(text)
        if canonicalize_name(requirement.name) == project:
            extras.update(map(canonicalize_name, requirement.extras))
        else:
            added.append(text)
    if extras:
        given = [field.value for field in iter_fields(metadata) if field.name == "requires-dist"]
        added += _of_extras(given, project, extras)
    return Edits(add=tuple(added)).edited(metadata, file.published) if added else metadata


def _of_extras(given: Sequence[str], project: str, extras: set[str]) -> list[str]:
    """Return what *extras* add to the dependencies, and the extras that they name themselves."""
    while True:
        added: list[str] = []
        known = len(extras)
        for text in given:
            try:
                asked = require_extras(text, extras)
                requirement = Requirement(asked)
            except (InvalidMarker, ValueError):
                continue  # an installer reports it
            if asked == text:
                continue
            if canonicalize_name(requirement.name) == project:
                extras.update(map(canonicalize_name, requirement.extras))
            else:
                added.append(asked)
        if len(extras) == known:
            return list(dict.fromkeys(added))
