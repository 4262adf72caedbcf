"""Installed distributions and their variant labels, from the dist-info folders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions

from packaging.utils import canonicalize_name
from packaging.version import Version

from ..errors import MetadataError
from ..formats.reader import read_metadata
from ..model.filename import read_version
from ..model.label import VARIANT_FILE


@dataclass(frozen=True)
class Installed:
    """One installed distribution.

    Attributes:
        project: normalized name.
        version: its version.
        label: its variant label, None for a non-variant.
        problem: why the label cannot be read, empty if it can.
    """

    project: str
    version: Version
    label: str | None
    problem: str = ""


def find_installed(paths: Iterable[str]) -> Iterator[Installed]:
    """Yield the distributions below *paths*, by project; the first one found of each project.

    Args:
        paths: directories as in ``sys.path``.
    """
    found: dict[str, Installed] = {}
    for distribution in distributions(path=list(paths)):
        item = _installed(distribution)
        if item is not None:
            found.setdefault(item.project, item)
    yield from (found[project] for project in sorted(found))


def metadata_field(distribution: Distribution, name: str) -> str | None:
    """Return the first field *name* of the metadata of *distribution*, None if there is none.

    Interrupted installations leave folders without metadata, or with a part of it, for which
    `importlib.metadata` raises since Python 3.15.
    """
    try:
        fields = distribution.metadata
    except FileNotFoundError:
        return None
    return fields[name] if name in fields else None  # noqa: SIM401 - PackageMetadata has no get()


def _installed(distribution: Distribution) -> Installed | None:
    name, text = metadata_field(distribution, "Name"), metadata_field(distribution, "Version")
    if name is None or text is None:
        return None
    project, version = canonicalize_name(name), read_version(text)
    if version is None:
        return None
    variant = distribution.read_text(VARIANT_FILE)
    if variant is None:
        return Installed(project, version, None)
    source = f"{VARIANT_FILE} of {project} {version}"
    try:
        metadata = read_metadata(variant, source)
        if len(metadata.variants) != 1:
            raise MetadataError(source, "variants", "does not describe exactly one variant")
    except MetadataError as error:
        return Installed(project, version, None, str(error))
    return Installed(project, version, next(iter(metadata.variants)))
