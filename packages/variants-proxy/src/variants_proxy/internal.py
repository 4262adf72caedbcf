"""Names of variants_proxy that only the distributions of this project import.

They may change in any release. `make lint` refuses imports from any other inner module by another
distribution. They are imported on first access, as the public names are.
"""

# ruff: noqa: F403 - for type checkers; __getattr__ gives the names of _NAMES alone

from typing import TYPE_CHECKING

from pep_variants.internal import lazy_name

if TYPE_CHECKING:
    from .choice.clients import *
    from .choice.in_place_names import *
    from .choice.remarks import *
    from .choice.views import *
    from .choice.wheel_environments import *
    from .client.host_machine import *
    from .client.key import *
    from .commands.catalog_remarks import *
    from .commands.cli import cli as cli
    from .commands.source_options import *
    from .errors import *
    from .headers import *
    from .projects.merged_metadata import *
    from .server.connections import *
    from .server.listening import *
    from .server.server import *
    from .service import *
    from .settings import *
    from .upstream.single_flight import *
    from .upstream.upstream_options import *

_NAMES = {
    "choice.clients": "ClientSettings",
    "choice.in_place_names": "FOLDER HERE wheel_at",
    "choice.remarks": "TAKEN",
    "choice.views": "Client ProjectView",
    "choice.wheel_environments": "ELSEWHERE environments",
    "client.host_machine": "described_machine",
    "client.key": "PYTHON TARGET",
    "commands.catalog_remarks": "excluded failures two_names",
    "commands.cli": "cli",
    "commands.source_options": "checked_catalog local_catalog",
    "errors": "ANSWERED InvalidKey ProxyError",
    "headers": "page_digest tag_of_unchanged",
    "projects.merged_metadata": "group_markers",
    "server.connections": "LimitedProtocol connection_limit",
    "server.listening": "LOOPBACK listen",
    "server.server": "limited_config",
    "service": "Service",
    "settings": "Kind",
    "upstream.single_flight": "gather_limited",
    "upstream.upstream_options": "PYPI absolute_url bare_url upstream_name",
}


def __getattr__(name: str) -> object:
    return lazy_name(__name__, _NAMES, name)
