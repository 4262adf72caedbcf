"""Package indexes with wheel variants: pages, files, targets, lock files and caches.

The names of ``__all__`` are the public interface (``docs/reference/stability.md``); every other
module and name is internal and may change in any release. They are imported on first access.

From an index to files on disk, one step after another:

1. `Session` fetches URLs of the user's `Sources`, with a `Store` as its cache.
2. `PackageFinder` finds the files of a `Project` in all sources.
3. `CandidateEvaluator` returns each that a `Target` can use as a `Candidate`, and their variant
   metadata; `fetch_core_metadata` returns what they depend on. `pep_variants.select` chooses.
4. `write_lock` writes what was resolved to a lock file; `read_lock` and `select_locked` return the
   files that a target installs from one.
5. `download_files` downloads and verifies them.

There is no resolver here. Every error is a `PackageIndexError` or a `pep_variants.VariantError`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pep_variants.internal import Sources

    from .cache import Store
    from .candidate import Candidate, CoreMetadata
    from .distribution_metadata import fetch_core_metadata
    from .downloads import Download, download_files
    from .errors import PackageIndexError
    from .evaluator import CandidateEvaluator
    from .http.session import Session
    from .lock_files import Locked, read_lock, select_locked, write_lock
    from .package_finder import PackageFinder, Project
    from .pages import Page, PageFile, html_page, json_page, read_page, read_projects
    from .prefetch import Prefetcher
    from .target import Target, host_target, load_target, make_target
    from .version_metadata import ReleaseMetadata, fetch_release_metadata

    __version__: str

__all__ = [
    "Candidate",
    "CandidateEvaluator",
    "CoreMetadata",
    "Download",
    "Locked",
    "PackageFinder",
    "PackageIndexError",
    "Page",
    "PageFile",
    "Prefetcher",
    "Project",
    "ReleaseMetadata",
    "Session",
    "Sources",
    "Store",
    "Target",
    "__version__",
    "download_files",
    "fetch_core_metadata",
    "fetch_release_metadata",
    "host_target",
    "html_page",
    "json_page",
    "load_target",
    "make_target",
    "read_lock",
    "read_page",
    "read_projects",
    "select_locked",
    "write_lock",
]

_NAMES = {
    "cache": "Store",
    "candidate": "Candidate CoreMetadata",
    "distribution_metadata": "fetch_core_metadata",
    "downloads": "Download download_files",
    "errors": "PackageIndexError",
    "evaluator": "CandidateEvaluator",
    "package_finder": "PackageFinder Project",
    "http.session": "Session",
    "lock_files": "Locked read_lock select_locked write_lock",
    "pages": "Page PageFile html_page json_page read_page read_projects",
    "pep_variants.internal": "Sources",
    "prefetch": "Prefetcher",
    "target": "Target host_target load_target make_target",
    "version_metadata": "ReleaseMetadata fetch_release_metadata",
}
"""The names of each module, imported on first access."""


def __getattr__(name: str) -> object:
    """Import the public *name* from its module (PEP 562)."""
    from pep_variants.internal import lazy_name

    return lazy_name(__name__, _NAMES, name)


def __dir__() -> list[str]:
    """List the public names, imported or not."""
    return sorted(__all__)
