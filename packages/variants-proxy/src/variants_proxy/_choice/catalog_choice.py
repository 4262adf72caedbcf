"""Which of the publisher's files a page lists of a version that the catalogue describes.

Installers without variants see versions such as ``2.9.0+cu128`` and ``2.9.0``, and take the highest
one that they can install. So a lesser variant must not be listed under a higher version, and of
the chosen variant there are the wheels of all platforms: uv takes what a version lacks, for macOS
for example, from the version without local part.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from packaging.version import Version

from pep_variants import labels as wheel_labels
from variants_index import target as target_machines
from variants_index.pages import Page, PageFile

from .._upstream.releases import exact_version, named_as, published
from .choice import named_wheel
from .in_place_names import variant_path, wheel_at
from .offers import Choice, Offer, VersionDecision, is_for_target, tags_of


def with_published(choice: Choice, target: str) -> Choice:
    """Return *choice* with the publishers' files that *target* (`Machine.target`) needs."""
    decisions = tuple(_arranged(decision, target) for decision in choice.decisions)
    changed = [
        after
        for before, after in zip(choice.decisions, decisions, strict=True)
        if after is not before
    ]
    if not changed:
        return choice
    wheels = {file.filename for decision in changed for file in decision.release.wheels}
    offers = [
        offer for offer in choice.offers if offer.refused or offer.file.filename not in wheels
    ]
    offers += [offer for decision in changed for offer in decision.offers.values()]
    return Choice(tuple(offers), decisions)


def locked_names(
    locked: Mapping[Version, tuple[str, ...]], page: Page
) -> dict[Version, tuple[str, ...]]:
    """Return *locked* (`Client.locked` of a project) in the names that the choice knows.

    A lock names the publisher's files: ``torch-2.9.0+cu128-….whl`` becomes the URL of variant
    ``cuda12.8`` of 2.9.0. What is at a URL of the proxy has its label there.
    """
    if not locked:
        return {}
    names: dict[str, list[str]] = {}
    for file in page.files:
        plain, label = wheel_labels.split_label(file.filename)
        if (own := published(file)) is not None:
            names.setdefault(own.original.filename, []).append(variant_path(label, plain))
        elif (name := named_as(file, plain)) != plain:
            names.setdefault(variant_path(label, name), []).append(variant_path(label, plain))
    renamed: dict[Version, tuple[str, ...]] = {}
    for version, items in locked.items():
        if not items:
            renamed.setdefault(version, ())
        for item in items:
            label, name = wheel_at(item) or (None, named_wheel(item)[0])
            paths = names.get(name if label is None else variant_path(label, name), ())
            public, text = version, item
            if len(paths) == 1:  # a name of several variants tells none of them
                public, text = Version(version.public), paths[0]
            renamed[public] = (*renamed.get(public, ()), text)
    return renamed


def _arranged(decision: VersionDecision, target: str) -> VersionDecision:
    """Return *decision* with other offers if it is about publishers' files."""
    if not any(published(file) for file in decision.release.wheels):
        return decision
    if decision.exact:
        return decision
    label, is_locked = _label(decision)
    offers = decision.offers.values()
    here = [offer for offer in offers if is_for_target(offer.filename, target)]
    elsewhere = [offer for offer in offers if not is_for_target(offer.filename, target)]
    places: dict[str | None, int] = {}
    for file in decision.selection.files:
        places.setdefault(file.label, len(places))
    if is_locked:
        places[label] = -1
    arranged: list[Offer] = []
    for offer in sorted(here, key=lambda each: places.get(each.label, len(places))):
        if _is_locked(decision, offer) or not any(_outranks(offer, better) for better in arranged):
            arranged.append(offer)
    if label is not None:
        arranged += _of_label(decision, label, arranged, target, everywhere=is_locked)
        elsewhere = [offer for offer in elsewhere if _is_locked(decision, offer)]
        elsewhere += _others(decision, target)
    for offer in elsewhere:
        if not any(_covers(other.filename, offer.filename) for other in arranged):
            arranged.append(offer)
    # Nothing has variant markers where all variants are the publishers' files.
    others = [file for file in decision.release.wheels if published(file) is None]
    is_plain = all(wheel_labels.split_label(file.filename)[1] is None for file in others)
    return replace(
        decision,
        offers={
            offer.filename: replace(offer, context=None)
            if is_plain or published(offer.file) is not None
            else offer
            for offer in arranged
        },
    )


def _label(decision: VersionDecision) -> tuple[str | None, bool]:
    """Return the label whose wheels are listed for all platforms, and whether a lock has it."""
    locked = {
        offer.label for offer in decision.locked.values() if published(offer.file) is not None
    }
    if locked:
        labels = locked - {wheel_labels.NULL_LABEL} or locked  # of Macs for example
        return (next(iter(labels)) if len(labels) == 1 else None), True
    chosen = decision.selection.chosen
    if decision.locked or chosen is None or published(chosen.item) is None:
        return None, False
    return chosen.label, False


def _of_label(
    decision: VersionDecision, label: str, kept: Iterable[Offer], target: str, *, everywhere: bool
) -> Iterator[Offer]:
    """Yield the other wheels of *label*: those for other platforms, or those for all."""
    names = {offer.filename for offer in kept}
    for file in decision.release.wheels:
        plain, its_label = wheel_labels.split_label(file.filename)
        wanted = everywhere or not is_for_target(plain, target)
        if its_label == label and wanted and plain not in names and published(file):
            names.add(plain)
            yield Offer(file, plain, label)


def _others(decision: VersionDecision, target: str) -> list[Offer]:
    """Return the wheels without properties for other platforms, those without local part first."""
    offers = []
    for file in decision.release.wheels:
        plain, label = wheel_labels.split_label(file.filename)
        is_null = label == wheel_labels.NULL_LABEL and published(file) is not None
        if not is_for_target(plain, target) and (label is None or is_null):
            offers.append(Offer(file, plain, label))
    return sorted(offers, key=lambda offer: _version(offer.file).local is not None)


def _outranks(lesser: Offer, better: Offer) -> bool:
    """Return whether an installer may take *lesser* where *better* can be installed."""
    if lesser.label == better.label:
        return False
    if _covers(better.filename, lesser.filename):
        return True
    is_higher = _version(lesser.file) >= _version(better.file)
    return is_higher and target_machines.covers(_python(better.filename), _python(lesser.filename))


def _is_locked(decision: VersionDecision, offer: Offer) -> bool:
    return decision.locked.get(offer.filename) is offer


def _version(file: PageFile) -> Version:
    return exact_version(file) or Version("0")


def _covers(better: str, lesser: str) -> bool:
    return target_machines.covers(tags_of(better), tags_of(lesser))


def _python(plain: str) -> str:
    return f"{tags_of(plain).rpartition('-')[0]}-any"
