"""Distributions in a checkout of GitHub Pages, with its limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..stores.github_pages import LARGEST_FILE, LARGEST_SITE
from .errors import Refused
from .stored_files import StoredFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..stores.github_pages import GithubPagesStore
    from .target import Release


class PagesFiles(StoredFiles):
    """`StoredFiles` that refuse what GitHub refuses."""

    def __init__(self, store: GithubPagesStore, note: Callable[[str], None]) -> None:
        """Keep files in *store*; *note* shows the user what may not work."""
        super().__init__(store, 1)
        self._pages = store
        self._note = note

    def check(self, releases: Sequence[Release]) -> None:
        """Check the size of each file, and tell the size of the site if it is too large.

        Raises:
            Refused: a file is larger than what can be pushed.
        """
        items = [file.distribution for release in releases for file in release.files]
        large = [item for item in items if item.size > LARGEST_FILE]
        if large:
            raise Refused(
                f"{large[0].path}: {large[0].size:,} bytes: GitHub refuses files of more than "
                f"{LARGEST_FILE:,} in a repository: publish with --to "
                "github-releases:OWNER/REPOSITORY@TAG and the pages with --pages"
            )
        total = self._pages.total() + sum(item.size for item in items)
        if total > LARGEST_SITE:
            self._note(
                f"{self._pages.name}: will have {total:,} bytes, GitHub Pages serves up to "
                f"{LARGEST_SITE:,}: see --to github-releases:OWNER/REPOSITORY@TAG"
            )
