"""The proxy's answers for a program in the same process."""

from ._choice.judgement import Judgement
from ._choice.offers import ProjectView
from ._choice.reports import IndexRelease, IndexWheel, ProjectReport, VersionReport
from ._choice.wheel_environments import share_machines
from ._clients import Client
from ._pages.merged_metadata import group_markers
from ._server.responses import Responses
from ._service import Service

__all__ = [
    "Client", "IndexRelease", "IndexWheel", "Judgement", "ProjectReport", "ProjectView",
    "Responses", "Service", "VersionReport", "group_markers", "share_machines",
]  # fmt: skip
