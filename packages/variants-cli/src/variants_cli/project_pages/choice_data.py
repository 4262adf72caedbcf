"""What the script on the page chooses from: metadata, files and machines, in one form.

Everything that takes rules is done here, by the engine: reading metadata of every format, what a
provider comes to on a system (markers, optional and static providers), the phrases, which wheels
are for which system and Python. The script is left with comparing. Mappings whose order counts are
lists of pairs, because objects of JavaScript put keys that are numbers first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.tags import Tag, parse_tag

from pep_variants.choose.abi import supporting
from pep_variants.choose.explanation import UNRESOLVED
from pep_variants.choose.phrases import NOTHING, needs, why_chosen, why_rejected
from pep_variants.choose.ranking import Reason
from pep_variants.detect.detector import Detector
from pep_variants.detect.registry import BUILTIN_NAMESPACES
from pep_variants.model.metadata import Metadata
from pep_variants.model.platform import Platform, Support
from pep_variants.model.property import ABI_DEPENDENCY, Features
from variants_index.target import Target, make_target

from .machines import machine_tree, pairs
from .releases import Release, ReleaseFile

SYSTEMS = {
    "linux-x86_64": "Linux, x86-64",
    "linux-aarch64": "Linux, 64-bit Arm",
    "windows-x86_64": "Windows, x86-64",
    "windows-arm64": "Windows, 64-bit Arm",
    "macos-arm64": "macOS, Apple silicon",
    "macos-x86_64": "macOS, Intel",
}
"""Systems of `variants_index.target`, and what people call them."""

PYTHONS = ("3.14", "3.13", "3.12", "3.11", "3.10")
"""Versions of Python that wheels for any version are offered for."""

FILE = "the platform file"
"""The source of platforms that are read on the page, for notices."""

_LAST = 1_000_000
"""The place of source distributions: behind every wheel."""

_MARK = "\0"  # in no name, value or phrase
_BUILTIN = Platform({name: Support({_MARK: (name,)}) for name in BUILTIN_NAMESPACES})
"""Where the built-in provider of a namespace would be asked, detection gives its name."""


def choice_tree(project: str, releases: Sequence[Release]) -> dict[str, Any]:
    """Return the data for the script, as JSON.

    Args:
        project: normalized name.
        releases: all of the page, in its order.
    """
    systems, pythons = _targets(releases)
    tables = _Tables([(system, python) for system in systems for python in pythons])
    tree: dict[str, Any] = {
        "project": project,
        "systems": [[name, SYSTEMS[name]] for name in systems],
        "pythons": list(pythons),
        "releases": [tables.release(release) for release in releases if release.version],
    }
    return tree | {
        "kinds": tables.places(),
        "supports": tables.supports.items,
        "requirements": tables.requirements.items,
        "phrases": {
            "nothing": NOTHING,
            "unresolved": UNRESOLVED,
            "has": [phrase for it in tables.features if (phrase := _found_phrase(*it))],
        },
        "abi": ABI_DEPENDENCY,
        "machines": machine_tree(),
    }


@dataclass
class _Table:
    """Items that are named by their place."""

    items: list[Any] = field(default_factory=list)
    _places: dict[Any, int] = field(default_factory=dict)

    def place(self, key: object, item: Any) -> int:  # noqa: ANN401
        if key not in self._places:
            self._places[key] = len(self.items)
            self.items.append(item)
        return self._places[key]

    def knows(self, key: object) -> int | None:
        return self._places.get(key)


class _Tables:
    """What releases have in common."""

    def __init__(self, targets: Sequence[tuple[str, str]]) -> None:
        self._targets = targets
        self.supports = _Table()
        self.requirements = _Table()
        self._kinds = _Table()
        self.features: dict[tuple[str, str], None] = {}

    def release(self, release: Release) -> dict[str, Any]:
        """Return *release* as data."""
        labels = [row.label for row in release.rows]
        files = [item for row in release.rows for item in row.files]
        tree: dict[str, Any] = {
            "version": str(release.version),
            "labels": labels,
            "files": [
                [place, self._tag(item), *item.build]
                for place, row in enumerate(release.rows)
                for item in row.files
            ],
        }
        if yanked := [place for place, item in enumerate(files) if item.file.yanked is not None]:
            tree["yanked"] = yanked
        if release.is_late:
            tree["late"] = True
        if release.problem:
            tree["problem"] = release.problem
        metadata = release.metadata
        if metadata is None:
            return tree
        variants = []
        for label, properties in metadata.variants.items():
            requirements = [
                self._requirement(namespace, feature, values)
                for namespace, features in properties.items()
                for feature, values in features.items()
            ]
            variants.append([label, requirements])
        abi = supporting(Platform(), metadata).support(ABI_DEPENDENCY).features
        return tree | {
            "namespaces": list(metadata.namespaces),
            "features": [
                [name, list(given)] for name, given in metadata.feature_priorities.items()
            ],
            "properties": [
                [name, pairs(given)] for name, given in metadata.property_priorities.items()
            ],
            "supports": [*self._supports(metadata)],
            "variants": variants,
            "abi": pairs(abi),
        }

    def places(self) -> list[list[int]]:
        """Return the place of each kind of file in the order of each target; -1: does not fit."""
        return [
            [
                _place(tags, system, python) if _allows(requires, python) else -1
                for system, python in self._targets
            ]
            for tags, requires in self._kinds.items
        ]

    def _tag(self, item: ReleaseFile) -> int:
        """Return the place of what decides where *item* can be installed; -1 for anywhere."""
        key = item.tags, item.file.requires_python
        return -1 if key == ("", None) else self._kinds.place(key, key)

    def _requirement(self, namespace: str, feature: str, values: tuple[str, ...]) -> int:
        """Return the place of one feature of a variant, with its phrases."""
        key = namespace, feature, values
        known = self.requirements.knows(key)
        if known is not None:
            return known
        self.features[namespace, feature] = None
        reason = Reason(namespace, feature, values, ())
        fits = [why_chosen({namespace: {feature: (value,)}}) for value in values]
        if namespace == ABI_DEPENDENCY:
            fits = []  # all values that are supported make one phrase
        item = [namespace, feature, list(values), needs(reason), why_rejected(reason), fits]
        return self.requirements.place(key, item)

    def _supports(self, metadata: Metadata) -> Iterator[list[Any]]:
        """Yield each namespace with what counts for it where the machine's description is silent.

        For a platform file, and for a machine that is detected; each by target, or once if it is
        the same everywhere.
        """
        targets = [_target(*target).environment for target in self._targets]
        if not _depends_on_target(metadata):
            targets = targets[:1]
        unlisted, detected = [], []
        for environment in targets or [{}]:
            unlisted.append(
                Detector(environment=environment, platform=Platform(source=FILE)).platform(metadata)
            )
            detected.append(Detector(environment=environment, detected=_BUILTIN).platform(metadata))
        for namespace in metadata.namespaces:
            if namespace != ABI_DEPENDENCY:
                yield [
                    namespace,
                    _short([self._support(found.support(namespace)) for found in unlisted]),
                    _short([self._support(found.support(namespace)) for found in detected]),
                ]

    def _support(self, support: Support) -> int:
        """Return the place of a support: ``builtin``, ``features`` or ``notice``."""
        item: dict[str, Any]
        if _MARK in support.features:
            item = {"builtin": support.features[_MARK][0]}
        else:
            item = {"features": pairs(support.features)} if support.features else {}
            if support.notice:
                item["notice"] = support.notice
        return self.supports.place(repr(item), item)


def _short(places: list[int]) -> list[int]:
    return places[:1] if len(set(places)) == 1 else places


def _depends_on_target(metadata: Metadata) -> bool:
    return any(
        provider.enable_if or any(";" in text for text in provider.requires)
        for provider in metadata.providers.values()
    )


@cache
def _found_phrase(namespace: str, feature: str) -> list[Any] | None:
    """Return how the engine says what a machine has of *feature*, None for the general phrase.

    Namespace, feature, the phrase with a place for values, whether all values are named or the
    first alone, and how values are named that are not named as they are written.
    """
    before, _, after = _found(namespace, feature, _MARK).partition(_MARK)
    known: Features = {}
    if namespace in BUILTIN_NAMESPACES:
        known = BUILTIN_NAMESPACES[namespace].factory().known()
    named = {
        value: _found(namespace, feature, value).removeprefix(before).removesuffix(after)
        for value in known.get(feature, ())
    }
    other = [[value, name] for value, name in named.items() if value != name]
    several = "\1" in _found(namespace, feature, _MARK, "\1")
    if not other and several and (before, after) == ("this machine has ", ""):
        return None
    return [namespace, feature, f"{before}{{}}{after}", several, other]


def _found(namespace: str, feature: str, *supported: str) -> str:
    """Return the part of a rejection that says what the machine has."""
    wanted = ("wanted",)
    whole = why_rejected(Reason(namespace, feature, wanted, supported))
    return whole.removeprefix(f"{needs(Reason(namespace, feature, wanted, supported))}, ")


def _targets(releases: Sequence[Release]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return systems and Pythons that have wheels, Pythons newest first."""
    tags = {item.tags for release in releases for item in release.files if item.tags}
    pythons = sorted({*PYTHONS, *filter(None, map(_python, tags))}, key=_number, reverse=True)
    # Most wheels are for few systems, and a target has thousands of tags.
    platforms = {tag.platform for each in tags for tag in _tags_of(each)}
    systems = [
        system
        for system in SYSTEMS
        if platforms & _platforms(system)
        and any(_place(each, system, python) >= 0 for each in tags for python in pythons)
    ]
    return tuple(systems), tuple(pythons)


