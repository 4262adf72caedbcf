"""Variant wheels as plain ones, for installers that know nothing of variants.

A plain wheel of a variant has another name, no ``variant.json``, and of the dependencies those of
the variant: installers without variants refuse variant markers (PEP 825, "Environment markers").
"""

from __future__ import annotations

import shutil
import threading
import zipfile
from pathlib import Path
from typing import IO

from pep_variants.choose.markers import VariantContext, reduce_requirement
from pep_variants.files import replacing
from pep_variants.formats.reader import read_metadata
from pep_variants.model.filename import parse_filename
from pep_variants.model.label import NULL_LABEL, split_label
from pep_variants.wheelfile.core_metadata import METADATA_FILE, requirements_of
from pep_variants.wheelfile.metadata_edits import Edits
from pep_variants.wheelfile.rewriting import open_source
from pep_variants.wheelfile.wheel import VARIANT_FILE, WheelContents

from .build_results import file_digest


class PlainWheels:
    """A folder with the plain wheels that builds are made against, each made once, when needed."""

    def __init__(self, folder: Path, *, isolated: bool) -> None:
        self.isolated = isolated
        self._folder = folder
        self._lock = threading.Lock()
        self._digests: dict[Path, str] = {}

    def digest(self, wheel: Path) -> str:
        """Return the digest of *wheel*."""
        if wheel not in self._digests:
            self._digests[wheel] = file_digest(wheel)
        return self._digests[wheel]

    def plain(self, wheel: Path) -> Path:
        """Return the plain wheel of *wheel*, a variant wheel or a plain one."""
        with self._lock:
            return self._plain(wheel)

    def unpacked(self, wheel: Path) -> Path:
        """Return the folder that the plain wheel of *wheel* is unpacked in."""
        folder = self._folder_of(wheel)
        unpacked, partial = folder / "unpacked", folder / "unpacking"
        with self._lock:
            if not unpacked.exists():
                shutil.rmtree(partial, ignore_errors=True)
                plain = self._plain(wheel)
                with zipfile.ZipFile(plain) as archive:
                    archive.extractall(partial)
                plain.unlink()  # a wheel of PyTorch takes gigabytes
                partial.rename(unpacked)
        return unpacked

    def _plain(self, wheel: Path) -> Path:
        plain = self._folder_of(wheel) / split_label(wheel.name)[0]
        if not plain.exists():
            plain.parent.mkdir(parents=True, exist_ok=True)
            with replacing(plain) as stream:
                write_plain(wheel, stream)
        return plain

    def _folder_of(self, wheel: Path) -> Path:
        return self._folder / self.digest(wheel)[:16]

    def clear(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self._folder, ignore_errors=True)


def write_plain(wheel: Path, target: IO[bytes]) -> None:
    """Write the plain wheel of *wheel*, a variant wheel or a plain one, to *target*.

    Raises:
        InvalidWheel: it is not a usable wheel.
        MetadataError: its ``variant.json`` breaks the format.
        OSError: reading or writing failed.
    """
    label = parse_filename(wheel.name).label or NULL_LABEL
    with open_source(wheel) as source:
        source.write(target, None, _reduced(source.contents, label))


def _reduced(contents: WheelContents, label: str) -> Edits:
    """Return the edits after which a wheel has the dependencies of its variant alone."""
    variant_json = contents.read(VARIANT_FILE) or b"{}"
    properties = read_metadata(variant_json, label).properties_of(label) or {}
    context = VariantContext(label, properties)
    given = requirements_of(contents.read(METADATA_FILE) or b"")
    reduced = (reduce_requirement(text, context) for text in given)
    kept = tuple(text for text in reduced if text is not None)
    return Edits(remove=("*",), add=kept) if kept != given else Edits()
