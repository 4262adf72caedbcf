"""One pip command's dealings with variants: what was asked for, found, chosen and said.

A session hangs on the package finder of its command and lives as long. It is cheap to make: the
engine is only loaded when an index really lists variant wheels of a project that is wanted, or
when there are options to understand.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from pip._internal.exceptions import DistributionNotFound, InstallationError, PipError
from pip._vendor.packaging.utils import canonicalize_name

from pep_variants.label import split_label

from . import BUILT_IN, LOCAL
from .hook import switch

if TYPE_CHECKING:
    from pep_variants.markers import VariantContext
    from pep_variants.metadata import Metadata
    from pep_variants.platform import Platform
    from pep_variants.preferences import Preferences

    from .candidates import CandidateArranger

logger = logging.getLogger("pip.variants")

_ATTRIBUTE = "_pep_variants_session"

_current: ContextVar[Session | None] = ContextVar("current", default=None)
_prepared: ContextVar[Any] = ContextVar("prepared", default=None)

Info = tuple[Any, Callable[[], Any]]
"""What pip passes around before it builds a candidate: the version, and a partial of the factory's
method that makes the candidate of a link."""


class Fault(InstallationError):  # type: ignore[misc] # pip is not there for mypy
    """Something that this software should not have done, said without a traceback."""

    def __init__(self, error: Exception) -> None:
        """Say what *error* was."""
        super().__init__(f"A fault in pep-variants-shim: {type(error).__name__}: {error}")


@contextmanager
def faults() -> Iterator[None]:
    """Turn what is no error of pip's into a `Fault`.

    Raises:
        Fault: something went wrong.
    """
    try:
        yield
    except PipError:
        raise
    except Exception as error:
        raise Fault(error) from error


def session_of(finder: object) -> Session | None:
    """Return the session of *finder*; None for finders of commands that take no variants."""
    return getattr(finder, _ATTRIBUTE, None) if switch.on else None


@contextmanager
def preparing(link: Any) -> Iterator[None]:
    """Remember, for `marker_context`, that pip is at work on the file at *link*."""
    token = _prepared.set(link)
    try:
        yield
    finally:
        _prepared.reset(token)


def current_labels() -> Mapping[str, str]:
    """Return the labels that the running command has chosen, by normalized project name."""
    session = _current.get()
    return {} if session is None else session.labels


def marker_context(variant_json: bytes | None, *, values: bool) -> VariantContext:
    """Return what the variant markers of the metadata at hand are evaluated against.

    While a file is prepared that is the decision about it. Otherwise, for files that are taken up
    again later and for installed distributions, it is what their own ``variant.json`` says, which
    was checked when the file was prepared.

    Args:
        variant_json: contents of that file, None if there is none.
        values: a marker asks for ``variant_properties``. Only then it matters what the platform
            supports: of all that is installed every feature is, by some value.

    Raises:
        InstallationError: the user's preferences make no sense, or a `Fault`.
    """
    with faults():
        from .candidates import context_of

        session, link = _current.get(), _prepared.get()
        if session is not None and link is not None:
            return session._get_arranger().context(link, variant_json, values=values)
        detect = None if session is None else session._get_arranger().detect
        return context_of(variant_json, detect, values=values)


class Session:
    """What one command knows about variants.

    Attributes:
        resolving: pip's resolver is at work, which arranges candidates. Whoever else looks for
            candidates must not see variant wheels.
        labels: chosen labels by normalized project name, once pip has resolved.
        preferences: what the user asked for, None as long as nothing was needed of it.
    """

    def __init__(
        self,
        options: Mapping[str, Any],
        finder: Any,
        *,
        foreign: bool,
    ) -> None:
        """Start a session and hang it on *finder*, unless variants are switched off.

        Args:
            options: values of our options, by their names.
            finder: pip's ``PackageFinder`` of the command.
            foreign: the command is for another machine (``--platform`` and the like), which
                detection on this one says nothing about.

        Raises:
            InstallationError: one of the options makes no sense.
        """
        self.resolving = False
        self.labels: dict[str, str] = {}
        self.preferences: Preferences | None = None
        self._options = options
        self._finder = finder
        self._foreign = foreign
        self._metadata_links: dict[str, list[Any]] = {}
        self._with_variants: set[str] = set()
        self._arranger: CandidateArranger | None = None
        self._warned = False
        # What is misspelled is an error whether there are variants or not.
        given = any(options.values()) or any(name.startswith("VARIANTS_") for name in os.environ)
        if given and not self._load_preferences().use_variants:
            return
        setattr(finder, _ATTRIBUTE, self)
        _current.set(self)

    def note_metadata(self, link: Any) -> None:
        """Take note of an index's link to a metadata file; nothing is fetched."""
        self._metadata_links.setdefault(source_of(link), []).append(link)

    def note_variants(self, project: str) -> None:
        """Take note that there are variant wheels of *project*."""
        self._with_variants.add(canonicalize_name(project))

    def arrange(self, project: str, infos: Iterator[Info]) -> Iterator[Info]:
        """Return pip's candidate infos of *project* with variants filtered and ordered."""
        if project not in self._with_variants and not self._forces(project):
            return infos
        try:
            arranger = self._get_arranger()
        except Fault as error:  # it must cost the variants, never the install
            if self._forces(project):
                raise
            if not self._warned:
                self._warned = True
                logger.warning("Variant wheels are ignored. %s", error)
            return (info for info in infos if split_label(link_of(info).filename)[1] is None)
        return arranger.arrange(project, infos)

    def check(self, link: Any, label: str, read_text: Callable[[str], str]) -> None:
        """Check that the wheel that pip got from *link* is what was promised, and fits.

        Args:
            link: pip's link of the file.
            label: the label in its name.
            read_text: reads a file of the wheel's dist-info; raises FileNotFoundError.

        Raises:
            InstallationError: it is not, or does not.
        """
        with faults():
            self._get_arranger().check(link, label, read_text)

    @contextmanager
    def explaining(self) -> Iterator[None]:
        """If pip finds no solution, say so if it is for a label that the user forced."""
        try:
            yield
        except DistributionNotFound as error:
            missing = self._arranger.missing if self._arranger is not None else {}
            if not missing:
                raise
            raise InstallationError("; ".join(map(str, missing.values()))) from error

    def note_result(self, candidates: Mapping[str, Any], requirements: Mapping[str, Any]) -> None:
        """Take note of what pip has resolved to.

        Args:
            candidates: pip's candidates, installed ones included.
            requirements: what it is going to install, by normalized project name.

        Raises:
            InstallationError: what is installed is not the variant that the user forced.
        """
        for name, requirement in requirements.items():
            label = split_label(requirement.link.filename)[1] if requirement.link else None
            if label is not None:
                self.labels[name] = label
        if BUILT_IN and "pip" in requirements:
            _tell_of_new_pip(requirements["pip"])
        if self.preferences is None or not self.preferences.forced:
            return
        from .candidates import installed_label

        for candidate in candidates.values():
            if not candidate.is_installed:
                continue
            forced = self.preferences.forced.get(candidate.project_name)
            if forced is None:
                continue
            installed = installed_label(candidate.dist)
            if installed != forced:
                raise InstallationError(
                    f"{candidate.project_name} {candidate.version} is installed already, "
                    f"{f'as variant {installed}' if installed else 'without variant'}, not as "
                    f"--variant {candidate.project_name}={forced} asks for: "
                    "add --force-reinstall to replace it"
                )

    def _forces(self, project: str) -> bool:
        return self.preferences is not None and project in self.preferences.forced

    def _load_preferences(self) -> Preferences:
        if self.preferences is None:
            with faults():
                from pep_variants.errors import PreferenceError
                from pep_variants.preferences import load_preferences

                try:
                    self.preferences = load_preferences(self._options, os.environ)
                except PreferenceError as error:
                    raise InstallationError(str(error)) from None
        return self.preferences

    def _detection(self) -> Callable[[Metadata], Platform]:
        from pep_variants.detection import Detector
        from pep_variants.errors import PlatformFileError
        from pep_variants.platform import Platform, load_platform

        preferences = self._load_preferences()
        platform = None
        if preferences.platform_file is not None:
            try:
                platform = load_platform(preferences.platform_file)
            except PlatformFileError as error:
                raise InstallationError(str(error)) from None
        elif self._foreign:
            platform = Platform(source="detection on this machine, which is not the target,")
        runner = None
        if preferences.allow_providers and platform is None:
            from pep_variants.plugins import PluginRunner

            from .sources import sources_of

            runner = PluginRunner(preferences.allow_providers, sources_of(self._finder))
        return Detector(enabled=preferences.enable, platform=platform, runner=runner).platform

    def _get_arranger(self) -> CandidateArranger:
        if self._arranger is None:
            with faults():
                from .candidates import CandidateArranger

                self._arranger = CandidateArranger(
                    self._metadata_links,
                    network=self._finder._link_collector.session,
                    detect=self._detection(),
                    preferences=self._load_preferences(),
                )
        return self._arranger


def _tell_of_new_pip(requirement: Any) -> None:
    """Say so if the pip that has this built in is going to be replaced by one that has not."""
    from importlib.util import find_spec

    from pip._internal.metadata import get_default_environment

    installed = get_default_environment().get_distribution("pip")
    if installed is None or not requirement.should_reinstall:
        return
    before, after = str(installed.version), str(requirement.metadata["Version"])
    # The shim, where it is, is beside any pip.
    if LOCAL in before and LOCAL not in after and find_spec("pep_variants_shim") is None:
        logger.warning(
            "pip %s has no wheel variants built in, as pip %s has: "
            "pip install pep-variants-shim to keep them",
            after,
            before,
        )


def link_of(info: Info) -> Any:
    """Return the link that *info* makes a candidate of."""
    return info[1].keywords["link"]  # type: ignore[attr-defined]


def source_of(link: Any) -> str:
    """Return where pip found *link*: the URL of the page, or the folder of a local file."""
    page = link.comes_from
    if page is None:
        return str(link.url_without_fragment).rpartition("/")[0]
    return str(page)
