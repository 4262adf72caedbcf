"""Wheels and source distributions: filenames, core metadata, RECORD, contents, rewriting."""

from ._gpucode.code import Comparison, GpuCode, combined, sorted_targets
from ._gpucode.libraries import file_code, library_code, may_have_code, wheel_code
from ._lazy_file import (
    FIRST_PART,
    REFUSED,
    Part,
    PartialFile,
    Range,
    RangeRefused,
    is_refused,
    last_part,
    read_content_range,
)
from ._model.filename import (
    WheelFilename,
    metadata_filename,
    parse_filename,
    parse_metadata_filename,
    read_version,
)
from ._wheelfile.core_metadata import (
    METADATA_FILE,
    check_requirements,
    first_field,
    iter_fields,
    read_fields,
    requirements_of,
)
from ._wheelfile.installed import (
    Installed,
    OwnershipProblem,
    find_installed,
    installed_files,
    metadata_field,
    ownership_problems,
)
from ._wheelfile.record import (
    RECORD_FILE,
    SIGNATURE_FILES,
    Row,
    digest_of,
    read_record,
    record_line,
)
from ._wheelfile.rewriting import Edits, open_source, with_metadata
from ._wheelfile.sdist import read_pkg_info
from ._wheelfile.wheel import WheelContents, open_wheel, read_wheel_metadata
from ._wheelfile.zip_reading import read_entry
from ._wheelfile.zip_rewriting import Piece, Rewrite

__all__ = [
    "FIRST_PART", "METADATA_FILE", "RECORD_FILE", "REFUSED", "SIGNATURE_FILES", "Comparison",
    "Edits", "GpuCode", "Installed", "OwnershipProblem", "Part", "PartialFile", "Piece", "Range",
    "RangeRefused", "Rewrite", "Row", "WheelContents", "WheelFilename", "check_requirements",
    "combined", "digest_of", "file_code", "find_installed", "first_field", "installed_files",
    "is_refused", "iter_fields", "last_part", "library_code", "may_have_code", "metadata_field",
    "metadata_filename", "open_source", "open_wheel", "ownership_problems", "parse_filename",
    "parse_metadata_filename", "read_content_range", "read_entry", "read_fields", "read_pkg_info",
    "read_record", "read_version", "read_wheel_metadata", "record_line", "requirements_of",
    "sorted_targets", "wheel_code", "with_metadata",
]  # fmt: skip
