"""Downloading what was resolved or locked: verified, whole or not at all."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pep_variants.errors import MetadataError
from pep_variants.label import VARIANT_FILE, split_label
from pep_variants.merging import check_promise
from pep_variants.metadata import Metadata
from pep_variants.wheel import read_wheel_metadata

from ..index.errors import BadAnswer
from ..index.ranges import download
from ..index.session import CHUNK, Digests, Session


@dataclass(frozen=True)
class Order:
    """A file to be downloaded.

    Attributes:
        filename: what it is called.
        url: where it is.
        hashes: hexadecimal digests by algorithm that it has to have.
        size: in bytes, None if unknown.
        metadata: what was promised of its variants, None for what is no variant wheel.
    """

    filename: str
    url: str
    hashes: Mapping[str, str]
    size: int | None = None
    metadata: Metadata | None = None


def download_all(session: Session, orders: Iterable[Order], folder: Path) -> list[Path]:
    """Put the files into *folder*; return their paths.

    What is there already with the right hashes stays.

    Raises:
        IndexProblem: a file cannot be had, or its hash or size differs.
        VariantError: a wheel is not of the variant that was promised.
        OSError: *folder* cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    return [_downloaded(session, order, folder) for order in orders]


def _downloaded(session: Session, order: Order, folder: Path) -> Path:
    path = folder / order.filename
    if path.parent != folder or order.filename in ("", ".", ".."):
        raise BadAnswer(f"{order.filename!r} is no filename")
    if order.hashes and path.exists() and _has(path, order.hashes):
        return path
    temporary = folder / f".{order.filename[:100]}.{secrets.token_hex(6)}.tmp"
    try:
        with temporary.open("xb") as stream:
            download(session, order.url, stream, order.hashes, size=order.size)
        _check_variant(temporary, order)
        temporary.replace(path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            error.filename = str(path)  # the name that the user knows
        raise
    return path


def _has(path: Path, hashes: Mapping[str, str]) -> bool:
    check = Digests(hashes)
    if not check.found:
        return False
    with path.open("rb") as stream:
        while chunk := stream.read(CHUNK):
            check.update(chunk)
    with contextlib.suppress(BadAnswer):
        check.compare(str(path))
        return True
    return False


def _check_variant(path: Path, order: Order) -> None:
    label = split_label(order.filename)[1]
    if label is None or order.metadata is None:
        return
    found = read_wheel_metadata(path, order.url)
    if found is None:
        raise MetadataError(order.url, "", f"is named a variant wheel, but has no {VARIANT_FILE}")
    check_promise(order.metadata, found, label)
