"""The simple API of an index, from the URL of its upload API.

Each index has its own rule. Where none is known, `/simple/` is appended, as most have it, and the
caller has to look whether there is something.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import urlsplit, urlunsplit

_HOSTS = {
    "upload.pypi.org": "https://pypi.org/simple/",
    "pypi.org": "https://pypi.org/simple/",
    "test.pypi.org": "https://test.pypi.org/simple/",
}

# Path of the upload API, and what replaces it.
_PATHS = (
    # Warehouse; Azure Artifacts.
    (re.compile(r"/(?:legacy|upload)/?$"), "/simple/"),
    # GitLab; Gitea and Forgejo; Artifactory; Nexus.
    (re.compile(r"(/packages/pypi|/api/packages/[^/]+/pypi|/api/pypi/[^/]+)/?$"), r"\1/simple/"),
    (re.compile(r"(/repository/[^/]+)/?$"), r"\1/simple/"),
)

_HOST_ENDINGS = (
    "-python.pkg.dev",  # Google Artifact Registry
    ".amazonaws.com",  # AWS CodeArtifact
)


class SimpleUrl(NamedTuple):
    """Where the pages are.

    Attributes:
        url: base URL of the simple API, with a slash at its end.
        certain: whether a rule says so; otherwise it is what most indexes have.
    """

    url: str
    certain: bool


def simple_url_of(upload_url: str, *, devpi: bool = False) -> SimpleUrl:
    """Return the URL of the simple API beside the upload API at *upload_url*.

    Args:
        upload_url: without credentials.
        devpi: it is that of a devpi server.
    """
    parts = urlsplit(upload_url)
    host, path = (parts.hostname or ""), parts.path
    if host in _HOSTS:
        return SimpleUrl(_HOSTS[host], certain=True)
    if host == "python.cloudsmith.io":
        repository = f"https://dl.cloudsmith.io/basic{path.rstrip('/')}/python/simple/"
        return SimpleUrl(repository, certain=True)

    def at(path: str, *, certain: bool) -> SimpleUrl:
        return SimpleUrl(urlunsplit((parts.scheme, parts.netloc, path, "", "")), certain)

    if devpi:
        return at(f"{path.rstrip('/')}/+simple/", certain=True)
    for pattern, replacement in _PATHS:
        if pattern.search(path):
            return at(pattern.sub(replacement, path), certain=True)
    return at(f"{path.rstrip('/')}/simple/", certain=host.endswith(_HOST_ENDINGS))


def with_slash(url: str) -> str:
    """Return *url*, the base of a simple API that a user gave, with a slash at its end."""
    return url if url.endswith("/") else f"{url}/"
