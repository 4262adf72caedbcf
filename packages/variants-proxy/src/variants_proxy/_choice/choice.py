"""Selection among the files of an upstream's page: one wheel per plain filename.

A pure function of a page, the metadata of its versions, and a machine. Wheels for the machine's
platform are selected by the engine; for other platforms, which lock files need as well, there are
the null variant and the non-variant wheel. Labels that a lock file has stay, whether or not they
fit this machine.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from typing import TypeAlias
from urllib.parse import unquote, urlsplit

from packaging.version import Version

from pep_variants import labels as wheel_labels
from pep_variants import markers
from pep_variants import preferences as user_preferences
from pep_variants import selection as wheel_selection
from pep_variants.errors import PluginFailed, VariantError
from pep_variants.machines import Detector, Platform
from pep_variants.markers import VariantContext
from pep_variants.metadata import Metadata
from pep_variants.preferences import Preferences
from pep_variants.selection import File, Selection
from variants_index import target as target_machines
from variants_index.finder import OwnBuild
from variants_index.pages import Page, PageFile

from .._key import Machine
from .._upstream.releases import (
    PageRelease,
    differs_by_platform,
    exact_version,
    known_variants,
    published,
    wheel_version,
)
from .in_place_names import wheel_at
from .offers import (
    NO_AGREEMENT,
    Agreed,
    Choice,
    Offer,
    VersionDecision,
    is_for_target,
    platform_of,
    tags_of,
    version_in,
)
from .wheel_environments import runs_on

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class LockedVersion:
    """Wheels of one version in a lock file.

    Attributes:
        items: labels, and URLs of wheels in the lock file.
    """

    items: tuple[str, ...]

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Labels for every tag set that has them."""
        return tuple(item for item in self.items if not item.endswith(".whl"))

    @cached_property
    def names(self) -> Mapping[str, str | None]:
        """Labels by plain filename, None for a wheel without one."""
        labels: dict[str, str | None] = {}
        for item in self.items:
            if item.endswith(".whl"):
                plain, label = named_wheel(item)
                labels[plain] = label
        return labels

    @cached_property
    def platforms(self) -> Mapping[str, str | None]:
        """Labels by platform tag, for tag sets that came later, of another Python for example."""
        labels: dict[str, str | None] = {}
        for plain, label in self.names.items():
            labels.setdefault(platform_of(plain), label)
        return labels

    def pick(self, plain: str, wheels: Mapping[str | None, PageFile]) -> PageFile | None:
        """Return the locked wheel with the plain filename *plain*, None if there is none.

        Args:
            plain: filename without label.
            wheels: those with this plain filename, by label.
        """
        if plain in self.names:
            return wheels.get(self.names[plain])
        for label in self.labels:
            if label in wheels:
                return wheels[label]
        platform = platform_of(plain)
        if platform in self.platforms:
            return wheels.get(self.platforms[platform])
        return None


def locked_offers(
    release: PageRelease, locked: LockedVersion, context: Callable[[str], VariantContext | None]
) -> dict[str, Offer]:
    """Return the wheels of *release* that a lock file has, by plain filename.

    Args:
        release: the version.
        locked: what the lock file has of it.
        context: for variant markers, by label.
    """
    wheels: dict[str, dict[str | None, PageFile]] = {}
    for file in release.wheels:
        plain, label = wheel_labels.split_label(file.filename)
        wheels.setdefault(plain, {}).setdefault(label, file)
    offers: dict[str, Offer] = {}
    for plain, by_label in wheels.items():
        wheel = locked.pick(plain, by_label)
        if wheel is not None:
            label = wheel_labels.split_label(wheel.filename)[1]
            offers[plain] = Offer(
                wheel, plain, label, markers.NON_VARIANT if label is None else context(label)
            )
    return offers


