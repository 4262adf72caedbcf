"""What of an upstream's page is shown: of every version with variants one wheel per plain name.

A pure function of a page, the metadata files it lists, and a machine. For wheels that are for the
machine's platform the engine's selection decides; for those of other platforms, which lock files
want as well, there are the null variant and the non-variant wheel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from pep_variants.detection import Detector
from pep_variants.filename import parse_metadata_filename
from pep_variants.label import METADATA_SUFFIX, NULL_LABEL, ZERO_LABEL, split_label
from pep_variants.markers import VariantContext
from pep_variants.metadata import Metadata
from pep_variants.platform import Platform
from pep_variants.preferences import NON_VARIANT_LABEL
from pep_variants.selection import File, Selection, select
from resolvelib_variants.index.pages import Page, PageFile

from .key import Machine
from .targets import covers, environment, inferred_target, is_for

_NULLS = (NULL_LABEL, ZERO_LABEL)


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
        context: what markers see when it is installed; None for files of versions without
            variants, whose markers nobody looks at.
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
    labelled = [file for file in page.files if split_label(file.filename)[1] is not None]
    if not labelled:
        return ()
    versions: dict[str, Version | None] = {}

    def version_of(filename: str) -> Version | None:
        text = filename.split("-", 2)[1]
        if text not in versions:
            try:
                versions[text] = Version(text)
            except InvalidVersion:
                versions[text] = None  # such names are nobody's wheel
        return versions[text]

    wheels: dict[Version, list[PageFile]] = {}
    for file in labelled:
        version = version_of(file.filename)
        if version is not None:
            wheels.setdefault(version, [])
    documents: dict[Version, PageFile] = {}
    for file in page.files:
        if file.filename.endswith(".whl") and file.filename.count("-") >= 4:
            version = version_of(file.filename)
            if version in wheels and version is not None:
                wheels[version].append(file)
        elif file.filename.endswith(METADATA_SUFFIX):
            known = parse_metadata_filename(file.filename)
            if known is not None and known[0] == page.project:
                documents.setdefault(known[1], file)  # the first one counts, as for pip
    return tuple(
        Release(version, tuple(wheels[version]), documents.get(version))
        for version in sorted(wheels, reverse=True)
    )


def choose(
    page: Page,
    found: Sequence[Release],
    machine: Machine,
    metadata: Callable[[Release], Metadata],
    *,
    limit: int,
) -> Choice:
    """Choose among the files of *page* for *machine*.

    Args:
        page: of one project of one upstream.
        found: `releases` of the page.
        machine: for whom.
        metadata: gives what the metadata file of a release says; a `VariantError` costs that
            release its variants.
        limit: releases that are looked at; the others show their null and non-variant wheels.
    """
    wishes = machine.preferences
    forced = wishes.forced.get(page.project)
    if not wishes.use_variants or forced == NON_VARIANT_LABEL:
        return Choice(tuple(_without_variants(page.files)))
    target = machine.target or inferred_target(_supported(machine.platform))
    detect = Detector(
        environment=environment(target), enabled=wishes.enable, platform=machine.platform
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
            offers += _without_variants((file,))
    return Choice(tuple(offers), tuple(decisions))


def _supported(platform: Platform) -> tuple[str, ...]:
    return tuple(sorted(name for name, held in platform.namespaces.items() if held.features))


def _without_variants(files: Iterable[PageFile]) -> Iterable[Offer]:
    for file in files:
        if split_label(file.filename)[1] is None and not file.filename.endswith(METADATA_SUFFIX):
            yield Offer(file, file.filename)


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
    described: list[File[PageFile]] = []
    foreign: list[File[PageFile]] = []
    for wheel in release.wheels:
        file = File(wheel.filename, page.project, wheel)
        platform_tag = split_label(wheel.filename)[0][:-4].rpartition("-")[2]
        if is_for(platform_tag, target):
            described.append(file)
        elif file.label is None or file.label in _NULLS:
            foreign.append(file)

    def judged(files: Sequence[File[PageFile]], machine: Machine) -> Selection[PageFile]:
        return select(
            files,
            metadata=lambda _: metadata(release),
            platform=detect,
            preferences=machine.preferences,
            project=page.project,
        )

    selection = judged(described, machine)
    offers = _best(selection, selection.files)
    if foreign:
        # What was asked for on this platform is not there for others.
        elsewhere = replace(machine, preferences=replace(machine.preferences, forced={}))
        other = judged(foreign, elsewhere)
        offers = {**_best(other, other.files), **offers}
    return Decision(release, selection, offers)


def _best(selection: Selection[PageFile], files: Sequence[File[PageFile]]) -> dict[str, Offer]:
    """Return the best file for every plain filename.

    An installer that knows no variants looks at platform tags and build tags first; the order of
    variants outranks both. So what would be taken in place of a better variant that everybody
    could take as well is left out.
    """
    places: dict[str | None, int] = {}
    chosen: dict[str, tuple[int, File[PageFile]]] = {}
    for file in files:
        plain = split_label(file.filename)[0]
        place = places.setdefault(file.label, len(places))
        chosen.setdefault(plain, (place, file))
    kept: dict[str, Offer] = {}
    several = len({place for place, _ in chosen.values()}) > 1
    tags = {plain: plain[:-4].split("-", plain.count("-") - 2)[-1] for plain in chosen}
    for plain, (place, file) in chosen.items():
        if several and any(
            better < place and covers(tags[other], tags[plain])
            for other, (better, _) in chosen.items()
        ):
            continue
        kept[plain] = Offer(file.item, plain, file.label, selection.context(file))
    return kept


def normalized(project: str) -> str | None:
    """Return the normalized name of *project*, None if it is no name of a project (PEP 508)."""
    if len(project) > 200:
        return None
    name = canonicalize_name(project)
    plain = name.replace("-", "")
    return name if plain.isascii() and plain.isalnum() and name[0] + name[-1] != "--" else None
