"""One pip command's dealings with variants: what was asked for, found, chosen and said.

A session hangs on the package finder of its command and lives as long. It is cheap to make: the
engine is only loaded when an index really lists variant wheels of a project that is wanted, or
when there are options to understand.
"""

from __future__ import annotations

import enum
import gc
import logging
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from pip._internal.exceptions import DistributionNotFound, InstallationError, PipError
from pip._vendor.packaging.utils import canonicalize_name

from pep_variants.label import VARIANT_FILE, split_label

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

_PASSING_TIMEOUT = 5.0

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


def label_of(dist: Any) -> str:
    """Return the label of an installed distribution, empty if it is no variant.

    For showing it: whatever is wrong with the distribution, it has no label then.
    """
    try:
        dist.read_text(VARIANT_FILE)
    except Exception:
        return ""
    try:
        from .candidates import installed_label

        return installed_label(dist) or ""
    except Exception:
        logger.debug("the label of %s cannot be told", dist, exc_info=True)
        return ""


@contextmanager
def preparing(link: Any) -> Iterator[None]:
    """Remember, for `marker_context`, that pip is at work on the file at *link*."""
    token = _prepared.set(link)
    try:
        yield
    finally:
        _prepared.reset(token)


def current_session() -> Session | None:
    """Return the session of the running command, None if variants are switched off."""
    return _current.get() if switch.on else None


def current_labels() -> Mapping[str, str]:
    """Return the labels that the running command has chosen, by normalized project name."""
    session = _current.get()
    return {} if session is None else session.labels


def marker_context(
    variant_json: bytes | None, *, values: bool, decided: bytes | None = None
) -> VariantContext:
    """Return what the variant markers of the metadata at hand are evaluated against.

    While a file is prepared that is the decision about it. Otherwise, for files that are taken up
    again later and for installed distributions, it is what their own ``variant.json`` says, which
    was checked when the file was prepared.

    Args:
        variant_json: contents of that file, None if there is none.
        values: a marker asks for ``variant_properties``. Only then it matters what the platform
            supports: of all that is installed every feature is, by some value.
        decided: contents of the file of `decision` of an installed distribution, None without.

    Raises:
        InstallationError: the user's preferences make no sense, or a `Fault`.
    """
    with faults():
        from .candidates import context_of

        session, link = _current.get(), _prepared.get()
        if session is not None and link is not None:
            context = session._get_arranger().context(link, variant_json, values=values)
            if values:
                session.note_decision(link, variant_json, context)
            return context
        if decided is not None:
            return context_of(decided, None, values=False)
        detect = None if session is None else session._get_arranger().detect
        return context_of(variant_json, detect, values=values)


class Use(enum.Enum):
    """What a command does with variant wheels.

    Attributes:
        CHOOSE: resolve among them.
        CHECK: take those that the user names, after a check; the legacy resolver can do no more.
        LIST: tell which versions there are.
    """

    CHOOSE = enum.auto()
    CHECK = enum.auto()
    LIST = enum.auto()