def with_locked(usual: Mapping[str, Offer], locked: Mapping[str, Offer]) -> dict[str, Offer]:
    """Return *usual* offers with *locked* ones in their place, by plain filename.

    What an installer would take in place of a locked wheel is left out: other wheels whose tags are
    more special.
    """
    tags = {plain: tags_of(plain) for plain in (*usual, *locked)}
    others = {
        plain: offer
        for plain, offer in usual.items()
        if not any(
            offer.label != locked_offer.label and target_machines.covers(tags[other], tags[plain])
            for other, locked_offer in locked.items()
        )
    }
    return {**others, **locked}


def named_wheel(item: str) -> tuple[str, str | None]:
    """Return plain filename and label of a wheel at a URL."""
    label, plain = wheel_at(item) or (None, unquote(urlsplit(item).path.rpartition("/")[2]))
    return plain, label


_NULLS = (wheel_labels.NULL_LABEL, wheel_labels.ZERO_LABEL)
OWN = ""
"""Source of the page's own files in a selection."""

_PLATFORMS = tuple(
    f"{system}-{cpu}" for system in ("linux", "win", "macosx") for cpu in ("x86_64", "aarch64")
)

_ByLabel: TypeAlias = "dict[tuple[str, str | None], list[tuple[str, PageFile]]]"
"""Plain filename and file by source and label."""

_Source: TypeAlias = "tuple[PageRelease, Callable[[PageRelease], Metadata]]"


@dataclass(frozen=True)
class OtherSource:
    """Another upstream whose files uv merges with those of a page.

    uv merges the files of find-links places with those of every index. Of wheels with the same tags
    it takes any, so a non-variant wheel or lesser variant must not be listed if the other place has
    a better one.

    Attributes:
        source: name of the upstream.
        releases: versions with wheels, with or without variants.
        metadata: returns the metadata of a release, as for `Chooser`.
    """

    source: str
    releases: Mapping[Version, PageRelease]
    metadata: Callable[[PageRelease], Metadata]


