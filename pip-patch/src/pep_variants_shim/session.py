"""One pip command's dealings with variants: its preferences, what it found, chose and said.

A session hangs on the package finder of its command and lives as long. It is cheap to make: the
engine is only loaded when an index really lists variant wheels.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._vendor.pep_variants.markers import VariantContext
    from ._vendor.pep_variants.metadata import Metadata
    from ._vendor.pep_variants.platform import Platform
    from ._vendor.pep_variants.preferences import Preferences
    from .candidates import CandidateArranger

_ATTRIBUTE = "_pep_variants_session"

current: ContextVar[Session | None] = ContextVar("current", default=None)
"""The session of the running command, for the places that see no finder."""


def session_of(finder: object) -> Session | None:
    """Return the session of *finder*; None for finders of commands that do not install."""
    return getattr(finder, _ATTRIBUTE, None)


class Session:
    """What one command knows about variants.

    Attributes:
        labels: chosen labels by normalized project name, once pip has resolved.
    """

    def __init__(
        self, options: Mapping[str, Any], finder: Any, *, foreign: bool  # noqa: ANN401
    ) -> None:
        """Start a session and hang it on *finder*.

        Args:
            options: values of our options, by their names.
            finder: pip's ``PackageFinder`` of the command.
            foreign: the command is for another machine (``--platform`` and the like), which
                detection on this one says nothing about.
        """
        self.labels: dict[str, str] = {}
        self._options = options
        self._finder = finder
        self._foreign = foreign
        self._metadata_links: list[Any] = []
        self._preferences: Preferences | None = None
        self._arranger: CandidateArranger | None = None
        setattr(finder, _ATTRIBUTE, self)
        current.set(self)

    def add_metadata_link(self, link: Any) -> None:  # noqa: ANN401
        """Take note of an index's link to a metadata file; nothing is fetched."""
        self._metadata_links.append(link)

    def arrange(self, project: str, infos: Iterator[Any]) -> Iterator[Any]:
        """Yield pip's candidate infos of *project* with variants filtered and ordered."""
        return self._get_arranger().arrange(project, infos)

    def context(self, link: Any) -> Callable[[bytes | None], VariantContext]:  # noqa: ANN401
        """Return what gives the context for markers of the file at *link*."""
        return lambda variant_json: self._get_arranger().context(link, variant_json)

    def check(self, link: Any, read_text: Callable[[str], str]) -> None:  # noqa: ANN401
        """Check that the wheel that pip got from *link* is what was promised, and fits.

        Args:
            link: pip's link of the file.
            read_text: reads a file of the wheel's dist-info; raises FileNotFoundError.

        Raises:
            InstallationError: it is not, or does not.
        """
        from ._vendor.pep_variants.label import split_label

        label = split_label(link.filename)[1]
        if label is not None:
            self._get_arranger().check(link, label, read_text)

    def missing_variant(self) -> str | None:
        """Return why a forced label could not be had, None if that is not what went wrong."""
        if self._arranger is None:
            return None
        return "; ".join(str(error) for error in self._arranger.missing.values()) or None

    def note_chosen(self, requirements: Any) -> None:  # noqa: ANN401
        """Remember the labels in pip's resolved set of requirements."""
        from ._vendor.pep_variants.label import split_label

        for name, requirement in requirements.requirements.items():
            link = requirement.link
            label = split_label(link.filename)[1] if link is not None else None
            if label is not None:
                self.labels[name] = label

    @property
    def metadata_links(self) -> list[Any]:
        """Links to metadata files seen so far."""
        return self._metadata_links

    @property
    def finder(self) -> Any:  # noqa: ANN401
        """pip's finder that this session belongs to."""
        return self._finder

    def preferences(self) -> Preferences:
        """Return the user's preferences.

        Raises:
            InstallationError: one of them makes no sense.
        """
        if self._preferences is None:
            from pip._internal.exceptions import InstallationError

            from ._vendor.pep_variants.errors import PreferenceError
            from ._vendor.pep_variants.preferences import load_preferences

            try:
                self._preferences = load_preferences(self._options, os.environ)
            except PreferenceError as error:
                raise InstallationError(str(error)) from None
        return self._preferences

    def detection(self) -> Callable[[Metadata], Platform]:
        """Return what answers which values the target supports.

        Raises:
            InstallationError: the platform file cannot be read.
        """
        from pip._internal.exceptions import InstallationError

        from ._vendor.pep_variants.detection import Detector
        from ._vendor.pep_variants.errors import PlatformFileError
        from ._vendor.pep_variants.platform import Platform, load_platform

        preferences = self.preferences()
        platform = None
        if preferences.platform_file is not None:
            try:
                platform = load_platform(preferences.platform_file)
            except PlatformFileError as error:
                raise InstallationError(str(error)) from None
        elif self._foreign:
            platform = Platform(source="detection on this machine, which is not the target,")
        return Detector(enabled=preferences.enable, platform=platform).platform

    def _get_arranger(self) -> CandidateArranger:
        if self._arranger is None:
            from .candidates import CandidateArranger

            self._arranger = CandidateArranger(self)
        return self._arranger
