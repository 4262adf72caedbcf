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

from pep_variants import wheel_files
from pep_variants.preferences import Sources
from variants_index import finder as package_finder
from variants_index import uv_files
from variants_index.http import PackageIndexError
from variants_index.pages import PageFile

from .._errors import AcceleratorsUnknown
from .._named_projects import normalized

if TYPE_CHECKING:
    from variants_catalog.catalogs import Catalog


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
    environ: Mapping[str, str],
) -> Iterator[Requirer]:
    """Yield the packages of a lock that require a project with builds of other names.

    Args:
        lock: the tree of uv.lock.
        catalog: of existing builds.
        before: normalized names of those of which uv was told already, so that the lock does not.
        environ: environment variables.

    Raises:
        AcceleratorsUnknown: one has no wheel, or its metadata cannot be fetched.
    """
    told = set(before)
    for package in lock.get("package", ()):
        source, name = uv_files.table_of(package.get("source")), str(package.get("name"))
        required = {str(item.get("name")) for item in package.get("dependencies", ())}
        if "registry" in source and (name in told or any(_renamed(catalog, required))):
            yield _requirer(package, catalog, environ)


def _renamed(catalog: Catalog, names: Iterable[str]) -> Iterator[str]:
    for name in names:
        entry = catalog.project(name)
        if entry is not None and entry.targets:
            yield name


def _requirer(package: Mapping[str, Any], catalog: Catalog, environ: Mapping[str, str]) -> Requirer:
    name, version = str(package["name"]), str(package["version"])
    wheel = next(iter(package.get("wheels", ())), None)
    if wheel is None:
        raise AcceleratorsUnknown(
            f"{name} {version} has no wheel that tells what it requires: "
            "require another version, or another accelerator"
        )
    algorithm, _, digest = str(wheel.get("hash", "")).partition(":")
    file = PageFile(
        wheel["url"].rpartition("/")[2],
        wheel["url"],
        {algorithm: digest} if digest else {},
        core_metadata={},
    )
    offline = uv_files.is_on(environ.get("UV_OFFLINE", ""))
    try:
        with package_finder.Session(Sources.from_environ(environ), offline=offline) as session:
            session.add_index(package["source"]["registry"])  # uv has just asked it
            metadata = package_finder.fetch_metadata_file(session, file)
    except PackageIndexError as error:
        raise AcceleratorsUnknown(f"{name} {version} requires what is not known: {error}") from None
    fields = wheel_files.read_fields(metadata)
    texts = fields.get("requires-dist", ())
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
