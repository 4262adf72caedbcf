"""The releases in a directory: distributions, their metadata and attestations, read and hashed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from pep_variants.errors import VariantError
from pep_variants.files import read_regular
from pep_variants.limits import DOCUMENT_BYTES
from pep_variants.model.filename import metadata_filename, parse_metadata_filename, read_version
from pep_variants.wheelfile.core_metadata import read_fields

from ..indexing.merged import same_meaning, write_merged
from ..indexing.wheelhouse import VariantFile, by_version, read_distribution
from .attestations import attestations_of, provenance
from .errors import PublishError
from .form_fields import read_core_metadata
from .steps import Kind, kind_of
from .target import Release, ReleaseFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from packaging.utils import NormalizedName
    from packaging.version import Version

    from ..indexing.wheelhouse import Distribution

    Key = tuple[NormalizedName, Version]

THREADS = 4
"""Hashing releases the interpreter's lock; more threads wait for the disk."""


def read_releases(
    directory: Path,
    *,
    metadata: bool = True,
    attestations: bool | None = None,
    progress: Callable[[str], None] | None = None,
) -> list[Release]:
    """Return the releases in *directory* and below, ascending.

    The directory was validated: wheels and metadata fit each other.

    Args:
        directory: with distributions, and at will with ``*-variants.json`` and attestations.
        metadata: publish index-level metadata.
        attestations: True to require them, False to ignore them, None to take those that are there.
        progress: called with the name of each file.

    Raises:
        PublishError: two files of one name differ, metadata of another name, broken attestations,
            or PKG-INFO of a source distribution disagrees with its name.
        VariantError: a file is not usable.
        OSError: it cannot be read.
    """
    paths = sorted(path for path in directory.rglob("*") if path.is_file())
    found = [path for path in paths if kind_of(path.name) not in (None, Kind.METADATA)]

    def read(path: Path) -> Distribution:
        if progress is not None:
            progress(path.name)
        return _read(path)

    with ThreadPoolExecutor(THREADS) as pool:
        try:
            distributions = _unique(list(pool.map(read, found)))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    documents: Mapping[Key, VariantFile] = {}
    if metadata:
        documents = _documents(path for path in paths if kind_of(path.name) is Kind.METADATA)
    texts: dict[Path, tuple[str, ...]] = {}
    if attestations is not False:
        objects = attestations_of(distributions, required=attestations is True)
        texts = {path: tuple(item.text for item in items) for path, items in objects.items()}
    groups = by_version(distributions)
    return [
        Release(
            *key,
            tuple(_file(item, texts.get(item.path, ())) for item in groups.get(key, ())),
            _document(groups.get(key, ()), documents.get(key)) if metadata else None,
        )
        for key in sorted(groups.keys() | documents.keys())
    ]


def _read(path: Path) -> Distribution:
    found = read_distribution(path)
    if found.is_wheel:
        return found  # check_directory compared its METADATA
    fields = read_fields(read_core_metadata(path))
    name, version = (fields.get(key, [""])[0] for key in ("name", "version"))
    if (canonicalize_name(name), read_version(version)) != (found.project, found.version):
        raise PublishError(
            f"{path}: PKG-INFO says {name[:100] or 'no name'} {version[:100] or 'no version'}, the "
            f"filename {found.project} {found.version}: build it again, do not rename it"
        )
    return found


def _unique(distributions: Iterable[Distribution]) -> list[Distribution]:
    seen: dict[str, Distribution] = {}
    for item in distributions:
        other = seen.setdefault(item.path.name, item)
        if other.sha256 != item.sha256:
            raise PublishError(
                f"{other.path} and {item.path} have one name and different contents (sha256 "
                f"{other.sha256} and {item.sha256}): remove one of them"
            )
    return list(seen.values())


def _documents(paths: Iterable[Path]) -> dict[Key, VariantFile]:
    found: dict[Key, VariantFile] = {}
    for path in paths:
        key = parse_metadata_filename(path.name)
        if key is None or path.name != metadata_filename(*key):
            expected = metadata_filename(*key) if key else "{name}-{version}-variants.json"
            raise PublishError(
                f"{path}: installers do not look for metadata under this name: name it {expected}"
            )
        document = VariantFile(read_regular(path, DOCUMENT_BYTES).data, str(path))
        other = found.setdefault(key, document)
        if other.data != document.data:
            raise PublishError(f"{other.source} and {path} differ: remove one of them")
    return found


def _document(distributions: Sequence[Distribution], local: VariantFile | None) -> bytes | None:
    """Return the metadata of a release: the local file, with what wheels have and it has not."""
    wheels = [item.variant for item in distributions if item.variant is not None]
    if local is None:
        return write_merged(wheels) if wheels else None
    merged = VariantFile(write_merged([local, *wheels]), local.source)
    return local.data if same_meaning(merged.metadata, local.metadata) else merged.data


def _file(item: Distribution, texts: tuple[str, ...]) -> ReleaseFile:
    try:
        return ReleaseFile(replace(item, provenance=provenance(texts)), texts)
    except (ValueError, KeyError) as problem:
        raise VariantError(f"{item.path}: its attestations cannot be read: {problem}") from None
