"""Names of variants_index that only the distributions of this project import.

They may change in any release. `make lint` refuses imports from any other inner module by another
distribution. They are imported on first access, as the public names are.
"""

# ruff: noqa: F403 - for type checkers; __getattr__ gives the names of _NAMES alone

from typing import TYPE_CHECKING

from pep_variants.internal import lazy_name

if TYPE_CHECKING:
    from .catalog_builds import *
    from .catalog_checks import *
    from .distribution_metadata import *
    from .doctor import *
    from .downloads import *
    from .errors import *
    from .evaluator import *
    from .http.credentials import *
    from .http.responses import *
    from .http.user_proxies import *
    from .package_finder import *
    from .pages import *
    from .pages.page import *
    from .target import *
    from .uv_files import *

_NAMES = {
    "catalog_builds": "At CatalogFile PlacedFile catalog_files listed",
    "catalog_checks": "check_live",
    "distribution_metadata": "fetch_metadata_file",
    "doctor": (
        "Checkup Commands MEANINGS Compared Comparison Environment Findings Part Pip Problem "
        "SYSTEM agreed catalog_problems choose_pip common_parts compare_all "
        "environment_part find_environment find_pips installers_part lines package_problems "
        "packages_part pip_commands pip_settings programs report_schema settings_of "
        "shown_states states_tree uv_commands uv_part wants"
    ),
    "downloads": "MAX_DOWNLOAD opened",
    "errors": (
        "AccessDenied BadResponse InvalidPage InvalidUrl NotFound TargetError TimedOut Unreachable "
        "UntrustedServer UnusableDistribution"
    ),
    "evaluator": "REWRITTEN is_pinned",
    "package_finder": "by_version catalog_of directory_files",
    "http.credentials": "Credentials split_credentials",
    "http.responses": "BUSY Response check_digests read_response retry_after revalidated",
    "http.user_proxies": "InvalidProxy PORTS UserProxy proxy_for read",
    "pages": "ACCEPT GENERATOR HTML JSON html_projects json_projects",
    "pages.page": "Links",
    "target": (
        "MACS WINDOWS covers environment_of is_for_platform meets_python platform_of_namespaces "
        "read_target"
    ),
    "uv_files": (
        "UvTable is_on project_settings project_table read_toml script_tree settings_tables "
        "system_path table_of workspace_root"
    ),
}


def __getattr__(name: str) -> object:
    return lazy_name(__name__, _NAMES, name)
