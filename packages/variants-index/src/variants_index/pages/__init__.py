"""Pages of the simple API: data, readers and writers of JSON (PEP 691) and HTML (PEP 503).

Pure functions between bytes and data. The names below are what other packages use.
"""

from .page import ACCEPT, API_VERSION, HTML, JSON, Page, PageFile
from .reader import read_page, read_projects
from .writer import (
    GENERATOR,
    html_link,
    html_metas,
    html_page,
    html_projects,
    json_page,
    json_projects,
)

__all__ = [
    "ACCEPT",
    "API_VERSION",
    "GENERATOR",
    "HTML",
    "JSON",
    "Page",
    "PageFile",
    "html_link",
    "html_metas",
    "html_page",
    "html_projects",
    "json_page",
    "json_projects",
    "read_page",
    "read_projects",
]
