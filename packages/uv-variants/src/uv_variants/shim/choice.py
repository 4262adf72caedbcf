"""What of an upstream's page is shown: of every version with variants one wheel per plain name.

A pure function of a page, the metadata files it lists, and a machine. For wheels that are for the
machine's platform the engine's selection decides; for those of other platforms, which lock files
want as well, there are the null variant and the non-variant wheel.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeAlias

from packaging.utils import InvalidName, canonicalize_name
from packaging.version import InvalidVersion, Version

from pep_variants.detection import Detector
from pep_variants.filename import parse_metadata_filename
from pep_variants.label import METADATA_SUFFIX, NULL_LABEL, ZERO_LABEL, split_label
from pep_variants.markers import VariantContext
from pep_variants.metadata import Metadata
from pep_variants.platform import Platform
from pep_variants.preferences import NON_VARIANT_LABEL, Preferences
from pep_variants.selection import File, Selection, select
from resolvelib_variants.index.pages import Page, PageFile

from .key import Machine
from .targets import covers, environment, inferred_target, is_for

_NULLS = (NULL_LABEL, ZERO_LABEL)
_ByLabel: TypeAlias = "dict[str | None, list[tuple[str, PageFile]]]"


@dataclass(frozen=True)
class Release:
    """The wheels of one version that has variants.

    Attributes:
        version: of all of them.
        wheels: in the order of the page, those without a label included.
        document: the version's metadata file, None if the page lists none.
    """

    version: Version
    wheels: tuple[PageFile, ...]
    document: PageFile | None


@dataclass(frozen=True)
class Offer:
    """A file that is shown.

    Attributes:
        file: the upstream's.
        filename: under which it is shown, the plain one.
        label: of the variant, None for a file without one.
        context: what markers see when it is installed; None for files that have none, as far as
            anybody knows.
    """

    file: PageFile
    filename: str
    label: str | None = None
    context: VariantContext | None = None


@dataclass(frozen=True)
class Decision:
    """What was decided of one version, and on what grounds.

    Attributes:
        release: the version.
        selection: among the wheels for the machine's platform.
        offers: what is shown, by plain filename.
    """

    release: Release
    selection: Selection[PageFile]
    offers: Mapping[str, Offer]


@dataclass(frozen=True)
class Choice:
    """What is shown of a project.

    Attributes:
        offers: in the order of the page.
        decisions: newest version first.
    """

    offers: tuple[Offer, ...]
    decisions: tuple[Decision, ...] = ()


def releases(page: Page) -> tuple[Release, ...]:
    """Return the versions of *page* that have variants, newest first."""
    by_text: dict[str, list[PageFile]] = {}  # by the version as filenames spell it
    labelled: set[str] = set()
    for file in page.files:
        filename = file.filename
        if filename.endswith(".whl") and filename.count("-") >= 4:
            text = filename.split("-", 2)[1]
            by_text.setdefault(text, []).append(file)
            if text not in labelled and split_label(filename)[1] is not None:
                labelled.add(text)
    if not labelled:
        return ()
    versions = {text: read_version(text) for text in by_text}
    wanted = {versions[text] for text in labelled} - {None}
    wheels: dict[Version, list[PageFile]] = {}
    for text, files in by_text.items():
        version = versions[text]
        if version is not None and version in wanted:
            wheels.setdefault(version, []).extend(files)
    documents: dict[Version, PageFile] = {}
    for file in page.files:
        if file.filename.endswith(METADATA_SUFFIX):
            known = parse_metadata_filename(file.filename)
            if known is not None and known[0] == page.project:
                documents.setdefault(known[1], file)  # the first one counts, as for pip
    return tuple(
        Release(version, tuple(wheels[version]), documents.get(version))
        for version in sorted(wheels, reverse=True)
    )


def plain_releases(page: Page, found: Sequence[Release]) -> tuple[Release, ...]:
    """Return the versions of *page* that are none of *found*, newest first: wheels without labels.

    Wheels of *found* whose labels nobody wants are among them if *found* is empty.
    """
    known = {release.version for release in found}
    versions: dict[str, Version | None] = {}  # by the version as filenames spell it
    wheels: dict[Version, list[PageFile]] = {}
    for file in page.files:
        filename = file.filename
        if not filename.endswith(".whl"):
            continue
        _, _, rest = filename.partition("-")
        text, _, _ = rest.partition("-")
        if text not in versions:
            version = read_version(text)
            versions[text] = None if version in known else version
        version = versions[text]
        if version is not None and filename.count("-") >= 4 and split_label(filename)[1] is None:
            wheels.setdefault(version, []).append(file)
    return tuple(
        Release(version, tuple(wheels[version]), None) for version in sorted(wheels, reverse=True)
    )


def wheel_version(filename: str) -> Version | None:
    """Return the version of a wheel, None for what is no name of one."""
    if filename.endswith(".whl") and filename.count("-") >= 4:
        return read_version(filename.split("-", 2)[1])
    return None


@lru_cache(maxsize=4096)
def read_version(text: str) -> Version | None:
    """Return the version in a filename, None if it is none: then it is nobody's wheel."""
    try:
        return Version(text)
    except InvalidVersion:
        return None


