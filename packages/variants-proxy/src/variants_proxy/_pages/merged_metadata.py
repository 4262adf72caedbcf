"""One METADATA for all wheels of a version, whose dependencies are right in every environment.

uv reads the METADATA of one wheel of a version, any of them, and takes its dependencies for all
platforms and Pythons ("metadata consistency"). Variants break that: Linux gets ``cu128``, which
requires CUDA libraries, macOS the plain wheel, which does not. So `merge_metadata` gives each
requirement the markers of the environments whose wheel has it. Equal METADATA stay as they are.

What markers cannot tell apart has the dependencies of the wheel that most machines take, see
`wheel_environments`. Environments without a wheel, which build from source, have those of the
wheels without a label or with the null label; else what all wheels require.

Which wheels get it is up to `Client.merges`: pip compares the METADATA of a wheel with the one that
it downloads, and reads that of the wheel it installs, so other clients get each wheel's own.

uv reads the METADATA of the wheel with the highest build tag, of those that fit its Python and
Pythons to come, if its lock has the hash of none of them or of all. On in-place pages variants have
a build tag (`in_place_names`) and no file has a hash (`ShownHashes`), so plain wheels beside them
can keep their own URLs, and their own METADATA there, unless one has a build tag as high.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from operator import attrgetter

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from pep_variants import labels as wheel_labels
from pep_variants import markers, wheel_files
from pep_variants.errors import VariantError
from pep_variants.markers import Term

from .._choice.in_place_names import encoded_name
from .._choice.offers import Choice, Offer, platform_of
from .._choice.wheel_environments import (
    Region,
    WheelEnvironments,
    build_tag,
    environments,
    python_term,
    region_term,
)
from .._clients import Client
from .._upstream.releases import wheel_version
from .._upstream.upstreams import Upstreams
from .._upstream.wheels import Wheels, is_cheap
from ..errors import UpstreamError
from ..settings import Upstream

_MERGED = ("requires-dist", "requires-python", "provides-extra")
# More than any real project has: requirements of all wheels, and steps to write their markers.
_REQUIREMENTS, _STEPS = 50_000, 300_000
_OR = re.compile(r"\bor\b")


@dataclass(frozen=True)
class WheelMetadata:
    """A wheel of a version as its page lists it, and its own METADATA.

    Attributes:
        filename: plain filename; only its tags count.
        label: of its variant, None without.
        metadata: without variant markers.
    """

    filename: str
    label: str | None
    metadata: bytes


@dataclass(frozen=True)
class _Fields:
    """What is merged of one METADATA: the values of these fields, each once."""

    requires: tuple[str, ...]
    requires_python: tuple[str, ...]
    extras: tuple[str, ...]

    @cached_property
    def unordered(self) -> tuple[frozenset[str], ...]:
        """The values; equal if dependencies are."""
        return frozenset(self.requires), frozenset(self.requires_python), frozenset(self.extras)


def merge_metadata(wheels: Sequence[WheelMetadata], limit: int) -> bytes | None:
    """Return the METADATA to serve for every one of *wheels*, None if each has to keep its own.

    Args:
        wheels: of one version, all that its page lists.
        limit: maximum size of the result in bytes; without a result that large there is none.
    """
    known = {data: _fields(data) for data in {wheel.metadata for wheel in wheels}}
    if len({fields.unordered for fields in known.values()}) < 2:
        return None
    each = [known[wheel.metadata] for wheel in wheels]
    found = environments([wheel.filename for wheel in wheels])
    if found is None or sum(len(fields.requires) for fields in each) > _REQUIREMENTS:
        return None
    default = _default(wheels, each)
    requirements = _requirements(each, default, found)
    if requirements is None:
        return None
    lines = [f"Requires-Dist: {text}" for text in requirements]
    extras = dict.fromkeys(extra for fields in each for extra in fields.extras)
    lines = [*(f"Provides-Extra: {extra}" for extra in extras), *lines]
    python = _requires_python([fields.requires_python for fields in each])
    lines = [*([f"Requires-Python: {python}"] if python else []), *lines]
    text = "".join(f"{line}\n" for line in lines)
    merged = _with_fields(wheels[0].metadata, text.encode("utf-8", "surrogateescape"))
    return merged if len(merged) <= limit else None


def group_markers(
    filenames: Sequence[str], groups: Sequence[str], default: str
) -> Mapping[str, Term | bool] | None:
    """Return where installers take the wheels of each group.

    None if there are more environments than for any real project.

    Args:
        filenames: plain ones of wheels of one version.
        groups: name of the group of each.
        default: group of environments without a wheel.
    """
    found = environments(filenames)
    if found is None:
        return None
    numbers = {name: number for number, name in enumerate(dict.fromkeys(groups))}
    numbers[default] = _DEFAULT
    places = {
        region: _filled({m: numbers[groups[number]] for m, number in taken.items()}, found.minors)
        for region, taken in found.deciding.items()
    }
    return {
        name: _marker(frozenset((number,)), places, found.minors)
        for name, number in numbers.items()
    }


def _fields(metadata: bytes) -> _Fields:
    found: dict[str, dict[str, None]] = {name: {} for name in _MERGED}
    for field in wheel_files.iter_fields(metadata):
        if field.name in found:
            found[field.name][field.value] = None
    return _Fields(*map(tuple, found.values()))


def _requirements(
    each: Sequence[_Fields], default: Sequence[str], found: WheelEnvironments
) -> Sequence[str] | None:
    """Return the requirements of all wheels, with the markers of where they apply.

    None if that takes longer than for any real project.
    """
    groups = _groups(each, found, default)
    numbers: dict[str, set[int]] = {}  # of the wheels that have a requirement
    for number, fields in enumerate(each):
        for text in fields.requires:
            numbers.setdefault(text, set()).add(number)
    for text in default:
        numbers.setdefault(text, set()).add(_DEFAULT)
    having = {text: frozenset(found_in) for text, found_in in numbers.items()}
    different = set(having.values())
    if len(different) * sum(map(len, groups.values())) > _STEPS:
        return None
    by_key = {key: _marker(key, groups, found.minors) for key in different}
    combined = (_combined(text, by_key[key]) for text, key in having.items())
    return [text for text in combined if text is not None]


_DEFAULT = -1
"""Stands for the dependencies of environments without a wheel, beside the indexes of wheels."""


def _default(wheels: Sequence[WheelMetadata], each: Sequence[_Fields]) -> tuple[str, ...]:
    """Return the dependencies of environments without a wheel."""
    plain = Counter(
        fields.requires
        for wheel, fields in zip(wheels, each, strict=True)
        if wheel.label in (None, wheel_labels.NULL_LABEL, wheel_labels.ZERO_LABEL)
    )
    if plain:
        return plain.most_common(1)[0][0]
    common = frozenset.intersection(*(fields.unordered[0] for fields in each))
    return tuple(text for text in each[0].requires if text in common)


def _groups(
    each: Sequence[_Fields], found: WheelEnvironments, default: Sequence[str]
) -> Mapping[Region, Mapping[int, int]]:
    """Return whose dependencies apply, by region and version of Python: one of their wheels.

    Pythons without a wheel have those of the nearest one with a wheel, so that markers are short;
    regions without a wheel have `_DEFAULT`.
    """
    first: dict[frozenset[str], int] = {frozenset(default): _DEFAULT}
    same = [first.setdefault(fields.unordered[0], number) for number, fields in enumerate(each)]
    return {
        region: _filled({minor: same[number] for minor, number in places.items()}, found.minors)
        for region, places in found.deciding.items()
    }


def _filled(known: Mapping[int, int], minors: Sequence[int]) -> Mapping[int, int]:
    if not known:
        return dict.fromkeys(minors, _DEFAULT)
    return {
        minor: known[min(known, key=lambda have: (abs(have - minor), -have))] for minor in minors
    }


def _marker(
    having: frozenset[int], groups: Mapping[Region, Mapping[int, int]], minors: Sequence[int]
) -> Term | bool:
    """Return the marker of the environments whose dependencies are those of one of *having*."""
    return region_term(
        {
            region: python_term([m for m in minors if pythons[m] in having], minors)
            for region, pythons in groups.items()
        }
    )


def _combined(requirement: str, where: Term | bool) -> str | None:
    """Return *requirement* with the marker *where* besides its own, None if that is never true."""
    if isinstance(where, bool):
        return requirement if where else None
    dependency, marker = markers.split_requirement(requirement)
    if ";" in dependency and "@" not in dependency:
        return requirement  # not a requirement: for the installer to report
    own: Term | bool = Term(marker, loose=bool(_OR.search(marker))) if marker else True
    both = markers.all_of((own, where))
    assert isinstance(both, Term)
    # White space ends a URL.
    return f"{dependency} ; {both.text}" if "@" in dependency else f"{dependency}; {both.text}"


def _requires_python(values: Sequence[tuple[str, ...]]) -> str:
    """Return the value for all wheels: the least that one of them requires, empty for none.

    Pages have the value of each wheel, which uv compares as well.
    """
    each = {value[0] if value else "" for value in values}
    if len(each) == 1:
        return each.pop()
    lowest: list[tuple[Version, str]] = []
    for text in each:
        try:
            specifiers = list(SpecifierSet(text))
        except InvalidSpecifier:
            return ""
        if len(specifiers) != 1 or specifiers[0].operator != ">=":
            return ""
        lowest.append((Version(specifiers[0].version), text))
    return min(lowest)[1]


def _with_fields(metadata: bytes, fields: bytes) -> bytes:
    """Return *metadata* with *fields* in place of its own ones of those names."""
    parts = []
    end = 0
    for field in wheel_files.iter_fields(metadata):
        end = field.end
        if field.name not in _MERGED:
            parts.append(metadata[field.start : field.end])
    if parts and not parts[-1].endswith((b"\n", b"\r")):
        parts.append(b"\n")
    return b"".join((*parts, fields, metadata[end:]))


def wheels_to_merge(
    client: Client, offers: Iterable[Offer], own: Mapping[str, bytes | None]
) -> dict[str, bool]:
    """Return the wheels for which other METADATA may be served, by upstream filename.

    Merging takes a while, and clients read METADATA of few versions: it is done on request. The
    values tell whether wheels without label have to come from the proxy for it.

    Args:
        client: of the page.
        offers: those with variant markers or labels, and the others of their versions.
        own: METADATA with evaluated markers by upstream filename, None if it is not known, as that
            of wheels that are rewritten on request: no other has the same.
    """
    versions: dict[str, list[Offer]] = {}
    for offer in offers if client.merges else ():
        if offer.filename.endswith(".whl"):
            versions.setdefault(offer.filename.split("-", 2)[1], []).append(offer)
    found: dict[str, bool] = {}
    for same in versions.values():
        names = [offer.file.filename for offer in same]
        # Most versions have one METADATA.
        read = {own.get(name) for name in names}
        if len(read) > 1 or None in read:
            plain = client.reads_any or _plain_is_read(same)
            found.update(dict.fromkeys(names, plain))
    return found


async def merged_for(
    upstreams: Upstreams, wheels: Wheels, upstream: Upstream, choice: Choice, offer: Offer
) -> bytes | None:
    """Return the METADATA to serve for a wheel, None for its own.

    Args:
        upstreams: of the proxy.
        wheels: of the upstreams.
        upstream: of the wheel.
        choice: of the page that the client sees.
        offer: the wheel; it counts in place of the one with its plain filename.

    Raises:
        UpstreamError: its own METADATA cannot be read.
    """

    async def own(item: Offer) -> WheelMetadata:
        reduced = await wheels.reduced(upstream, item.file, item.context)
        data = reduced or await wheels.read(upstream, item.file)
        return WheelMetadata(item.filename, item.label, data)

    version = wheel_version(offer.filename)
    same = [
        item
        for item in choice.offers
        if item.context is not None
        and item.filename != offer.filename
        and wheel_version(item.filename) == version
    ]
    # In the same order for every client: the result is the same byte for byte.
    known: dict[object, WheelMetadata] = {}
    found: list[WheelMetadata] = []
    for item in sorted((offer, *same), key=attrgetter("filename")):
        key = _source(item, upstreams.limits.hashed_bytes)
        try:
            known[key] = known.get(key) or await own(item)
        except (UpstreamError, VariantError):
            return None
        found.append(replace(known[key], filename=item.filename))
    ordered = tuple(found)
    limit = upstreams.limits.metadata_bytes
    return await upstreams.budget(upstream).compute(lambda: _merged(ordered, limit))


def _source(offer: Offer, limit: int) -> object:
    """Return what is equal for wheels whose METADATA is read once.

    That of large wheels with nothing beside them takes megabytes: one is read of each label and
    platform. Wheels of one build differ in Python alone.
    """
    if is_cheap(offer.file) or (offer.file.size or 0) <= limit:
        return offer.filename
    return offer.label, platform_of(offer.filename)


@lru_cache(maxsize=64)
def _merged(wheels: Sequence[WheelMetadata], limit: int) -> bytes | None:
    return merge_metadata(wheels, limit)


def _plain_is_read(offers: Sequence[Offer]) -> bool:
    """Return whether uv may read the METADATA of a wheel without label of an in-place page."""
    labelled = [
        _build(encoded_name(offer.filename, offer.label))
        for offer in offers
        if offer.label is not None
    ]
    plain = [_build(offer.filename) for offer in offers if offer.label is None]
    return any(build >= max(labelled, default=build) for build in plain)


def _build(filename: str) -> tuple[int, str]:
    parts = filename.split("-")
    return build_tag(parts[2] if len(parts) == 6 else "")
