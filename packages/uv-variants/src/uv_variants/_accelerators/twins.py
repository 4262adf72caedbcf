"""Requirements of others on a project whose builds have names of their own.

fastembed requires onnxruntime. In a group with onnxruntime-gpu both would be installed, with the
same files: uv is told what fastembed requires without it, and the groups have it in its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import Version

from pep_variants import wheel_files
from pep_variants.errors import InvalidWheel
from variants_index import finder as package_finder
from variants_index import uv_files
from variants_index.http import PackageIndexError

from .._errors import AcceleratorsUnknown
from .._named_projects import normalized

if TYPE_CHECKING:
    from pep_variants.preferences import Sources
    from variants_catalog.catalogs import Catalog
    from variants_index.finder import PackageFinder


@dataclass(frozen=True)
class Requirer:
    """A locked version of a project that requires others whose builds have other names.

    Attributes:
        name: normalized.
        version: that is locked.
        requires: its other requirements.
        extras: that it has.
        twins: what is left out.
    """

    name: str
    version: str
    requires: tuple[str, ...]
    extras: tuple[str, ...]
    twins: tuple[Requirement, ...]


def requirers(
    lock: Mapping[str, Any],
    catalog: Catalog,
    before: Iterable[str],
    sources: Sources,
    offline: bool,
) -> Iterator[Requirer]:
    """Yield the packages of a lock that require a project with builds of other names.

    Args:
        lock: the tree of uv.lock.
        catalog: of existing builds.
        before: normalized names of those of which uv was told already, so that the lock does not.
        sources: uv's indexes.
        offline: ask none.

    Raises:
        AcceleratorsUnknown: one has no wheel, or its metadata cannot be fetched.
    """
    told = set(before)
    found = [
        package
        for package in lock.get("package", ())
        if "registry" in uv_files.table_of(package.get("source"))
        and (
            package.get("name") in told
            or any(
                _renamed(catalog, (each.get("name") for each in package.get("dependencies", ())))
            )
        )
    ]
    if not found:
        return
    with package_finder.Session(sources, offline=offline) as session:
        finder = package_finder.PackageFinder(session, sources)
        for package in found:
            yield _requirer(package, catalog, finder)


def _required(package: Mapping[str, Any]) -> Iterator[str]:
    return (str(each.get("name")) for each in package.get("dependencies", ()))


def _renamed(catalog: Catalog, names: Iterable[str]) -> Iterator[str]:
    for name in names:
        entry = catalog.project(name)
        if entry is not None and entry.targets:
            yield name


def _requirer(package: Mapping[str, Any], catalog: Catalog, finder: PackageFinder) -> Requirer:
    name, version = str(package["name"]), str(package["version"])
    try:
        candidates = finder.project(name).versions.get(Version(version), ())
        wheel = next((each for each in candidates if each.is_wheel), None)
        if wheel is None:
            raise AcceleratorsUnknown(
                f"{name} {version} has no wheel that tells what it requires: "
                "require another version"
            )
        metadata = package_finder.fetch_metadata_file(finder.session, wheel.file)
        texts = wheel_files.requirements_of(metadata)
    except (PackageIndexError, InvalidWheel) as error:
        raise AcceleratorsUnknown(f"{name} {version} requires what is not known: {error}") from None
    fields = wheel_files.read_fields(metadata)
    twins = {
        text: item
        for text, item in _parsed(texts)
        if any(_renamed(catalog, [normalized(item.name)])) and "extra" not in str(item.marker or "")
    }
    return Requirer(
        name,
        version,
        tuple(text for text in texts if text not in twins),
        tuple(fields.get("provides-extra", ())),
        tuple(twins.values()),
    )


def _parsed(texts: Iterable[str]) -> Iterator[tuple[str, Requirement]]:
    for text in texts:
        with suppress(InvalidRequirement):  # uv says so
            yield text, Requirement(text)
