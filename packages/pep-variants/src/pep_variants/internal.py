"""Names of pep_variants that only the distributions of this project import.

They may change in any release. `make lint` refuses imports from any other inner module by another
distribution. They are imported on first access, as the public names are.
"""

# ruff: noqa: F403 - for type checkers; __getattr__ gives the names of _NAMES alone

TYPE_CHECKING = False  # for type checkers; `typing` would take time at every start

if TYPE_CHECKING:
    from collections.abc import Mapping

    from . import limits as limits
    from .choose.abi import *
    from .choose.explanation import *
    from .choose.leftovers import *
    from .choose.markers import *
    from .choose.options import *
    from .choose.preferences import *
    from .choose.rejections import *
    from .choose.selection import *
    from .choose.version_order import *
    from .detect.detector import *
    from .detect.known_machines import *
    from .detect.machines import *
    from .digests import *
    from .directories import *
    from .errors import *
    from .files import *
    from .formats import toml as toml
    from .formats.merging import *
    from .formats.platform_file import *
    from .formats.reader import *
    from .formats.toml import *
    from .formats.tree import *
    from .gc_pause import *
    from .limits import *
    from .lock.lock_selection import *
    from .lock.wheels import *
    from .model.environment import *
    from .model.filename import *
    from .model.generation import *
    from .model.label import *
    from .model.metadata import *
    from .model.property import *
    from .ownership import *
    from .providers.base import *
    from .providers.process import *
    from .providers.registry import *
    from .providers.surroundings import *
    from .release import *
    from .settings.loader import *
    from .settings.places import *
    from .settings.trust import *
    from .sources import *
    from .timeouts import *
    from .urls import *
    from .wheelfile.core_metadata import *
    from .wheelfile.installed import *
    from .wheelfile.lazy_file import *
    from .wheelfile.record import *
    from .wheelfile.rewriting import *
    from .wheelfile.sdist import *
    from .wheelfile.wheel import *
    from .wheelfile.zip_reading import *
    from .wheelfile.zip_rewriting import *

