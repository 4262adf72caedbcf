"""The compatibility engine for wheel variants (PEP 817, PEP 825): no network, no installer.

Its modules without a leading underscore are the public interface, with the names in their
``__all__`` (``docs/reference/stability.md``); all others may change in any release.

From files to a choice, one step after another:

1. `metadata`: `ReleaseReader` finds the variant metadata of a version, over any HTTP client;
   `read_metadata` reads every generation of the format into `Metadata`.
2. `machines`: `Detector` says which properties this machine supports, as a `Platform`;
   `load_machine` gives the same for another one: of a platform file, a name or facts.
3. `selection`: `rank` judges and orders the variants, with the `Preferences` of the user
   (`preferences`); `select` does all of this for each `File` of one version; `verdicts` puts the
   result into words.
4. `markers`: `reduce_requirement` evaluates the variant markers of the chosen wheel's dependencies.

`labels` tells variant wheels from others, `wheel_files` reads and rewrites wheels, `lock_entries`
is for lock files, `safe_files` for files that others may have written, `options` for the options
of clients, `limits` for what untrusted input may cost. Every error is a `VariantError` (`errors`).
The package itself imports nothing.
"""

__version__ = "0.1.0"
