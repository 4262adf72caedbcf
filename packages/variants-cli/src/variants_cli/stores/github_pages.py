"""A checkout of what GitHub Pages serves: a directory that git pushes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .directory import DirectoryStore

if TYPE_CHECKING:
    from .store import Headers, Version

NO_JEKYLL = ".nojekyll"
"""Without it, GitHub Pages runs Jekyll, which leaves out files whose names begin with a dot."""

LARGEST_FILE = 100 * 1024**2
"""GitHub refuses a push with a larger one."""

LARGEST_SITE = 1_000_000_000
"""What GitHub Pages serves of one site."""


class GithubPagesStore(DirectoryStore):
    """A directory with the file that has GitHub Pages serve everything as it is."""

    def put_if(self, path: str, data: bytes, version: Version | None, headers: Headers) -> None:
        """Write an object if it still has *version*, see `store.Store`."""
        if self.size(NO_JEKYLL) is None:
            self.put(NO_JEKYLL, b"", headers)
        super().put_if(path, data, version, headers)

    def total(self) -> int:
        """Return the bytes of all files that are served."""
        return sum(entry.size for entry in self.entries("") if not entry.path.startswith(".git/"))