@dataclass(frozen=True)
class Chooser:
    """Chooses among the files of pages.

    Attributes:
        machine: of the client.
        metadata: returns the metadata of a release; a `VariantError` costs that release its
            variants.
        limit: number of releases that are evaluated; further ones have their null variants and
            non-variant wheels.
        marked: versions without variants whose wheels have variant markers.
        failures: of plugins that the user allowed, by `provider_id`.
        others: upstreams whose files are evaluated together with these, but not listed here.
        is_last: files of *others* come first among equals.
        portable: markers are evaluated as in `own_context`.
        locked: what a lock file has of the project; a forced label goes before it.
        exact: see `Client`; of their releases, other builds are not listed.
        agreed: labels that go before others that fit, see `ProjectViews`.
        unhashed: names of files that have none of the hashes which the user gives. They are chosen
            only where nothing else can be.
    """

    machine: Machine
    metadata: Callable[[PageRelease], Metadata]
    limit: int
    marked: Collection[Version] = ()
    failures: Mapping[str, PluginFailed] = field(default_factory=dict)
    others: Sequence[OtherSource] = ()
    is_last: bool = True
    portable: bool = False
    locked: Mapping[Version, LockedVersion] = field(default_factory=dict)
    exact: Collection[Version] = ()
    agreed: Agreed = NO_AGREEMENT
    unhashed: Collection[str] = ()

    def choose(self, page: Page, found: Sequence[PageRelease]) -> Choice:
        """Choose among the files of *page*, of one project, whose `releases` are *found*.

        Raises:
            PluginFailed: a release needs a plugin of `failures`.
        """
        preferences = self.machine.preferences
        forced = preferences.forced.get(page.project)
        if not preferences.use_variants or forced == user_preferences.NON_VARIANT_LABEL:
            return Choice(tuple(_without_variants(page.files, self.marked)))
        decisions = [self._decide(page.project, release) for release in found[: self.limit]]
        if self.locked and forced is None:
            decisions = [self._kept(decision) for decision in decisions]
        elif forced is not None and self.portable:
            decisions = [self._for_others(page.project, decision, forced) for decision in decisions]
        decisions += [
            _unevaluated(release, preferences, forced, self.limit)
            for release in found[self.limit :]
        ]
        decisions.sort(key=lambda decision: decision.release.version, reverse=True)
        if _logger.isEnabledFor(logging.DEBUG):
            for decision in decisions:
                names = ", ".join(offer.file.filename for offer in decision.offers.values())
                version = decision.release.version
                _logger.debug("Offering of %s %s: %s", page.project, version, names or "no wheel")
        offered: dict[str, Offer] = {}  # by the upstream's filename
        wheels: set[str] = set()
        for decision in decisions:
            wheels.update([file.filename for file in decision.release.wheels])
            offered.update({offer.file.filename: offer for offer in decision.offers.values()})
        sources = {each.release.version for each in decisions if forced and each.locked}
        without_sources = _without_sources(decisions)
        offers = []
        for file in page.files:
            filename = file.filename
            if filename in wheels:
                # A page may list a filename twice.
                if (offer := offered.pop(filename, None)) is not None:
                    offers.append(offer)
            elif not filename.endswith(".whl") and without_sources(version_in(filename)):
                continue  # an installer would compile it
            elif forced is None or version_in(filename) in sources:
                offers += _without_variants((file,), self.marked)
        return Choice((*offers, *_refused(offers, decisions)), tuple(decisions))

    @cached_property
    def _target(self) -> str:
        return target_of(self.machine)

    @cached_property
    def platform(self) -> Callable[[Metadata], Platform]:
        """The supported values of the machine, for metadata."""
        machine = self.machine
        return Detector(
            environment=target_machines.environment_of(self._target),
            enabled=machine.preferences.enable,
            platform=machine.platform,
            detected=machine.detected if machine.detected.namespaces else None,
            answers={**machine.answers, **self.failures},
        ).platform

    @cached_property
    def _possible(self) -> Mapping[str, Chooser]:
        """Choosers for the platforms that the machine may be of, none if that is known."""
        return {
            platform: replace(self, machine=replace(self.machine, target=platform))
            for platform in _PLATFORMS
            if self._target in ("", f"any-{platform.partition('-')[2]}")
        }

    def _decide(self, project: str, release: PageRelease) -> VersionDecision:
        """Return the decision on *release*.

        Where platforms differ in what a label has, each decides on its own wheels.
        """
        if not self._possible or not differs_by_platform(release.wheels):
            return self._decided(project, release)
        decisions = {
            platform: chooser._decided(project, release)
            for platform, chooser in self._possible.items()
        }
        first = max(
            decisions.values(),
            key=lambda each: wheel_selection.is_accelerated(each.selection, each.selection.chosen),
        )
        offers = {
            plain: offer
            for platform, each in decisions.items()
            for plain, offer in each.offers.items()
            if is_for_target(plain, platform)
        }
        return replace(first, offers={**first.offers, **offers})

    def _decided(self, project: str, release: PageRelease) -> VersionDecision:
        sources = self._sources(release)
        # By label: the metadata of a label is that of all its wheels in a source.
        described: _ByLabel = {}
        foreign: _ByLabel = {}
        for source, (at_source, _) in sources.items():
            for file in at_source.wheels:
                name, version, tail = file.filename.split("-", 2)
                plain_tail, label, is_described = _tail(tail, self._target)
                plain = file.filename if label is None else f"{name}-{version}-{plain_tail}"
                if is_described:
                    described.setdefault((source, label), []).append((plain, file))
                elif source == OWN and (label is None or label in _NULLS):
                    foreign.setdefault((source, label), []).append((plain, file))

        exact = {each for each in self.exact if Version(each.public) == release.version}
        if exact:
            described = _where(described, lambda file: exact_version(file) in exact)
        standing, unhashed = described, ""
        chosen = partial(self._selection, project, sources, is_exact=bool(exact))
        selection = chosen(standing)
        if self.unhashed and (best := selection.chosen) is not None:
            some = _where(standing, lambda file: file.filename not in self.unhashed)
            narrower = chosen(some)
            if narrower.chosen is not None:
                _logger.debug("Skipping wheels of %s that have none of the hashes", project)
                standing, selection = some, narrower
                unhashed = best.label if best.label not in (None, narrower.chosen.label) else ""
        # Yanked wheels are used only if there is no other (PEP 592).
        some = _where(standing, lambda file: file.yanked is None)
        if some is not standing and (narrower := chosen(some)).files:
            _logger.debug("Skipping yanked wheels of %s %s", project, release.version)
            standing, selection = some, narrower
        some = _for_pythons(standing, selection, self.machine.python)
        if some is not standing:
            _logger.debug("Skipping wheels of %s for Pythons other than the chosen one", project)
            standing, selection = some, chosen(some)
        best = selection.chosen
        selection = _agreeing(selection, self.agreed.labels)
        offers = _best(selection, standing, portable=self.portable)
        if foreign:
            # A forced label applies to this platform only.
            other = chosen(foreign, forced=False)
            offers = {**_best(other, foreign, portable=self.portable), **offers}
        if exact:
            offers |= self._exactly(release, exact, selection)
        agrees = "" if selection.chosen is best else self.agreed.project
        return VersionDecision(
            release, selection, offers, agrees=agrees, unhashed=unhashed or "", exact=bool(exact)
        )

    def _exactly(
        self, release: PageRelease, exact: Collection[Version], selection: Selection[PageFile]
    ) -> dict[str, Offer]:
        """Return the wheels of the *exact* versions, by the names of their publisher.

        A lock is for other machines as well: it has them whether or not they fit this one.
        """
        fitting = {file.label for file in selection.files}
        return {
            own.original.filename if own is not None else file.filename: Offer(file, plain, label)
            for file in release.wheels
            for own in (published(file),)
            for plain, label in (wheel_labels.split_label(file.filename),)
            if exact_version(file) in exact
            and (label in fitting or self.portable or not is_for_target(plain, self._target))
        }

    def _sources(self, release: PageRelease) -> dict[str, _Source]:
        others = {
            other.source: (other.releases[release.version], other.metadata)
            for other in self.others
            if release.version in other.releases
        }
        own = {OWN: (release, self.metadata)}
        return {**others, **own} if self.is_last else {**own, **others}

    def _selection(
        self,
        project: str,
        sources: Mapping[str, _Source],
        wheels: _ByLabel,
        *,
        is_exact: bool = False,
        forced: bool = True,
    ) -> Selection[PageFile]:
        preferences = self.machine.preferences

        def read(source: str) -> Metadata:
            at_source, metadata = sources[source]
            here = (
                file for (each, _), same in wheels.items() if each == source for _, file in same
            )
            return known_variants(here) or metadata(at_source)

        return wheel_selection.select(
            [File(same[0][1].filename, source, same[0][1]) for (source, _), same in wheels.items()],
            metadata=read,
            platform=self.platform,
            preferences=preferences if forced else replace(preferences, forced={}),
            project=project,
            builds=() if is_exact else _builds(wheels),
        )

    def _for_others(self, project: str, decision: VersionDecision, forced: str) -> VersionDecision:
        """Return *decision* with what other machines get where a lock has the *forced* label."""
        if not any(offer.label == forced for offer in decision.offers.values()):
            return decision
        release, preferences = decision.release, self.machine.preferences
        chooser = replace(
            self,
            machine=replace(self.machine, preferences=replace(preferences, forced={})),
            locked={release.version: LockedVersion((forced,))},
        )
        anew = chooser._kept(chooser._decide(project, release))
        return replace(decision, offers=anew.offers, locked=anew.locked)

    def _kept(self, decision: VersionDecision) -> VersionDecision:
        """Return *decision* with what a lock file has of its version."""
        release = decision.release
        items = self.locked.get(release.version)
        if items is None or decision.exact:
            return decision

        def context(label: str) -> VariantContext | None:
            try:
                return own_context(label, self.metadata(release))
            except VariantError:
                return None  # the file cannot be had, if anything depends on it

        wheels = locked_offers(release, items, context)
        here = dict.fromkeys(
            offer.label
            for plain, offer in wheels.items()
            if _tail(plain.split("-", 2)[2], self._target)[2]
        )
        offers = with_locked(decision.offers, wheels)
        return replace(decision, offers=offers, locked=wheels, kept=tuple(here))


