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

__version__ = "0.1.0"