def _python(tags: str) -> str | None:
    """Return the one CPython that wheels with *tags* are for, ``3.12``; None for several."""
    python, abi, _ = tags.split("-")
    is_one = python == abi and python.startswith("cp3") and python[3:].isdigit()
    return f"3.{python[3:]}" if is_one and len(python) <= 5 else None


def _number(python: str) -> tuple[int, ...]:
    return tuple(map(int, python.split(".")))


@lru_cache(maxsize=256)
def _target(system: str, python: str) -> Target:
    # The ABI is named, because that of the running Python would depend on who writes the page.
    abi = f"cp{python.replace('.', '')}"
    return make_target(python_version=python, platforms=[system], implementation="cpython", abi=abi)


@cache
def _platforms(system: str) -> frozenset[str]:
    """Return the platform tags of *system*, the same for every Python."""
    return frozenset(tag.platform for tag in _target(system, PYTHONS[0]).tags)


@lru_cache(maxsize=4096)
def _tags_of(tags: str) -> frozenset[Tag]:
    return parse_tag(tags)


@lru_cache(maxsize=65536)
def _place(tags: str, system: str, python: str) -> int:
    if not tags:
        return _LAST
    places = _target(system, python).places
    return min((places[tag] for tag in _tags_of(tags) if tag in places), default=-1)


@lru_cache(maxsize=4096)
def _allows(requires: str | None, python: str) -> bool:
    """Return whether some release of *python*, ``3.12``, is what a file requires."""
    if requires is None:
        return True
    try:
        specifiers = SpecifierSet(requires)
    except InvalidSpecifier:
        return True  # as installers take it
    return any(specifiers.contains(f"{python}.{patch}") for patch in (0, 99))
