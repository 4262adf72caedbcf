"""Metadata: markers that depend on the variant are reduced before pip parses requirements.

Files of wheels are reduced when they are read, for both of pip's metadata backends; those of
installed distributions when their metadata is parsed. Nothing is changed on disk.
"""

from __future__ import annotations

import email.message
import functools
from types import ModuleType
from typing import Any

from .._vendor.pep_variants.label import VARIANT_FILE
from ..reduction import context_of, preparing, reduce_contents, reduce_message

_METADATA_FILE = "METADATA"


def patch_importlib(module: ModuleType) -> None:
    """Patch the ``importlib.metadata`` backend."""
    wheel_init = module.WheelDistribution.__init__

    @functools.wraps(wheel_init)
    def init(self: Any, files: Any, info_location: Any) -> None:  # noqa: ANN401
        path = type(info_location)
        reduced = _reduced_files({str(name): data for name, data in files.items()})
        if reduced is not None:
            files = {path(name): data for name, data in reduced.items()}
        wheel_init(self, files, info_location)

    module.WheelDistribution.__init__ = init  # type: ignore[attr-defined]
    _patch_metadata_file(module)

    metadata_impl = module.Distribution._metadata_impl

    @functools.wraps(metadata_impl)
    def reduced_metadata(self: Any) -> email.message.Message:  # noqa: ANN401
        message: email.message.Message = metadata_impl(self)
        reduce_message(message, self._dist.read_text)
        return message

    module.Distribution._metadata_impl = reduced_metadata  # type: ignore[attr-defined]


def patch_pkg_resources(module: ModuleType) -> None:
    """Patch the ``pkg_resources`` backend, pip's default on Python 3.10."""
    memory_init = module.InMemoryMetadata.__init__

    @functools.wraps(memory_init)
    def init(self: Any, metadata: Any, wheel_name: str) -> None:  # noqa: ANN401
        memory_init(self, _reduced_files(dict(metadata)) or metadata, wheel_name)

    module.InMemoryMetadata.__init__ = init  # type: ignore[attr-defined]
    _patch_metadata_file(module)

    class_ = module.pkg_resources.DistInfoDistribution
    parsed = class_._parsed_pkg_info.fget

    def reduced_pkg_info(self: Any) -> Any:  # noqa: ANN401
        if not hasattr(self, "_pkg_info"):  # it caches the message there
            reduce_message(
                parsed(self),
                lambda name: self.get_metadata(name) if self.has_metadata(name) else None,
            )
        return parsed(self)

    class_._parsed_pkg_info = property(reduced_pkg_info)


def _patch_metadata_file(module: ModuleType) -> None:
    original = module.Distribution.from_metadata_file_contents.__func__

    def from_metadata_file_contents(
        cls: Any,  # noqa: ANN401
        metadata_contents: bytes,
        *args: Any,  # noqa: ANN401
        **kwargs: Any,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401
        # A PEP 658 file says nothing of the variant: what the index promised of it counts.
        prepared = preparing.get()
        if prepared is not None:
            metadata_contents = reduce_contents(metadata_contents, lambda: prepared(None))
        return original(cls, metadata_contents, *args, **kwargs)

    module.Distribution.from_metadata_file_contents = classmethod(  # type: ignore[attr-defined]
        from_metadata_file_contents
    )


def _reduced_files(files: dict[str, bytes]) -> dict[str, bytes] | None:
    """Return the dist-info *files* of a wheel with reduced METADATA, None if nothing changes."""
    contents = files.get(_METADATA_FILE, b"")
    context = preparing.get() or context_of
    reduced = reduce_contents(contents, lambda: context(files.get(VARIANT_FILE)))
    return None if reduced is contents else {**files, _METADATA_FILE: reduced}
