"""The compatibility engine for wheel variants (PEP 817, PEP 825): no network, no installer.

The names of ``__all__`` are the public interface (``docs/reference/stability.md``); every other
module and name is internal and may change in any release. They are imported on first access:
installers import this package at every start.

From files to a choice, one step after another:

1. `ReleaseReader` finds the variant metadata of a version, over any HTTP client.
2. `read_metadata` reads variant metadata of every generation of the format into `Metadata`.
3. `Detector` says which properties this machine supports, as a `Platform`; `load_machine` gives
   the same for another one: of a platform file, a name or facts.
4. `rank` judges and orders the variants, with the `Preferences` of the user; `verdicts` puts the
   result into words.
5. `select` does all of this for each `File` of one version.
6. `reduce_requirement` evaluates the variant markers of the chosen wheel's dependencies.

Every error is a `VariantError`.
"""

__version__ = "0.1.0"
