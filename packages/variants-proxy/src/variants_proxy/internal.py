"""Names of variants_proxy that only the distributions of this project import.

They may change in any release. `make lint` refuses imports from any other inner module by another
distribution. They are imported on first access, as the public names are.
"""

# ruff: noqa: F403 - for type checkers; __getattr__ gives the names of _NAMES alone

from typing import TYPE_CHECKING

from pep_variants.internal import lazy_name

if TYPE_CHECKING:
    from .choice.in_place_names import *
    from .choice.judgement import *
    from .choice.offers import *
    from .choice.reports import *
    from .choice.wheel_environments import *
    from .clients import *
    from .commands.cli import cli as cli
    from .errors import *
    from .headers import *
    from .index_urls import *
    from .key import *
    from .pages.merged_metadata import *
    from .server.listening import *
    from .server.responses import *
    from .server.server import *
    from .service import *
    from .settings import *
    from .sharing import *

_NAMES = {
    "clients": "Client ClientSettings ShownHashes",
    "choice.in_place_names": "FOLDER wheel_at",
    "choice.judgement": "Judgement",
    "choice.offers": "ProjectView",
    "choice.reports": "IndexRelease IndexWheel ProjectReport VersionReport",
    "choice.wheel_environments": "ELSEWHERE environments",
    "commands.cli": "cli",
    "errors": "ANSWERED InvalidKey PassingFailure ProxyError Refusal",
    "headers": "page_digest tag_of_unchanged",
    "index_urls": "PYPI absolute_url bare_url upstream_name",
    "key": "PYTHON TARGET described_machine",
    "pages.merged_metadata": "group_markers",
    "server.listening": "LOOPBACK listen",
    "server.responses": "Responses",
    "server.server": "LimitedProtocol connection_limit limited_config",
    "service": "Service",
    "settings": "Kind",
    "sharing": "gather_limited",
}


def __getattr__(name: str) -> object:
    return lazy_name(__name__, _NAMES, name)
