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

TYPE_CHECKING = False  # for type checkers; `typing` would take time at every start

if TYPE_CHECKING:
    from .choose.explanation import Verdict, verdicts
    from .choose.markers import VariantContext, reduce_requirement
    from .choose.preferences import Preferences, preferences_from_options
    from .choose.ranking import Ranking, Reason, rank
    from .choose.selection import File, Selection, select
    from .detect.detector import Detector
    from .detect.machines import load_machine
    from .errors import MetadataError, VariantError
    from .formats.merging import merge
    from .formats.platform_file import load_platform, write_platform
    from .formats.reader import read_metadata
    from .formats.writer import write_metadata
    from .model.filename import WheelFilename, metadata_filename, parse_filename
    from .model.label import split_label
    from .model.metadata import Metadata
    from .model.platform import Platform, Support
    from .model.property import Property
    from .release import Failed, ReleaseFile, ReleaseReader, read_response
    from .settings.loader import load_preferences
    from .wheelfile.wheel import read_wheel_metadata

    __version__: str

__all__ = [
    "Detector",
    "Failed",
    "File",
    "Metadata",
    "MetadataError",
    "Platform",
    "Preferences",
    "Property",
    "Ranking",
    "Reason",
    "ReleaseFile",
    "ReleaseReader",
    "Selection",
    "Support",
    "VariantContext",
    "VariantError",
    "Verdict",
    "WheelFilename",
    "__version__",
    "load_machine",
    "load_platform",
    "load_preferences",
    "merge",
    "metadata_filename",
    "parse_filename",
    "preferences_from_options",
    "rank",
    "read_metadata",
    "read_response",
    "read_wheel_metadata",
    "reduce_requirement",
    "select",
    "split_label",
    "verdicts",
    "write_metadata",
    "write_platform",
]

_NAMES = {
    "choose.explanation": "Verdict verdicts",
    "choose.markers": "VariantContext reduce_requirement",
    "choose.preferences": "Preferences preferences_from_options",
    "choose.ranking": "Ranking Reason rank",
    "choose.selection": "File Selection select",
    "detect.detector": "Detector",
    "detect.machines": "load_machine",
    "errors": "MetadataError VariantError",
    "formats.merging": "merge",
    "formats.platform_file": "load_platform write_platform",
    "formats.reader": "read_metadata",
    "formats.writer": "write_metadata",
    "model.filename": "WheelFilename metadata_filename parse_filename",
    "model.label": "split_label",
    "model.metadata": "Metadata",
    "model.platform": "Platform Support",
    "model.property": "Property",
    "release": "Failed ReleaseFile ReleaseReader read_response",
    "settings.loader": "load_preferences",
    "wheelfile.wheel": "read_wheel_metadata",
}
"""The names of each module, imported on first access."""


def __getattr__(name: str) -> object:
    """Import the public *name* from its module (PEP 562)."""
    from .internal import lazy_name

    return lazy_name(__name__, _NAMES, name)


def __dir__() -> list[str]:
    """List the public names, imported or not."""
    return sorted(__all__)
