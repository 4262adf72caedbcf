"""Metadata: variant markers are reduced before pip parses requirements.

METADATA of wheels is reduced when it is read, that of installed distributions when it is parsed,
for both metadata backends of pip. Nothing is changed on disk.
"""

from __future__ import annotations

import email.message
import os
from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pep_variants import labels as wheel_labels
from pep_variants import limits

from .._guard import Original, replace, switch
from .._markers import prepared_link, reduce_contents, reduce_message

if TYPE_CHECKING:
    import zipfile

_METADATA_FILE = "METADATA"


def patch_importlib(module: ModuleType) -> None:
    """Patch the ``importlib.metadata`` backend."""
    _limit_variant_file(module)
    _patch_metadata_files(module)

    @replace(module.WheelDistribution, "__init__")
    def wheel_init(
        original: Original, self: Any, files: Mapping[Any, bytes], info_location: Any
    ) -> None:
        original(self, _reduced_files(files), info_location)

    @replace(module.Distribution, "_metadata_impl", always=True, shows=True)
    def metadata_impl(original: Original, self: Any) -> email.message.Message:
        message: email.message.Message = original(self)
        if switch.on or switch.failed:
            reduce_message(message, self._dist.read_text)
        return message


def patch_pkg_resources(module: ModuleType) -> None:
    """Patch the ``pkg_resources`` backend, pip's default on Python 3.10."""
    _limit_variant_file(module)
    _patch_metadata_files(module)

    @replace(module.InMemoryMetadata, "__init__")
    def memory_init(
        original: Original, self: Any, metadata: Mapping[str, bytes], wheel_name: str
    ) -> None:
        original(self, _reduced_files(metadata), wheel_name)

    @replace(module.Distribution, "_metadata_impl", always=True, shows=True)
    def metadata_impl(original: Original, self: Any) -> email.message.Message:
        message: email.message.Message = original(self)
        if switch.on or switch.failed:
            reduce_message(message, lambda name: _read(self._dist, name))
        return message

    # Dependencies are computed from it.
    @replace(module.pkg_resources.DistInfoDistribution, "_parsed_pkg_info", always=True, shows=True)
    def parsed_pkg_info(original: Original, self: Any) -> email.message.Message:
        fresh = not hasattr(self, "_pkg_info")  # caches the result
        message: email.message.Message = original(self)
        if fresh and (switch.on or switch.failed):
            reduce_message(message, lambda name: _read(self, name))
        return message


def _patch_metadata_files(module: ModuleType) -> None:
    """Read PEP 658 files as they will be installed."""

    @replace(module.Distribution, "from_metadata_file_contents")
    def from_metadata_file_contents(
        original: Original, cls: Any, metadata_contents: bytes, *args: Any, **kwargs: Any
    ) -> Any:
        # It comes without variant.json: the metadata of the index has the variant.
        contents = reduce_contents(_as_installed(metadata_contents), None)
        return original(cls, contents, *args, **kwargs)


def _limit_variant_file(module: ModuleType) -> None:
    """Limit the size of ``variant.json``; pip reads all files of dist-info into memory."""

    @replace(module, "read_wheel_metadata_file")
    def read_file(original: Original, source: zipfile.ZipFile, path: str) -> bytes:
        if path.partition("/")[2] != wheel_labels.VARIANT_FILE:
            data: bytes = original(source, path)
            return data
        from pep_variants import wheel_files

        wheel = os.path.basename(source.filename or "")  # noqa: PTH119
        return wheel_files.read_entry(source, source.getinfo(path), limits.DOCUMENT_BYTES, wheel)


def _read(dist: Any, name: str) -> str | None:
    return dist.get_metadata(name) if dist.has_metadata(name) else None


def _reduced_files(files: Mapping[Any, bytes]) -> Mapping[Any, bytes]:
    """Return the dist-info *files* of a wheel, by name, with reduced METADATA."""
    # The names are str or PurePath, which do not compare equal.
    name = next((name for name in files if str(name) == _METADATA_FILE), None)
    if name is None:
        return files
    beside = files.get(type(name)(wheel_labels.VARIANT_FILE))
    reduced = reduce_contents(files[name], beside)
    return files if reduced is files[name] else {**files, name: reduced}


def _as_installed(metadata: bytes) -> bytes:
    """Return METADATA that the index has of the file that pip prepares as it will be installed.

    Raises:
        VariantError: *metadata* is not valid.
    """
    link = prepared_link()
    if link is None:
        return metadata
    from .._links import rewritten_link

    known = rewritten_link(link)
    if known is None:
        return metadata
    from variants_catalog import installed_builds

    return installed_builds.installed_metadata(metadata, known.entry, known.file)
