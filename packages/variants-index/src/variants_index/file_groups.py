"""The files of a page by project and version."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from packaging.utils import canonicalize_name
from packaging.version import Version

from pep_variants.model.filename import parse_metadata_filename, read_version

from .pages import PageFile

SDISTS = (".tar.gz", ".zip")
"""Ends of the names of source distributions."""


@dataclass(slots=True)
class VersionFiles:
    """The files of one version in one place.

    Attributes:
        files: wheels and source distributions, in the order of the page.
        metadata: its ``*-variants.json``, None without one.
    """

    files: list[PageFile] = field(default_factory=list)
    metadata: PageFile | None = None


def by_version(
    files: Iterable[PageFile], name: str | None = None
) -> dict[str, dict[Version, VersionFiles]]:
    """Return *files* by project and version, without those that are not distributions.

    Args:
        files: of a page.
        name: normalized name of the project of the page, None for a page with several.
    """
    found: dict[str, dict[Version, VersionFiles]] = {}
    # Parsing a version takes longest, and many files have the same one.
    versions: dict[str, Version | None] = {}
    names: dict[str, str] = {}
    for file in files:
        parsed = parse_metadata_filename(file.filename)
        if parsed is not None:
            if name in (None, parsed[0]):
                group = found.setdefault(parsed[0], {}).setdefault(parsed[1], VersionFiles())
                group.metadata = group.metadata or file
            continue
        project, version_text = _split(file.filename, name)
        if project not in names:
            names[project] = canonicalize_name(project)
        project = names[project]
        if not version_text or (name is not None and project != name):
            continue
        if version_text not in versions:
            versions[version_text] = read_version(version_text)
        version = versions[version_text]
        if version is not None:
            found.setdefault(project, {}).setdefault(version, VersionFiles()).files.append(file)
    return found


def _split(filename: str, name: str | None) -> tuple[str, str]:
    """Return project and version as *filename* spells them, empty if it is not a distribution."""
    if filename.endswith(".whl"):
        project, _, rest = filename.partition("-")
        version, _, tags = rest.partition("-")
        return (project, version) if tags else ("", "")
    for suffix in SDISTS:
        if filename.endswith(suffix):
            stem = filename[: -len(suffix)]
            if name is not None:  # old names have dashes in name and version
                for place, char in enumerate(stem):
                    if char == "-" and canonicalize_name(stem[:place]) == name:
                        return stem[:place], stem[place + 1 :]
            project, _, version = stem.rpartition("-")
            return project, version
    return "", ""