def _builds(wheels: _ByLabel) -> set[str]:
    """Return the sources whose wheels without label are variants, see `select`."""
    return {
        source
        for (source, label), same in wheels.items()
        if label is None and any(isinstance(file, OwnBuild) for _, file in same)
    }


def _without_sources(decisions: Sequence[VersionDecision]) -> Callable[[Version | None], bool]:
    """Return what tells whether sources of a version would stand in for builds that do not fit.

    They would where a version, or a newer one, has nothing else, see `is_built_only`.
    """
    unfit = [
        each.release.version
        for each in decisions
        if not each.locked and wheel_selection.is_built_only(each.selection)
    ]
    fitting = {each.release.version for each in decisions if each.locked or each.selection.files}
    return lambda version: bool(
        unfit and version and version <= max(unfit) and version not in fitting
    )


def target_of(machine: Machine) -> str:
    """Return operating system and processor of *machine*, as far as its description says."""
    return machine.target or target_machines.platform_of_namespaces(_supported(machine))


def _supported(machine: Machine) -> tuple[str, ...]:
    namespaces = {**machine.detected.namespaces, **machine.platform.namespaces}
    return tuple(sorted(name for name, support in namespaces.items() if support.features))


def _without_variants(files: Iterable[PageFile], marked: Collection[Version]) -> Iterable[Offer]:
    for file in files:
        if wheel_labels.split_label(file.filename)[1] is None and not file.filename.endswith(
            wheel_labels.METADATA_SUFFIX
        ):
            is_marked = bool(marked) and wheel_version(file.filename) in marked
            yield Offer(file, file.filename, None, VariantContext("", {}) if is_marked else None)


