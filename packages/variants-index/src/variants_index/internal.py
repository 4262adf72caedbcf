"""Names of variants_index that only the distributions of this project import.

They may change in any release. `make lint` refuses imports from any other inner module by another
distribution. They are imported on first access, as the public names are.
"""

# ruff: noqa: F403 - for type checkers; __getattr__ gives the names of _NAMES alone

from typing import TYPE_CHECKING

from pep_variants.internal import lazy_name

if TYPE_CHECKING:
    from .catalog_checks import *
    from .doctor import *
    from .errors import *
    from .evaluator import *
    from .finder import *
    from .http.bodies import *
    from .http.credentials import *
    from .http.failures import *
    from .http.ranges import *
    from .http.responses import *
    from .http.user_proxies import *
    from .pages import *
    from .pages.links import *
    from .platforms import *
    from .release_metadata import *
    from .source_tree import *
    from .target import *
    from .uv_files import *

_NAMES = {
    "catalog_checks": "LiveCheck",
    "doctor": (
        "Findings Part Problem State UNKNOWN catalog_hints common_parts environment_problems "
        "installers_part lines report_schema settings_of state_of state_problem uv_part"
    ),
    "errors": (
        "AccessDenied BadResponse InvalidPage InvalidSourceTree InvalidUrl NotFound "
        "TargetError Unreachable UntrustedServer UnusableDistribution"
    ),
    "evaluator": "REWRITTEN is_pinned",
    "finder": "by_version",
    "http.bodies": "CHUNK check_digests",
    "http.credentials": "Credentials split_credentials",
    "http.failures": "BUSY certificate_error retry_after",
    "http.ranges": "MAX_DOWNLOAD opened",
    "http.responses": "Response",
    "http.user_proxies": "InvalidProxy UserProxy proxy_for read",
    "pages": "ACCEPT GENERATOR HTML JSON html_link html_metas html_projects json_projects",
    "pages.links": "Links",
    "platforms": "covers environment_of is_for_platform platform_of_namespaces",
    "release_metadata": "answer release_file",
    "source_tree": "read_source_tree",
    "target": "read_target",
    "uv_files": (
        "UvTable configuration_files is_on project_settings project_table read_toml "
        "script_tree settings_tables table_of workspace_root"
    ),
}


def __getattr__(name: str) -> object:
    return lazy_name(__name__, _NAMES, name)
