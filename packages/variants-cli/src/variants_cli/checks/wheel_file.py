"""Checks of one wheel: filename, metadata and RECORD against each other."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING

from packaging.utils import canonicalize_name

from pep_variants.errors import InvalidWheel, InvalidWheelFilename, shortened
from pep_variants.limits import RECORD_BYTES
from pep_variants.model.filename import WheelFilename, parse_filename, read_version
from pep_variants.wheelfile.core_metadata import METADATA_FILE, read_fields
from pep_variants.wheelfile.record import (
    RECORD_FILE,
    SIGNATURE_FILES,
    digest_of,
    read_record,
)
from pep_variants.wheelfile.wheel import VARIANT_FILE, WheelContents, open_wheel

from .dependencies import check_requirements
from .document import check_document
from .finding import Finding, error

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pep_variants.model.metadata import Metadata

_REMAKE = "make it again with variants unmake and variants make"
_REBUILD = "rebuild it"


@dataclass
class CheckedWheel:
    """A wheel and what was found in it.

    Attributes:
        path: of the file.
        filename: its parsed name, None if that is not a wheel filename.
        metadata: its variant metadata, None if missing or not readable.
        requirements: its dependencies.
        core_metadata: its METADATA, None if missing.
        variant_digest: SHA-256 of its ``variant.json``: wheels with the same one say the same of
            variants. None if missing.
        findings: what is wrong.
    """

    path: Path
    filename: WheelFilename | None = None
    metadata: Metadata | None = None
    requirements: tuple[str, ...] = ()
    core_metadata: bytes | None = None
    variant_digest: bytes | None = None
    findings: list[Finding] = field(default_factory=list)


def check_wheel(
    path: Path, stream: IO[bytes] | None = None, place: str | None = None
) -> CheckedWheel:
    """Check the wheel *path*; only the files of dist-info are decompressed.

    Args:
        path: where it is; for one that is elsewhere, its filename.
        stream: its bytes, if it is open or elsewhere; stays open.
        place: where it is, if that is elsewhere.

    Raises:
        OSError: it cannot be read.
    """
    file = place or str(path)
    checked = CheckedWheel(path)
    try:
        checked.filename = parse_filename(path.name)
    except InvalidWheelFilename as problem:
        checked.findings.append(
            error("invalid-filename", file, "", str(problem), "correct the name of the file")
        )
    try:
        name = "" if place else path.name
        with open_wheel(path if stream is None else stream, file, filename=name) as contents:
            data = contents.read(VARIANT_FILE)
            if data is not None:
                place = f"{contents.dist_info}/{VARIANT_FILE}"
                checked.variant_digest = hashlib.sha256(data).digest()
                checked.metadata, findings = check_document(data, file, f"{place}: ")
                checked.findings += findings
            checked.core_metadata = contents.read(METADATA_FILE)
            checked.findings += _check_core_metadata(checked, contents, file)
            checked.findings += _check_label(checked, file, has_metadata=data is not None)
            checked.findings += _check_record(contents, file, data)
    except InvalidWheel as problem:
        message = str(problem).removeprefix(f"{file}: ")
        checked.findings.append(error("invalid-wheel", file, "", message, _REBUILD))
    return checked


def _check_core_metadata(
    checked: CheckedWheel, contents: WheelContents, file: str
) -> Iterator[Finding]:
    place = f"{contents.dist_info}/{METADATA_FILE}"
    data = checked.core_metadata
    if data is None:
        yield error("metadata-file-missing", file, place, "the wheel has no METADATA", _REBUILD)
        return
    fields = read_fields(data)
    checked.requirements = tuple(fields.get("requires-dist", ()))
    yield from check_requirements(checked.requirements, file, place)
    if checked.filename is None:
        return
    name, version = (fields.get(key, [""])[0] for key in ("name", "version"))
    expected = checked.filename.name, checked.filename.version
    if (canonicalize_name(name), read_version(version)) != expected:
        yield error(
            "identity-mismatch",
            file,
            place,
            f"says {shortened(name)} {shortened(version)}, the filename "
            f"{checked.filename.name} {checked.filename.version}",
            "rename a project or its version with variants make --config, not by hand",
        )


def _check_label(checked: CheckedWheel, file: str, *, has_metadata: bool) -> Iterator[Finding]:
    if checked.filename is None:
        return
    label = checked.filename.label
    if not has_metadata and label is not None:
        yield error(
            "metadata-missing",
            file,
            "",
            f"the filename has label {label!r}, but the wheel has no {VARIANT_FILE}",
            "make variant wheels with variants make; renaming is not enough",
        )
    if has_metadata and label is None:
        yield error(
            "label-missing",
            file,
            "",
            f"the wheel has {VARIANT_FILE}, but its filename has no label",
            "restore its name, or remove the metadata with variants unmake",
        )
    if checked.metadata is None or label is None:
        return
    found = sorted(checked.metadata.variants)
    if not checked.metadata.lists_only(label):
        yield error(
            "label-mismatch",
            file,
            f"{VARIANT_FILE}: variants",
            f"the filename has label {label!r}, but there is "
            + (", ".join(map(repr, found[:5])) or "no label"),
            "name the file after its one label, or make it again with the other one",
        )


def _check_record(contents: WheelContents, file: str, variant: bytes | None) -> Iterator[Finding]:
    record = f"{contents.dist_info}/{RECORD_FILE}"
    data = contents.read(RECORD_FILE, RECORD_BYTES)
    if data is None:
        yield error("record-missing", file, record, "the wheel has no RECORD", _REBUILD)
        return
    try:
        rows = {row.path: row for row in read_record(data, file) if row.path}
    except InvalidWheel as problem:
        message = str(problem).removeprefix(f"{file}: ")
        yield error("record-invalid", file, record, message, _REBUILD)
        return
    unlisted = {f"{contents.dist_info}/{name}" for name in SIGNATURE_FILES}
    names = {name for name in contents.archive.namelist() if not name.endswith("/")}
    missing, gone = sorted(names - rows.keys() - unlisted), sorted(rows.keys() - names)
    if missing:
        yield error("record-incomplete", file, record, f"does not list {_some(missing)}", _REBUILD)
    if gone:
        yield error(
            "record-incomplete",
            file,
            record,
            f"lists {_some(gone)}, which the wheel does not contain",
            _REBUILD,
        )
    row = rows.get(f"{contents.dist_info}/{VARIANT_FILE}")
    if variant is None or row is None:
        return
    if row.digest.startswith("sha256=") and row.digest != digest_of(variant):
        mismatch = f"says {row.digest} of {VARIANT_FILE}, which is {digest_of(variant)}"
    elif not row.digest:
        mismatch = f"has no hash of {VARIANT_FILE}"
    elif row.size != str(len(variant)):
        mismatch = f"says size {row.size!r} of {VARIANT_FILE}, which has {len(variant)} bytes"
    else:
        return
    yield error("record-mismatch", file, record, mismatch, _REMAKE)


def _some(names: list[str]) -> str:
    more = len(names) - 3
    return ", ".join(names[:3]) + (f" and {more} more" if more > 0 else "")
