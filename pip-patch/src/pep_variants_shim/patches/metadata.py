"""Metadata: markers that depend on the variant are reduced before pip parses requirements.

Files of wheels are reduced when they are read, those of installed distributions when their
metadata is parsed, for both of pip's metadata backends. Nothing is changed on disk.
"""

from __future__ import annotations

import email.message
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from pep_variants.label import VARIANT_FILE

from ..hook import replace
from ..reduction import reduce_contents, reduce_message

_METADATA_FILE = "METADATA"


def patch_importlib(module: ModuleType) -> None:
    """Patch the ``importlib.metadata`` backend."""

    @replace(module.WheelDistribution, "__init__")
    def wheel_init(
        original: Callable[..., None],
        self: Any,
        files: Mapping[Any, bytes],
        info_location: Any,
    ) -> None:
        original(self, _reduced_files(files), info_location)

    @replace(module.Distribution, "from_metadata_file_contents")
    def from_metadata_file_contents(
        original: Callable[..., Any],
        cls: Any,
        metadata_contents: bytes,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        # A PEP 658 file says nothing of the variant: what the index promised of it counts.
        return original(cls, reduce_contents(metadata_contents, None), *args, **kwargs)

    @replace(module.Distribution, "_metadata_impl")
    def metadata_impl(original: Callable[..., Any], self: Any) -> email.message.Message:
        message: email.message.Message = original(self)
        reduce_message(message, self._dist.read_text)
        return message


def patch_pkg_resources(module: ModuleType) -> None:
    """Patch the ``pkg_resources`` backend, pip's default on Python 3.10."""

    @replace(module.InMemoryMetadata, "__init__")
    def memory_init(
        original: Callable[..., None],
        self: Any,
        metadata: Mapping[str, bytes],
        wheel_name: str,
    ) -> None:
        original(self, _reduced_files(metadata), wheel_name)

    @replace(module.Distribution, "_metadata_impl")
    def metadata_impl(original: Callable[..., Any], self: Any) -> email.message.Message:
        message: email.message.Message = original(self)
        reduce_message(message, lambda name: _read(self._dist, name))
        return message

    # What dependencies are computed from.
    @replace(module.pkg_resources.DistInfoDistribution, "_parsed_pkg_info")
    def parsed_pkg_info(original: Callable[..., Any], self: Any) -> email.message.Message:
        fresh = not hasattr(self, "_pkg_info")  # where the result is kept
        message: email.message.Message = original(self)
        if fresh:
            reduce_message(message, lambda name: _read(self, name))
        return message


def _read(dist: Any, name: str) -> str | None:
    return dist.get_metadata(name) if dist.has_metadata(name) else None


def _reduced_files(files: Mapping[Any, bytes]) -> Mapping[Any, bytes]:
    """Return the dist-info *files* of a wheel, by name, with reduced METADATA."""
    # The names are text or pure paths, which do not compare equal.
    by_name = {str(name): name for name in files}
    name = by_name.get(_METADATA_FILE)
    if name is None:
        return files
    beside = by_name.get(VARIANT_FILE)
    reduced = reduce_contents(files[name], None if beside is None else files[beside])
    return files if reduced is files[name] else {**files, name: reduced}