def choose(
    page: Page,
    found: Sequence[Release],
    machine: Machine,
    metadata: Callable[[Release], Metadata],
    *,
    limit: int,
    marked: Collection[Version] = (),
) -> Choice:
    """Choose among the files of *page* for *machine*.

    Args:
        page: of one project of one upstream.
        found: `releases` of the page.
        machine: for whom.
        metadata: gives what the metadata file of a release says; a `VariantError` costs that
            release its variants.
        limit: releases that are looked at; the others show their null and non-variant wheels.
        marked: versions without variants whose wheels have variant markers all the same.
    """
    wishes = machine.preferences
    forced = wishes.forced.get(page.project)
    if not wishes.use_variants or forced == NON_VARIANT_LABEL:
        return Choice(tuple(_without_variants(page.files, marked)))
    target = machine.target or inferred_target(_supported(machine))
    detect = Detector(
        environment=environment(target),
        enabled=wishes.enable,
        platform=machine.platform,
        detected=machine.detected if machine.detected.namespaces else None,
    ).platform
    decisions = [
        _decide(release, page, machine, target, metadata, detect) for release in found[:limit]
    ]
    offered: dict[str, Offer] = {}  # by the upstream's filename
    ours: set[str] = set()
    for decision in decisions:
        ours.update(file.filename for file in decision.release.wheels)
        offered.update({offer.file.filename: offer for offer in decision.offers.values()})
    for release in found[limit:]:
        ours.update(file.filename for file in release.wheels)
        offered.update({offer.file.filename: offer for offer in _unjudged(release, forced)})
    offers = []
    for file in page.files:
        if file.filename in ours:
            # A name that a page lists twice counts once.
            if (offer := offered.pop(file.filename, None)) is not None:
                offers.append(offer)
        elif forced is None:
            offers += _without_variants((file,), marked)
    return Choice(tuple(offers), tuple(decisions))


def _supported(machine: Machine) -> tuple[str, ...]:
    namespaces = {**machine.detected.namespaces, **machine.platform.namespaces}
    return tuple(sorted(name for name, held in namespaces.items() if held.features))


def _without_variants(files: Iterable[PageFile], marked: Collection[Version]) -> Iterable[Offer]:
    for file in files:
        if split_label(file.filename)[1] is None and not file.filename.endswith(METADATA_SUFFIX):
            is_marked = bool(marked) and wheel_version(file.filename) in marked
            yield Offer(file, file.filename, None, VariantContext("", {}) if is_marked else None)


def _unjudged(release: Release, forced: str | None) -> Iterable[Offer]:
    by_name: dict[str, Offer] = {}
    for file in release.wheels:
        plain, label = split_label(file.filename)
        if forced is not None or (label is not None and label not in _NULLS):
            continue
        if label is not None or plain not in by_name:
            by_name[plain] = Offer(file, plain, label, VariantContext(label or "", {}))
    return by_name.values()


def _decide(
    release: Release,
    page: Page,
    machine: Machine,
    target: str,
    metadata: Callable[[Release], Metadata],
    detect: Callable[[Metadata], Platform],
) -> Decision:
    # By label: wheels of one label stand or fall together, so one speaks for all of them.
    described: _ByLabel = {}
    foreign: _ByLabel = {}
    for file in release.wheels:
        name, version, tail = file.filename.split("-", 2)
        plain_tail, label, is_described = _tail(tail, target)
        plain = file.filename if label is None else f"{name}-{version}-{plain_tail}"
        if is_described:
            described.setdefault(label, []).append((plain, file))
        elif label is None or label in _NULLS:
            foreign.setdefault(label, []).append((plain, file))

    def judged(wheels: _ByLabel, wishes: Preferences) -> Selection[PageFile]:
        return select(
            [
                File(first.filename, page.project, first)
                for first in (same[0][1] for same in wheels.values())
            ],
            metadata=lambda _: metadata(release),
            platform=detect,
            preferences=wishes,
            project=page.project,
        )

    selection = judged(described, machine.preferences)
    offers = _best(selection, described)
    if foreign:
        # What was asked for on this platform is not there for others.
        other = judged(foreign, replace(machine.preferences, forced={}))
        offers = {**_best(other, foreign), **offers}
    return Decision(release, selection, offers)


@lru_cache(maxsize=16384)
def _tail(tail: str, target: str) -> tuple[str, str | None, bool]:
    """Split what follows the version in a filename, and say whether it is for *target*.

    Apart from the rest, because in all versions of a project it is mostly the same.
    """
    plain, label = split_label(f"name-0-{tail}")
    return plain[len("name-0-") :], label, is_for(plain[plain.rfind("-") + 1 : -4], target)


def _best(selection: Selection[PageFile], wheels: _ByLabel) -> dict[str, Offer]:
    """Return the best wheel for every plain filename.

    An installer that knows no variants looks at platform tags and build tags first; the order of
    variants outranks both. So what would be taken in place of a better variant that everybody
    could take as well is left out.
    """
    chosen: dict[str, tuple[int, Offer]] = {}
    for place, kept in enumerate(selection.files):
        context = selection.context(kept)
        for plain, file in wheels[kept.label]:
            if plain not in chosen:
                chosen[plain] = place, Offer(file, plain, kept.label, context)
    if len({place for place, _ in chosen.values()}) > 1:
        tags = {plain: "-".join(plain[:-4].rsplit("-", 3)[1:]) for plain in chosen}
        return {
            plain: offer
            for plain, (place, offer) in chosen.items()
            if not any(
                better < place and covers(tags[other], tags[plain])
                for other, (better, _) in chosen.items()
            )
        }
    return {plain: offer for plain, (_, offer) in chosen.items()}


def normalized(project: str) -> str | None:
    """Return the normalized name of *project*, None if it is no name of a project (PEP 508)."""
    if len(project) > 200:
        return None
    try:
        return canonicalize_name(project, validate=True)
    except InvalidName:
        return None
