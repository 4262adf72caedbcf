"""Package indexes with wheel variants: pages, files, targets, lock files and caches.

Its modules without a leading underscore are the public interface, with the names in their
``__all__`` (``docs/reference/stability.md``); all others may change in any release.

From an index to files on disk, one step after another:

1. `finder`: `Session` fetches URLs of the user's `Sources`, with a `Store` as its cache.
2. `PackageFinder` finds the files of a `Project` in all sources.
3. `CandidateEvaluator` returns each that a `Target` can use as a `Candidate`, and their variant
   metadata; `fetch_core_metadata` returns what they depend on. `pep_variants.selection` chooses.
4. `write_lock` writes what was resolved to a lock file; `read_lock` and `select_locked` return the
   files that a target installs from one.
5. `download_files` downloads and verifies them.

`target` is for machines, `pages` reads and writes index pages, `http` has errors and credentials,
`doctor` looks at machines and their installers, `uv_files` reads what uv is configured with. There
is no resolver here. Every error is a `http.PackageIndexError` or a
`pep_variants.errors.VariantError`.
"""

__version__ = "0.1.0"
