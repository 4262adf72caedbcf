"""From indexes, or a lock file, to the files of a project on disk."""

from ._cache import Store
from ._candidate import Candidate, CoreMetadata
from ._catalog_builds import (
    At,
    CatalogFile,
    OwnBuild,
    PlacedFile,
    catalog_files,
    listed,
    variants_of,
    with_builds,
)
from ._catalog_checks import check_live
from ._distribution_metadata import fetch_core_metadata, fetch_metadata_file
from ._downloads import MAX_DOWNLOAD, Download, download_files, downloaded, opened
from ._evaluator import REWRITTEN, CandidateEvaluator, is_pinned
from ._http.responses import Response, check_digests, read_response, retry_after, revalidated
from ._http.session import Session
from ._lock_files import Locked, read_lock, select_locked, write_lock
from ._lock_groups import merge_locks
from ._package_finder import PackageFinder, Project, by_version, catalog_of, directory_files
from ._prefetch import Prefetcher
from ._version_metadata import ReleaseMetadata, fetch_release_metadata
from ._wheel_checks import ReadWheel, WheelCheck

__all__ = [
    "MAX_DOWNLOAD", "REWRITTEN", "At", "Candidate", "CandidateEvaluator", "CatalogFile",
    "CoreMetadata", "Download", "Locked", "OwnBuild", "PackageFinder", "PlacedFile", "Prefetcher",
    "Project", "ReadWheel", "ReleaseMetadata", "Response", "Session", "Store", "WheelCheck",
    "by_version", "catalog_files", "catalog_of", "check_digests", "check_live", "directory_files",
    "download_files", "downloaded", "fetch_core_metadata", "fetch_metadata_file",
    "fetch_release_metadata", "is_pinned", "listed", "merge_locks", "opened", "read_lock",
    "read_response", "retry_after", "revalidated", "select_locked", "variants_of", "with_builds",
    "write_lock",
]  # fmt: skip