_NAMES = {
    "": "limits",
    "choose.abi": "AbiDependency abi_dependencies abi_projects covers is_release supporting",
    "choose.explanation": "MORE answered asked notices ranking_tree table_lines why_chosen why_not",
    "choose.leftovers": "Repairs repairs required_by rivals unneeded",
    "choose.markers": (
        "NON_VARIANT Term all_of any_of conditional_dependencies is_for_extra may_have_terms "
        "metadata_terms reduce_metadata reduce_requirements require_extras split_requirement "
        "uses_variant_terms variant_terms"
    ),
    "choose.options": "OPTIONS Option",
    "choose.preferences": (
        "ABORT DEFAULT_CATALOG NON_VARIANT_LABEL NO_PROJECTS SANDBOX_AUTO SANDBOX_OFF "
        "configuration_tree given_settings is_catalog_path read_configuration unmatched"
    ),
    "choose.rejections": (
        "Advice advise choice_line is_unfit nothing_fits passed_over required_by_marker "
        "why_not_better why_this why_unfit"
    ),
    "choose.selection": "by_tags missing_variant problems_of",
    "choose.version_order": (
        "Admitted NewestBuild VersionNote advise_over_releases has_accelerator is_accelerated "
        "newest_build"
    ),
    "detect.detector": "Answer PROVIDER_ID_LENGTH Refused provider_id",
    "detect.known_machines": "BY_NAME KNOWN_MACHINES KnownMachine",
    "detect.machines": "CPU WORDS machine_text names_file parse_facts",
    "digests": "Digests",
    "directories": "VARIABLE cache_directory",
    "errors": (
        "CatalogError EXIT_CODE InconsistentMetadata InvalidMarker InvalidProperty InvalidSdist "
        "InvalidWheel InvalidWheelFilename LockError NoSuchVariant PlatformFileError PluginFailed "
        "PreferenceError ProviderError UnsupportedSchema cut fault_report in_words listed "
        "log_decisions printable redacted shortened some without_userinfo"
    ),
    "files": "patiently read_regular read_text replacing write_if_changed",
    "formats": "toml",
    "formats.merging": "check_promise merge_all",
    "formats.platform_file": "read_platform",
    "formats.reader": "metadata_from_tree read_pyproject",
    "formats.toml": "loads",
    "formats.tree": "PropertyTree Tree joined",
    "gc_pause": "paused",
    "limits": (
        "ADVICE_SECONDS CATALOG_BYTES CATALOG_ENTRY_BYTES CATALOG_PROJECTS CATALOG_VARIANTS "
        "CORE_METADATA_BYTES CORE_METADATA_LINES CORE_REQUIREMENTS CORE_REQUIREMENTS_CHARACTERS "
        "DOCUMENT_BYTES FILENAME_CHARACTERS LOCK_BYTES LOCK_TEXT_BYTES PAGE_BYTES "
        "PLUGIN_ENVIRONMENTS PLUGIN_FEATURES PLUGIN_FILE_BYTES PLUGIN_MEMORY_BYTES "
        "PLUGIN_PROCESSES PLUGIN_SECONDS PLUGIN_THREADS PLUGIN_VALUES PROJECTS_BYTES "
        "PYPROJECT_BYTES RECORD_BYTES REQUIREMENTS_BYTES REQUIREMENT_LENGTH REQUIREMENT_LINES "
        "SETTINGS_BYTES URL_CHARACTERS VALUES json_values"
    ),
    "lock.lock_selection": (
        "LockChoice Machine REQUIREMENTS REQUIRES_DIST TOOL select_packages write_table"
    ),
    "lock.wheels": "KEY filename_of labels_of lists_variants without_labels",
    "model.environment": "LEGACY LINUX MACOS modern_tag system_markers target_environment",
    "model.filename": "parse_metadata_filename read_version",
    "model.generation": "GENERATIONS Generation V0_1_1 V0_2_0 schema_version",
    "model.label": (
        "LABEL METADATA_SUFFIX NULL_LABEL ORIGIN_FILE VARIANT_FILE ZERO_LABEL check_label"
    ),
    "model.metadata": "ProviderInfo",
    "model.property": (
        "ABI_DEPENDENCY Features NAME Properties VALUE group_properties iter_properties "
        "properties_tree"
    ),
    "ownership": "NotPrivate check_private make_private",
    "providers.base": "Vendor recorded",
    "providers.process": "NOISE_BYTES run",
    "providers.registry": (
        "ACCELERATORS BUILTIN_NAMESPACES Examined KNOWN KnownProvider examine_host find_known"
    ),
    "providers.surroundings": "Surroundings why_invisible",
    "release": "Absent Fetch FetchAnswer LocalFile MAY_PASS NoRanges Whole",
    "settings.loader": "Settings load_settings",
    "settings.places": "FILENAME FOUND Place Role active_environment any_file is_of_tool places",
    "settings.trust": (
        "AllowList Allowed Approval Approvals Covered Wanted approval_digest covered_files"
    ),
    "sources": "BEST_MATCH FIRST_INDEX Sources local_files",
    "timeouts": "within",
    "urls": "filename_of_url is_local local_path",
    "wheelfile.core_metadata": "METADATA_FILE first_field iter_fields read_fields requirements_of",
    "wheelfile.installed": (
        "Installed OwnershipProblem find_installed metadata_field ownership_problems"
    ),
    "wheelfile.lazy_file": (
        "FIRST_PART Part PartialFile REFUSED Range RangeRefused is_refused last_part "
        "read_content_range"
    ),
    "wheelfile.record": "RECORD_FILE Row SIGNATURE_FILES digest_of read_record record_line",
    "wheelfile.rewriting": "Edits open_source with_metadata",
    "wheelfile.sdist": "read_pkg_info",
    "wheelfile.wheel": "WheelContents open_wheel",
    "wheelfile.zip_reading": "read_entry",
    "wheelfile.zip_rewriting": "Piece Rewrite",
}
"""The shared names of each module or package; a name may be that of a module."""


def lazy_name(face: str, names: "Mapping[str, str]", name: str) -> object:
    """Return what ``__getattr__`` (PEP 562) of a face gives: a package, or its module ``internal``.

    ``__version__`` is that of the distribution. A bundled copy has no metadata: the package that
    bundles it knows the version.

    Args:
        face: its ``__name__``.
        names: the names that each of its modules shares, with spaces between. A module of another
            distribution has its whole name.
        name: the one that is asked for. A package keeps what it is given.
    """
    package = face.removesuffix(".internal")
    module = next((key for key in names if name in names[key].split()), None)
    if module is None and name != "__version__":
        raise AttributeError(f"module {face!r} has no attribute {name!r}")
    import sys
    from importlib import import_module

    value: object
    if module is None:
        if bundle := package.rpartition(".")[0]:
            value = import_module(bundle).VERSION
        else:
            from importlib.metadata import version

            value = version(package.replace("_", "-"))
    else:
        path = module if module.startswith("pep_variants.") else f"{package}.{module}"
        found = import_module(path.rstrip("."))
        if not hasattr(found, name):
            import_module(f"{found.__name__}.{name}")
        value = getattr(found, name)
    if face == package:
        setattr(sys.modules[face], name, value)
    return value


def __getattr__(name: str) -> object:
    return lazy_name(__name__, _NAMES, name)