class Session:
    """What one command knows about variants.

    Attributes:
        resolving: pip's resolver is at work, which arranges candidates. Whoever else looks for
            candidates must not see variant wheels.
        labels: chosen labels by normalized project name, once pip has resolved.
        decisions: what to keep with installed projects, by normalized name, see `decision`.
        preferences: what the user asked for, None as long as nothing was needed of it.
    """

    def __init__(
        self,
        options: Mapping[str, Any],
        finder: Any,
        *,
        use: Use = Use.CHOOSE,
        foreign: bool = False,
    ) -> None:
        """Start a session and hang it on *finder*, unless variants are switched off.

        Args:
            options: values of our options, by their names.
            finder: pip's ``PackageFinder`` of the command.
            use: what the command does with variant wheels.
            foreign: the command is for another machine (``--platform`` and the like), which
                detection on this one says nothing about.

        Raises:
            InstallationError: one of the options makes no sense.
        """
        self.resolving = False
        self.labels: dict[str, str] = {}
        self.decisions: dict[str, str] = {}
        self.preferences: Preferences | None = None
        self._options = options
        self._finder = finder
        self._use = use
        self._foreign = foreign
        self._metadata_links: dict[str, list[Any]] = {}
        self._with_variants: set[str] = set()
        self._arranger: CandidateArranger | None = None
        self._provider: Any = None
        self._warned = False
        # What is misspelled is an error whether there are variants or not.
        given = any(options.values()) or any(name.startswith("VARIANTS_") for name in os.environ)
        if given and not self._load_preferences().use_variants:
            return
        setattr(finder, _ATTRIBUTE, self)
        _current.set(self)

    def note_provider(self, provider: Any) -> None:
        """Take note of what pip's resolver asks; it is followed when there are variants."""
        self._provider = provider
        if self._arranger is not None:
            self._arranger.follow(provider)

    def note_metadata(self, link: Any) -> None:
        """Take note of an index's link to a metadata file; nothing is fetched."""
        self._metadata_links.setdefault(source_of(link), []).append(link)

    def note_decision(self, link: Any, variant_json: bytes | None, context: VariantContext) -> None:
        """Take note of what markers of the wheel at *link* were evaluated against."""
        from .decision import decision_text

        text = decision_text(variant_json, context)
        if text is not None:
            self.decisions[canonicalize_name(link.filename.partition("-")[0])] = text

    def lists_variants(self) -> bool:
        """Return whether who looks for candidates himself sees variant wheels, and say why not.

        Programs that use parts of pip cannot judge them, and neither can the legacy resolver.
        """
        if self._use is Use.CHECK and not self._warned:
            self._warned = True
            logger.warning(
                "Variant wheels are ignored: the legacy resolver cannot choose among them"
            )
        return self._use is Use.LIST and self._load_preferences().use_variants

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

    def locked(self, tree: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the lock file *tree* with the metadata of the variant wheels in it."""
        from .locking import KEY, labels, table_of

        packages = []
        for package in tree["packages"]:
            ((label, *_),) = ([*labels(package)] or [None],)
            metadata = None
            if label is not None:
                metadata = self._get_arranger().metadata(str(package["wheels"][0].get("url")))
            try:
                packages.append(
                    package
                    if label is None or metadata is None
                    else {**package, KEY: table_of(metadata, label)}
                )
            except ValueError as error:
                logger.warning("%s is locked without %s. %s", package["name"], KEY, error)
                packages.append(package)
        return {**tree, "packages": packages}

    def select_locked(self, package: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the wheels of a lock file's *package* that fit this machine best.

        Raises:
            InstallationError: none does, and there is nothing else of it; or a `Fault`.
        """
        with faults():
            return self._get_arranger().select_locked(package)

    def note_result(
        self,
        candidates: Mapping[str, Any],
        requirements: Mapping[str, Any],
        wanted: Collection[str],
    ) -> None:
        """Take note of what pip has resolved to.

        Args:
            candidates: pip's candidates, installed ones included.
            requirements: what it is going to install, by normalized project name.
            wanted: projects that the user named.

        Raises:
            InstallationError: what is installed is not the variant that the user forced.
        """
        for name, requirement in requirements.items():
            label = split_label(requirement.link.filename)[1] if requirement.link else None
            if label is not None:
                self.labels[name] = label
        if BUILT_IN and "pip" in requirements:
            _tell_of_new_pip(requirements["pip"])
        self._advise(candidates.values(), wanted)
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

    def _advise(self, candidates: Iterable[Any], wanted: Collection[str]) -> None:
        """Tell of better variants of what the user named and has already.

        That takes a look at the index, which pip itself would not take: only for variants, unless
        pip has looked. What goes wrong there is nobody's business.
        """
        for candidate in candidates:
            project = candidate.project_name
            if not candidate.is_installed or project not in wanted or self._forces(project):
                continue
            dist = getattr(candidate, "dist", None)
            label = label_of(dist)
            if dist is None or not (label or project in self._with_variants):
                continue
            try:
                with _in_passing(self._finder._link_collector.session):
                    links = [
                        found.link
                        for found in self._finder.find_all_candidates(project)
                        if found.version == dist.version
                    ]
                    found = self._get_arranger().advice(project, dist.version, label or None, links)
            except Exception:
                logger.debug(
                    "whether %s has a better variant cannot be told", project, exc_info=True
                )
                continue
            if found is not None:
                logger.info(
                    "%s: to switch, pip install --force-reinstall --no-deps %s==%s",
                    found, project, dist.version,
                )  # fmt: skip

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
                with _uncollected():
                    from .candidates import CandidateArranger

                self._arranger = CandidateArranger(
                    self._metadata_links,
                    network=self._finder._link_collector.session,
                    detect=self._detection(),
                    preferences=self._load_preferences(),
                    provider=lambda: self._provider,
                )
                if self._provider is not None:
                    self._arranger.follow(self._provider)
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


@contextmanager
def _uncollected() -> Iterator[None]:
    """Import without collecting garbage meanwhile.

    There is none in modules, and looking for it among all that pip has costs as much again.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def _in_passing(network: Any) -> Iterator[None]:
    """Let pip's *network* session neither try twice, nor wait long, nor ask for passwords."""
    from pip._vendor.urllib3.util.retry import Retry

    adapters = [item for item in network.adapters.values() if hasattr(item, "max_retries")]
    retries = [adapter.max_retries for adapter in adapters]
    timeout, prompting = network.timeout, network.auth.prompting
    try:
        for adapter in adapters:
            adapter.max_retries = Retry(0, read=False)
        network.timeout = min(timeout or _PASSING_TIMEOUT, _PASSING_TIMEOUT)
        network.auth.prompting = False
        yield
    finally:
        for adapter, number in zip(adapters, retries, strict=True):
            adapter.max_retries = number
        network.timeout, network.auth.prompting = timeout, prompting


def link_of(info: Any) -> Any:
    """Return the link that *info*, or a candidate of pip's, is made of; None if it is installed."""
    if not isinstance(info, tuple):
        return info.source_link
    return info[1].keywords["link"]


def source_of(link: Any) -> str:
    """Return where pip found *link*: the URL of the page, or the folder of a local file."""
    page = link.comes_from
    if page is None:
        return str(link.url_without_fragment).rpartition("/")[0]
    return str(page)
