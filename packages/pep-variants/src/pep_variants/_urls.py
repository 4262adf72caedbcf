"""URLs of files: whether they are local, their path, their filename.

Imports little: installers look at every link with it.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit


def is_local(url: str) -> bool:
    """Return whether *url* is a ``file:`` URL.

    >>> from pep_variants.safe_files import is_local
    >>> is_local("file:///srv/wheels/"), is_local("https://host.example/")
    (True, False)
    """
    return url[:5].lower() == "file:"


def local_path(url: str) -> Path:
    """Return the path of a ``file:`` URL; on Windows its host becomes that of a UNC path."""
    from urllib.request import url2pathname  # takes as long as all of the engine's imports

    parts = urlsplit(url)
    host = f"//{parts.netloc}" if parts.netloc not in ("", "localhost") else ""
    return Path(url2pathname(host + parts.path))


def filename_of_url(url: str) -> str:
    """Return the last component of the path of *url*, percent-decoded; empty without one.

    Some mirrors encode the plus sign of a local version twice.

    Raises:
        ValueError: *url* cannot be parsed.

    >>> from pep_variants.safe_files import filename_of_url
    >>> filename_of_url("https://host.example/torch-2.8.0%2Bcu128-py3-none-any.whl?token=1")
    'torch-2.8.0+cu128-py3-none-any.whl'
    """
    filename = unquote(urlsplit(url).path.rpartition("/")[2])
    return filename.replace("%2B", "+").replace("%2b", "+") if "%2" in filename else filename