def _unevaluated(
    release: PageRelease, preferences: Preferences, forced: str | None, limit: int
) -> VersionDecision:
    """Return the decision on a version beyond the limit: wheels that are for every machine."""
    offers: dict[str, Offer] = {}
    for file in release.wheels:
        plain, label = wheel_labels.split_label(file.filename)
        if forced is not None or (label is not None and label not in _NULLS):
            continue
        if label is not None or plain not in offers:
            offers[plain] = Offer(file, plain, label, VariantContext(label or "", {}))
    problem = VariantError(f"variants of the {limit} newest versions alone are evaluated")
    problems = {OWN: problem} if release.has_variants else {}
    files = tuple(File(offer.file.filename, OWN, offer.file) for offer in offers.values())
    return VersionDecision(release, Selection(files, {}, problems, (), preferences), offers)


def _refused(offers: Sequence[Offer], decisions: Iterable[VersionDecision]) -> Iterable[Offer]:
    """Return wheels of the newest final release if pre-releases are all that fits.

    Without them installers would take a pre-release, which they never do where there is a final
    release. A request for one of these wheels is answered with the reason.
    """
    versions = [version_in(offer.filename) for offer in offers]
    if not versions or not all(version and version.is_prerelease for version in versions):
        return
    for decision in decisions:
        if not decision.release.version.is_prerelease and wheel_selection.is_unfit(
            decision.selection
        ):
            files = {
                wheel_labels.split_label(file.filename)[0]: file for file in decision.release.wheels
            }
            for plain, file in files.items():
                yield Offer(file, plain, refused=True)
            return


def _agreeing(selection: Selection[PageFile], agreed: Sequence[str]) -> Selection[PageFile]:
    """Return *selection* with the files of the labels *agreed* in front."""
    if not agreed or selection.chosen is None or selection.chosen.label in agreed:
        return selection
    first = [file for file in selection.files if file.label in agreed]
    others = [file for file in selection.files if file.label not in agreed]
    return replace(selection, files=(*first, *others))


