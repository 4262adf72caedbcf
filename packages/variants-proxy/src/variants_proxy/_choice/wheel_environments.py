"""Environments that markers can tell apart, and the wheel that an installer takes in each.

Markers know the system, the CPU and the version of Python. They do not know the C library of Linux,
its version, the version of macOS, nor whether Python has a GIL. Among wheels that differ in these
only, the one that most machines take decides: glibc before musl, the newest platform tag first,
with a GIL. Windows with a 32-bit Python reports the CPU of the machine: ``win32`` wheels count for
32-bit machines only. Wheels for other implementations than CPython decide nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import TypeAlias, TypeVar

from pep_variants import machines, markers
from pep_variants.markers import Term
from variants_index import target as target_machines

_K = TypeVar("_K")

Rank: TypeAlias = "tuple[int, ...]"
"""Place of a wheel among those that can be installed in an environment: the least is taken."""

# More than any real project has: tags of a wheel, regions, versions of Python, and steps in all.
_TAGS, _REGIONS, _MINORS, _STEPS = 128, 64, 64, 300_000
_PYTHONS = range(10, 20)  # older ones are no longer supported
_PYTHON = re.compile(r"(cp|py)(\d)(\d*)")
_BUILD = re.compile(r"([0-9]+)(.*)", re.DOTALL)
_DIGITS = 9
"""Of build numbers that are compared."""
# uvs before 0.13 evaluate markers for `--python-platform windows` with x86_64.
_SPELLINGS = {
    ("win32", "x86_64"): ("AMD64", "x86_64"),
    ("win32", "aarch64"): ("ARM64",),
    ("win32", "i686"): ("x86",),
    ("darwin", "aarch64"): ("arm64",),
}
# Kinds of wheels, in the order in which most machines take them.
_NATIVE, _PURE, _MUSL, _FREE_THREADED = range(4)
_ANYWHERE: Rank = (_PURE,)
_NO_GIL = 400


@dataclass(frozen=True)
class Region:
    """A system and a CPU.

    Attributes:
        system: as in `sys_platform`; empty for all others.
        machine: CPU in the spelling of Linux; empty for all others.
    """

    system: str = ""
    machine: str = ""


ELSEWHERE = Region()


@dataclass(frozen=True)
class WheelEnvironments:
    """The environments that the tags of some wheels tell apart.

    Attributes:
        regions: named by the wheels, in order, and the rest of each system.
        minors: minor versions of Python 3, ascending: 12 for 3.12. The first stands for older ones
            as well, the last for newer ones.
        deciding: by region and minor version, the index of the wheel that an installer takes.
            Nothing where none can be installed.
    """

    regions: tuple[Region, ...]
    minors: tuple[int, ...]
    deciding: Mapping[Region, Mapping[int, int]]


def environments(filenames: Sequence[str]) -> WheelEnvironments | None:
    """Return the environments that wheels with these plain *filenames* tell apart.

    None if there are more than any real project has.
    """
    # Most versions of a project have the same tags.
    return _environments(tuple(filename.split("-", 2)[-1] for filename in filenames))


def share_machines(one: Sequence[str], two: Sequence[str]) -> bool:
    """Return whether files of both projects are installed on one kind of machine.

    Args:
        one: plain filenames of wheels; none of a project without wheels.
        two: of another project.
    """
    places = []
    for filenames in (one, two):
        found = environments(filenames) if filenames else None
        places.append({region for region, of in found.deciding.items() if of} if found else set())
    is_elsewhere = any(ELSEWHERE in regions for regions in places)
    return not places[0].isdisjoint(places[1]) or (all(places) and is_elsewhere)


@lru_cache(maxsize=64)
def _environments(tails: Sequence[str]) -> WheelEnvironments | None:
    """Return `environments` of wheels with these parts of filenames after the version."""
    wheels = [tuple(islice(_tags(tail), _TAGS + 1)) for tail in tails]
    regions = {ELSEWHERE: None}
    minors: set[int] = set()
    for tags in wheels:
        for tag in tags:
            minors.update(_minors(tag.python))
            for region, _ in tag.regions:
                regions[Region(region.system)] = None
                regions[region] = None
    if max(map(len, wheels)) > _TAGS or len(regions) > _REGIONS:
        return None
    if minors and max(minors) - min(minors) > _MINORS:
        return None
    # One more on each side stands for all others.
    every = tuple(range(min(minors) - 1, max(minors) + 2)) if minors else (0,)
    steps = sum(len(tag.regions) or len(regions) for tags in wheels for tag in tags)
    if steps * len(every) > _STEPS:
        return None
    best: dict[Region, dict[int, tuple[Rank, Rank, int]]] = {region: {} for region in regions}
    for number, tags in enumerate(wheels):
        for tag in tags:
            ranks = {minor: python_rank(tag.python, tag.abi, minor) for minor in every}
            for region, platform in tag.regions or [(region, _ANYWHERE) for region in regions]:
                for minor, rank in ranks.items():
                    if rank is not None:
                        kind = _FREE_THREADED if rank == _NO_GIL else platform[0]
                        place = (kind, rank, *platform[1:]), tag.build, number
                        if place < best[region].setdefault(minor, place):
                            best[region][minor] = place
    deciding = {
        region: {minor: number for minor, (_, _, number) in places.items()}
        for region, places in best.items()
    }
    return WheelEnvironments(tuple(regions), every, deciding)


def build_tag(text: str) -> tuple[int, str]:
    """Return number and letters of a build tag, by which uv compares; less than any for none."""
    match = _BUILD.fullmatch(text)
    if match is None or len(match[1]) > _DIGITS:
        return -1, ""
    return int(match[1]), match[2]


@dataclass(frozen=True)
class _Tag:
    """One tag of a wheel; no regions mean everywhere, and a higher build comes first."""

    python: str
    abi: str
    regions: Sequence[tuple[Region, Rank]]
    build: Rank


def _tags(tail: str) -> Iterator[_Tag]:
    parts = tail.removesuffix(".whl").split("-")
    if len(parts) < 3:
        return
    *front, pythons, abis, platforms = parts
    number, letters = build_tag(front[0]) if front else (-1, "")
    build = (-number, *(-ord(letter) for letter in letters), 1)
    for platform in platforms.split("."):
        regions = _regions(platform)
        if regions or platform == "any":
            for python in pythons.split("."):
                for abi in abis.split("."):
                    yield _Tag(python, abi, regions, build)


@lru_cache(maxsize=4096)
def _regions(platform: str) -> Sequence[tuple[Region, Rank]]:
    """Return where wheels with a platform tag can be installed, and how much they are preferred."""
    if linux := machines.LINUX.fullmatch(machines.modern_tag(platform)):
        if linux[5]:
            return [(Region("linux", linux[6]), (_NATIVE, 0, 0))]
        kind = _MUSL if linux[1] == "musllinux" else _NATIVE
        return [(Region("linux", linux[4]), (kind, -int(linux[2]), -int(linux[3])))]
    if mac := machines.MACOS.fullmatch(platform):
        architectures = target_machines.MACS.get(mac[3], ())
        rank = (_NATIVE, -int(mac[1]), -int(mac[2]), len(architectures))
        return [(Region("darwin", machine), rank) for machine in architectures]
    if machine := target_machines.WINDOWS.get(platform):
        return [(Region("win32", machine), (_NATIVE,))]
    system = platform.partition("_")[0]
    if system in ("android", "ios"):
        return [(Region(system), (_NATIVE,))]
    return [(Region("emscripten"), (_NATIVE,))] if system in ("emscripten", "pyodide") else []


def _minors(tag: str) -> Iterator[int]:
    match = _PYTHON.fullmatch(tag)
    if match and match[2] == "3" and match[3]:
        yield int(match[3][:6])


@lru_cache(maxsize=65536)
def python_rank(tag: str, abi: str, minor: int) -> int | None:
    """Return how much a wheel is preferred for CPython 3.*minor*, None if it does not fit."""
    match = _PYTHON.fullmatch(tag)
    if match is None or match[2] != "3":
        return None
    own = int(match[3][:6]) if match[3] else None
    older = 0 if own is None else minor - own
    if older < 0:
        return None
    if match[1] == "py":
        return 200 + older if own is not None else 300
    if own is None:
        return 150
    if abi == "abi3":
        return 10 + older if older else 1
    if older:
        return None
    if abi == "none":
        return 2
    return _NO_GIL if abi == f"{tag}t" else 0


@lru_cache(maxsize=4096)
def runs_on(plain: str, requires: str | None, python: str) -> int:
    """Return in how many Pythons a wheel can be installed, of all or of one version."""
    tags = [part.split(".") for part in plain.split("-")[-3:-1]]
    minors = [
        minor
        for minor in _PYTHONS
        if any(python_rank(tag, abi, minor) is not None for tag in tags[0] for abi in tags[1])
    ]
    versions = [f"3.{minor}.{micro}" for minor in minors for micro in (0, 99)]
    if python:
        versions = [python] if int(python.split(".")[1]) in minors else []
    return sum(target_machines.meets_python(requires, version) for version in versions)


@lru_cache(maxsize=4096)
def _pythons(tags: str, requires: str | None) -> frozenset[int]:
    return frozenset(each for each in _PYTHONS if runs_on(tags, requires, f"3.{each}"))


def pythons_of(plain: str, requires: str | None) -> frozenset[int]:
    """Return the versions of Python 3 in which a wheel can be installed."""
    return _pythons("-".join(plain.split("-")[-3:]), requires)


def python_term(found: Sequence[int], minors: Sequence[int]) -> Term | bool:
    """Return the marker of the versions *found*, of all in *minors*; both ascending."""
    runs: list[tuple[int, int]] = []
    for minor in found:
        if runs and runs[-1][1] == minor - 1:
            runs[-1] = runs[-1][0], minor
        else:
            runs.append((minor, minor))
    terms: list[Term | bool] = []
    for first, last in runs:
        ends: list[Term | bool] = []
        if first == last and minors[0] < first < minors[-1]:
            ends = [Term(f"python_version == '3.{first}'")]
        else:
            if first > minors[0]:
                ends.append(Term(f"python_version >= '3.{first}'"))
            if last < minors[-1]:
                ends.append(Term(f"python_version < '3.{last + 1}'"))
        terms.append(markers.all_of(ends))
    return markers.any_of(terms)


def region_term(values: Mapping[Region, Term | bool]) -> Term | bool:
    """Return the marker that has in every region the value that *values* has for it."""
    systems: dict[str, dict[str, Term | bool]] = {}
    for region, value in values.items():
        systems.setdefault(region.system, {})[region.machine] = value
    (elsewhere,) = systems.pop("").values()
    return chosen_term(
        {name: _machine_term(name, architectures) for name, architectures in systems.items()},
        elsewhere,
        lambda name: Term(f"sys_platform == '{name}'"),
        lambda name: Term(f"sys_platform != '{name}'"),
    )


def _machine_term(system: str, values: Mapping[str, Term | bool]) -> Term | bool:
    def spellings(machine: str) -> Sequence[str]:
        return _SPELLINGS.get((system, machine), (machine,))

    return chosen_term(
        {machine: value for machine, value in values.items() if machine},
        values[""],
        lambda name: markers.any_of(
            Term(f"platform_machine == '{item}'") for item in spellings(name)
        ),
        lambda name: markers.all_of(
            Term(f"platform_machine != '{item}'") for item in spellings(name)
        ),
    )


def chosen_term(
    values: Mapping[_K, Term | bool],
    otherwise: Term | bool,
    is_key: Callable[[_K], Term | bool],
    is_not_key: Callable[[_K], Term | bool],
) -> Term | bool:
    """Return the marker that has the value of the key that holds, *otherwise* if none does.

    Args:
        values: by key; one key holds at a time.
        otherwise: value where no key holds.
        is_key: returns the marker that a key holds.
        is_not_key: returns the marker that it does not.
    """
    other = {key: value for key, value in values.items() if value != otherwise}
    if otherwise is True:
        return markers.all_of(
            markers.any_of((is_not_key(key), value)) for key, value in other.items()
        )
    terms = [markers.all_of((is_key(key), value)) for key, value in other.items()]
    if otherwise is False or not other:
        return markers.any_of((*terms, otherwise))
    outside = (is_not_key(key) for key, value in other.items() if value is not True)
    return markers.any_of((*terms, markers.all_of((*outside, otherwise))))
