"""The wrapped resolver on an index with variants, beside plain resolvelib on the same without.

Everything is in memory: what is measured is the resolver, the wrapper and the engine. Each project
requires the next and two further on, so that all of them are resolved.
"""

from __future__ import annotations

import functools
import json
import operator
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from packaging.version import Version
from resolvelib import AbstractProvider, BaseReporter, Resolver

from pep_variants._formats.reader import read_metadata
from pep_variants._model.metadata import Metadata
from pep_variants._model.platform import Platform, Support
from pep_variants.labels import split_label
from resolvelib_variants.provider import VariantProvider

from .report import Row, in_turn

VERSIONS = 20
VARIANTS = 12
WITH_VARIANTS = 10
"""Every how manieth project has variants."""

GOALS = {100: (1.25, 41), 500: (1.25, 15), 2000: (1.10, 3)}
"""What the wrapper may take, and how often it is measured, by the number of projects."""
_MAX_ROUNDS = 100_000
_PLATFORM = Platform({"cpu": Support({"level": tuple(f"v{n}" for n in range(VARIANTS, 0, -1))})})


class Requirement(NamedTuple):
    """At least a version; nothing is parsed or looked up again while a resolution is measured."""

    name: str
    least: Version


class Candidate(NamedTuple):
    """A file."""

    name: str
    version: Version
    filename: str


class Universe:
    """An index in memory, which is `ProviderFiles`, too.

    Attributes:
        files: candidates by project, newest version first.
        requires: requirements by project; every version has the same.
    """

    version = staticmethod(operator.attrgetter("version"))
    filename = staticmethod(operator.attrgetter("filename"))

    def __init__(self, size: int, every: int) -> None:
        """Make *size* projects, *every* so manieth of them with variants (0: none)."""
        levels = [f"v{level}" for level in range(1, VARIANTS + 1)]
        tree = {
            "$schema": "https://variants-schema.wheelnext.dev/peps/825/v0.1.1.json",
            "default-priorities": {"namespace": ["cpu"]},
            "variants": {level: {"cpu": {"level": [level]}} for level in levels},
        }
        self._metadata = json.dumps(tree)
        self.files: dict[str, list[Candidate]] = {}
        self.requires: dict[str, list[str]] = {}
        versions = [Version(f"1.{number}") for number in reversed(range(VERSIONS))]
        for number in range(size):
            name = f"p{number}"
            labels = [f"-{level}" for level in levels] if every and number % every == 0 else []
            self.files[name] = [
                Candidate(name, version, f"{name}-{version}-py3-none-any{label}.whl")
                for version in versions
                for label in (*labels, "")
            ]
            further = (number + 1, number + 7, number + 31)
            self.requires[name] = [f"p{n}>=1.{n % VERSIONS}" for n in further if n < size]

    def source(self, candidate: Candidate) -> str:  # noqa: ARG002
        """Return the one index there is."""
        return "https://index.example/simple/"

    def metadata(self, project: str, candidate: Candidate) -> Metadata:
        """Read what lies beside the file."""
        return read_metadata(self._metadata, f"{project}-{candidate.version}-variants.json")

    def has_variants(self, identifier: str) -> bool:
        """Look at one version: all have the same files."""
        return split_label(self.files[identifier][0].filename)[1] is not None

    def project(self, identifier: str) -> str:
        """Return the identifier."""
        return identifier

    def dependencies(
        self, candidate: Candidate, reduce: Callable[[str], str | None]
    ) -> Iterable[Requirement] | None:
        """Return the requirements with reduced markers, for what is a variant."""
        if split_label(candidate.filename)[1] is None:
            return None
        reduced = map(reduce, self.requires[candidate.name])
        return [_parse(text) for text in reduced if text is not None]


class PlainProvider(AbstractProvider[Requirement, Candidate, str]):
    """A provider that knows nothing of variants."""

    def __init__(self, universe: Universe) -> None:
        self._universe = universe

    def identify(self, requirement_or_candidate: Requirement | Candidate) -> str:
        """Return the project."""
        return requirement_or_candidate.name

    def get_preference(self, identifier: str, *_: Any, **__: Any) -> str:
        """Return the name: any order will do."""
        return identifier

    def find_matches(
        self,
        identifier: str,
        requirements: Mapping[str, Iterator[Requirement]],
        incompatibilities: Mapping[str, Iterator[Candidate]],
    ) -> Callable[[], Iterator[Candidate]]:
        """Return what satisfies all requirements, newest first."""
        least = max(item.least for item in requirements[identifier])
        excluded = set(incompatibilities[identifier])
        return lambda: (
            candidate
            for candidate in self._universe.files[identifier]
            if candidate.version >= least and candidate not in excluded
        )

    def is_satisfied_by(self, requirement: Requirement, candidate: Candidate) -> bool:
        """Return whether the version is among those required."""
        return candidate.version >= requirement.least

    def get_dependencies(self, candidate: Candidate) -> list[Requirement]:
        """Return the requirements of the project."""
        return [_parse(text) for text in self._universe.requires[candidate.name]]


@functools.cache
def _parse(text: str) -> Requirement:
    name, _, version = text.partition(">=")
    return Requirement(name, Version(version or "0"))


def plain(universe: Universe) -> int:
    """Resolve with resolvelib alone; return how many projects were resolved."""
    return _resolve(PlainProvider(universe))


def wrapped(universe: Universe) -> int:
    """Resolve with the wrapper; return how many projects were resolved."""
    provider: VariantProvider[Requirement, Candidate, str] = VariantProvider(
        PlainProvider(universe), universe, platform=lambda _: _PLATFORM
    )
    return _resolve(provider)


def _resolve(provider: AbstractProvider[Requirement, Candidate, str]) -> int:
    result = Resolver(provider, BaseReporter()).resolve([_parse("p0")], max_rounds=_MAX_ROUNDS)
    return len(result.mapping)


def rows() -> Iterator[Row]:
    """Measure."""
    for size, (goal, rounds) in GOALS.items():
        mixed, without = Universe(size, WITH_VARIANTS), Universe(size, 0)
        assert wrapped(mixed) == plain(without) == size
        ours, theirs = in_turn(
            functools.partial(wrapped, mixed), functools.partial(plain, without),
            rounds=rounds, warmups=0, clock=time.process_time,
        )  # fmt: skip
        yield Row(
            f"resolve {size} projects, a tenth with {VARIANTS} variants", ours * 1e3, theirs * 1e3,
            "ms", "resolvelib, no variants", f"at most {goal:.2f}x", ours <= goal * theirs,
        )  # fmt: skip
