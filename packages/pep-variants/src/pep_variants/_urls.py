"""URLs of files: whether they are local, and their path.

Imports little: installers look at every link with it.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit


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
