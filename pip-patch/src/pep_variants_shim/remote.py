"""The metadata inside wheels on a server, of which only the end is fetched.

For indexes that list variant wheels without the metadata file of their version.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from pip._internal.network.utils import raise_for_status

from pep_variants.errors import MetadataError, redacted
from pep_variants.metadata import Metadata
from pep_variants.parts import FIRST_PART, Part, PartialFile, read_content_range
from pep_variants.wheel import read_wheel_metadata

MAX_WHEELS = 64
"""A version with more variants than that needs its metadata file."""

_PARTIAL = 206


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
        url = str(link.url_without_fragment)
        fetch = partial(_part, network, url)
        problem = partial(MetadataError, url, "")
        with PartialFile(fetch(None, FIRST_PART), fetch, problem) as file:
            found = read_wheel_metadata(file, source)  # type: ignore[arg-type] # has all it uses
    if found is None:
        raise MetadataError(source, "", "is named a variant wheel, but has no variant.json")
    return found


def _part(network: Any, url: str, start: int | None, length: int) -> Part:
    """Return a part of the file at *url*, the last *length* bytes if *start* is None."""
    wanted = f"-{length}" if start is None else f"{start}-{start + length - 1}"
    headers = {
        "Range": f"bytes={wanted}",
        "Accept-Encoding": "identity",
        "Cache-Control": "no-cache",
    }
    response = network.get(url, headers=headers, stream=True)
    try:
        raise_for_status(response)
        span = read_content_range(response.headers.get("Content-Range", ""))
        if response.status_code != _PARTIAL or span is None:
            raise MetadataError(url, "", "the server gives no parts of files")
        first, size, total = span
        data = response.raw.read(min(size, length))
        if len(data) != size:
            raise MetadataError(url, "", "the server does not give the part asked for")
        return Part(data, first, total, response.headers.get("ETag", ""))
    finally:
        response.close()
