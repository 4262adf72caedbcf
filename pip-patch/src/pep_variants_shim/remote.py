"""The metadata inside wheels on a server, of which only the end is fetched.

For indexes that list variant wheels without the metadata file of their version. Wheels keep their
directory at the end and, mostly, the dist-info just before it: two or three small requests each.
"""

from __future__ import annotations

import io
import os
import re
from typing import Any

from pip._internal.network.utils import raise_for_status

from pep_variants.errors import MetadataError, redacted
from pep_variants.metadata import Metadata
from pep_variants.wheel import read_wheel_metadata

MAX_WHEELS = 64
"""A version with more variants than that needs its metadata file."""

_TAIL = 64 * 1024
_MAX_REQUESTS = 16
_MAX_BYTES = 16 * 1024 * 1024
_PARTIAL = 206
_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")


def metadata_in_wheel(network: Any, link: Any) -> Metadata:
    """Return what the wheel behind *link* says of itself.

    Args:
        network: pip's network session.
        link: pip's link of the wheel, remote or local.

    Raises:
        VariantError: it says nothing, or is no usable wheel; the server gives no parts of it.
        OSError, ValueError: it cannot be had.
    """
    source = redacted(str(link.url_without_fragment))
    if link.is_file:
        found = read_wheel_metadata(link.file_path, source)
    else:
        with _Remote(network, str(link.url_without_fragment)) as file:
            found = read_wheel_metadata(file, source)  # type: ignore[arg-type] # has all it uses
    if found is None:
        raise MetadataError(source, "", "is named a variant wheel, but has no variant.json")
    return found


class _Remote(io.RawIOBase):
    """A file on a server as a seekable file, within limits.

    Errors of this module are no `OSError`: those say that an archive is damaged.
    """

    def __init__(self, network: Any, url: str) -> None:
        super().__init__()
        self._network = network
        self._url = url
        self._size = 0
        self._position = 0
        self._requests = 0
        self._parts: list[tuple[int, bytes]] = []
        self._fetched = 0
        self._fetch(f"bytes=-{_TAIL}")

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise ValueError(f"negative position {base + offset}")
        self._position = base + offset
        return self._position

    def read(self, size: int | None = -1, /) -> bytes:
        left = max(0, self._size - self._position)
        wanted = left if size is None or size < 0 else min(size, left)
        data = self._at(self._position, wanted)
        self._position += len(data)
        return data

    def readinto(self, buffer: Any, /) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _at(self, start: int, length: int) -> bytes:
        if not length:
            return b""
        for begin, data in self._parts:
            if begin <= start and start + length <= begin + len(data):
                return data[start - begin : start - begin + length]
        end = min(self._size, max(start + length, start + _TAIL))
        begin, data = self._fetch(f"bytes={start}-{end - 1}")
        if begin != start or len(data) < length:
            raise MetadataError(self._url, "", "the server does not give the part asked for")
        return data[:length]

    def _fetch(self, wanted: str) -> tuple[int, bytes]:
        self._requests += 1
        if self._requests > _MAX_REQUESTS:
            raise MetadataError(self._url, "", f"takes more than {_MAX_REQUESTS} requests to read")
        headers = {"Accept-Encoding": "identity", "Cache-Control": "no-cache", "Range": wanted}
        response = self._network.get(self._url, headers=headers, stream=True)
        try:
            raise_for_status(response)
            match = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
            if response.status_code != _PARTIAL or match is None:
                raise MetadataError(self._url, "", "the server gives no parts of files")
            begin, last, self._size = map(int, match.groups())
            length = last + 1 - begin
            self._fetched += length
            if self._fetched > _MAX_BYTES:
                raise MetadataError(self._url, "", f"has a directory of over {_MAX_BYTES} bytes")
            data = response.raw.read(length)
        finally:
            response.close()
        self._parts.append((begin, data))
        return begin, data
