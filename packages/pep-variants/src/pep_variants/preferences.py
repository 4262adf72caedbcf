"""Preferences of the user: settings files, variables, trust in providers, indexes."""

from ._choose.preferences import (
    ABORT,
    DEFAULT_CATALOG,
    NO_PROJECTS,
    NON_VARIANT_LABEL,
    SANDBOX_AUTO,
    SANDBOX_OFF,
    Preferences,
    configuration_tree,
    given_settings,
    is_catalog_path,
    preferences_from_options,
    read_configuration,
    unmatched,
)
from ._places import FILENAME, FOUND, Place, Role, active_environment, is_of_tool, places
from ._settings.listed_labels import label_comment, listed_labels, with_listed
from ._settings.loader import UserSettings, load_preferences, load_settings
from ._settings.trust import Approval, Approvals, Covered, approval_digest, covered_files
from ._sources import BEST_MATCH, FIRST_INDEX, Sources, local_files

__all__ = [
    "ABORT", "BEST_MATCH", "DEFAULT_CATALOG", "FILENAME", "FIRST_INDEX", "FOUND",
    "NON_VARIANT_LABEL", "NO_PROJECTS", "SANDBOX_AUTO", "SANDBOX_OFF", "Approval", "Approvals",
    "Covered", "Place", "Preferences", "Role", "Sources", "UserSettings", "active_environment",
    "approval_digest", "configuration_tree", "covered_files", "given_settings", "is_catalog_path",
    "is_of_tool", "label_comment", "listed_labels", "load_preferences", "load_settings",
    "local_files", "places", "preferences_from_options", "read_configuration", "unmatched",
    "with_listed",
]  # fmt: skip