def _where(wheels: _ByLabel, fits: Callable[[PageFile], bool]) -> _ByLabel:
    """Return the *wheels* that fit; the same object if all do."""
    if all(fits(file) for same in wheels.values() for _, file in same):
        return wheels
    fitting = {
        key: [(plain, file) for plain, file in same if fits(file)] for key, same in wheels.items()
    }
    return {key: same for key, same in fitting.items() if same}


def _for_pythons(wheels: _ByLabel, selection: Selection[PageFile], python: str) -> _ByLabel:
    """Return *wheels* without those that need a Python which others that fit do without.

    A plain filename stands for one wheel on a page. So if the Python of the client is not known, it
    is one that can be installed wherever one of them can.

    Args:
        wheels: of one version.
        selection: among them.
        python: version of the client's Python, empty if it is not known.
    """
    fitting = {(file.source, file.label) for file in selection.files}
    if len({file.requires_python for key in fitting for _, file in wheels[key]}) < 2:
        return wheels
    pythons: dict[str, int] = {}
    for key in fitting:
        for plain, file in wheels[key]:
            number = runs_on(plain, file.requires_python, python)
            pythons[plain] = max(pythons.get(plain, 0), number)
    plains = {file.filename: plain for key in fitting for plain, file in wheels[key]}
    return _where(
        wheels,
        lambda file: (
            (plain := plains.get(file.filename)) is None
            or runs_on(plain, file.requires_python, python) == pythons[plain]
        ),
    )


@lru_cache(maxsize=16384)
def _tail(tail: str, target: str) -> tuple[str, str | None, bool]:
    """Split the part of a filename after the version; return whether it is for *target*, too.

    Cached: most versions of a project have the same parts.
    """
    plain, label = wheel_labels.split_label(f"name-0-{tail}")
    return plain[len("name-0-") :], label, is_for_target(plain, target)


def own_context(label: str, metadata: Metadata) -> VariantContext:
    """Return the context for markers of a wheel, the same wherever it is to be installed.

    PEP 825 leaves out those of several values of a feature that a machine does not support. Files
    in a lock file must be the same for every machine, so they count here: there is one hash of a
    wheel. Features of one value, which are nearly all, make no difference.
    """
    return VariantContext(label, metadata.properties_of(metadata.label_of(label)) or {})


def _best(selection: Selection[PageFile], wheels: _ByLabel, *, portable: bool) -> dict[str, Offer]:
    """Return the best wheel of the page for every plain filename.

    An installer without variants compares platform tags and build tags first, while the order of
    variants outranks both. So a wheel is left out if a better variant, of any source, can be
    installed wherever it can.
    """
    chosen: dict[str, tuple[int, Offer]] = {}
    shown: dict[str, tuple[int, Offer]] = {}
    for place, kept in enumerate(selection.files):
        context = selection.context(kept)
        if portable and kept.label is not None and kept.source in selection.rankings:
            context = own_context(kept.label, selection.rankings[kept.source].metadata)
        for plain, file in wheels[kept.source, kept.label]:
            offer = Offer(file, plain, kept.label, context)
            known = chosen.setdefault(plain, (place, offer))
            # uv has its own rule for equals of several sources.
            is_equal = known[1].label == kept.label
            if kept.source == OWN and plain not in shown and is_equal:
                shown[plain] = known[0], offer
    if len({place for place, _ in chosen.values()}) > 1:
        tags = {plain: tags_of(plain) for plain in chosen}
        return {
            plain: offer
            for plain, (place, offer) in shown.items()
            if not any(
                better < place
                and rival.label != offer.label
                and target_machines.covers(tags[other], tags[plain])
                for other, (better, rival) in chosen.items()
            )
        }
    return {plain: offer for plain, (_, offer) in shown.items()}
