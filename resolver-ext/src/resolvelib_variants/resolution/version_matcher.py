"""Which versions of a project its specifiers allow, each question answered once."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from variants_index.finder import Project


class VersionMatcher:
    """Matches versions and specifiers, and caches the results.

    The same specifiers come up thousands of times in a resolution, and `packaging` is slow.
    """

    def __init__(self, projects: Callable[[str], Project], pre: bool) -> None:
        """Set up.

        Args:
            projects: gives all versions of a project.
            pre: take pre-releases as readily as final ones.
        """
        self._projects = projects
        self._pre = pre
        self._specifiers: dict[str, SpecifierSet] = {}
        self._matching: dict[tuple[str, frozenset[str]], tuple[list[Version], list[Version]]] = {}
        self._contained: dict[tuple[str, Version], bool] = {}

    def matching(self, project: str, texts: frozenset[str]) -> tuple[list[Version], list[Version]]:
        """Return the versions of *project* that all specifiers *texts* allow, newest first.

        A version of which the catalogue knows files with local versions counts if they allow one
        of these.

        Returns:
            Those to take; and the pre-releases, for when no file of the former can be used.
        """
        key = (project, texts)
        if key not in self._matching:
            known = self._projects(project)
            fitting = [
                version
                for version in known.versions
                if any(
                    self.allow(texts, spelled)
                    for spelled in (version, *known.published.get(version, ()))
                )
            ]
            if self._pre or any(self._specifier(text).prereleases for text in texts):
                self._matching[key] = fitting, []
            else:
                self._matching[key] = (
                    [version for version in fitting if not version.is_prerelease],
                    [version for version in fitting if version.is_prerelease],
                )
        return self._matching[key]

    def allow(self, texts: Iterable[str], version: Version) -> bool:
        """Return whether all specifiers *texts* allow *version*, pre-releases included."""
        return all(self.contains(text, version) for text in texts)

    def contains(self, text: str, version: Version) -> bool:
        """Return whether specifier *text* allows *version*, pre-releases included."""
        key = (text, version)
        if key not in self._contained:
            self._contained[key] = self._specifier(text).contains(version, prereleases=True)
        return self._contained[key]

    def _specifier(self, text: str) -> SpecifierSet:
        if text not in self._specifiers:
            self._specifiers[text] = SpecifierSet(text)
        return self._specifiers[text]
