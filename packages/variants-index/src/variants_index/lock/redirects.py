"""Builds of the catalogue in lock files, which other installers are to read.

A published file is listed as published: with its version, name, URL and hashes, and without variant
metadata, which no installer needs to take the one build that is there. A redirect has no URL; it
is left out, and what it requires is locked in its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from pep_variants.errors import LockError

from ..candidate import Candidate
from ..target import Target

Redirects = Mapping[str, Sequence[Requirement]]
"""What redirects require, by the project that they are of."""


def locked_redirects(
    targets: Sequence[tuple[Target, Sequence[Candidate]]],
) -> Mapping[str, Redirects]:
    """Return the redirects among the candidates of each target, by its name.

    Raises:
        LockError: targets that no marker tells apart need different builds; names the project.
    """
    _check_builds(targets)
    return {
        target.name: {
            item.project: tuple(_required(item.redirect.published.requires, target))
            for item in candidates
            if item.redirect is not None
        }
        for target, candidates in targets
    }


def _required(texts: Iterable[str], target: Target) -> Iterator[Requirement]:
    for requirement in map(Requirement, texts):
        marker = requirement.marker
        if marker is None or marker.evaluate({**target.environment, "extra": ""}):
            yield requirement


def replaced(names: Iterable[str], redirects: Redirects) -> set[str]:
    """Return *names* of projects, with what is required in place of redirects."""
    return {
        required
        for name in names
        for required in (
            (canonicalize_name(item.name) for item in redirects[name])
            if name in redirects
            else (name,)
        )
    }


def requested(
    wanted: Mapping[str, frozenset[str]], redirects: Redirects
) -> dict[str, frozenset[str]]:
    """Return what the user asked for, extras by name, with what redirects require."""
    found = {name: extras for name, extras in wanted.items() if name not in redirects}
    for requirements in redirects.values():
        for item in requirements:
            name = canonicalize_name(item.name)
            extras = {"", *map(canonicalize_name, item.extras)}
            found[name] = found.get(name, frozenset()) | extras
    return found


def _check_builds(targets: Sequence[tuple[Target, Sequence[Candidate]]]) -> None:
    seen: dict[tuple[str, str], tuple[Target, Candidate]] = {}
    for target, candidates in targets:
        for candidate in candidates:
            key = target.marker, candidate.project
            other, earlier = seen.setdefault(key, (target, candidate))
            described = candidate.catalog is not None or earlier.catalog is not None
            if described and candidate.label != earlier.label:
                raise LockError(
                    f"{other.name} needs {_named(earlier)} and {target.name} needs "
                    f"{_named(candidate)}, and installers cannot tell from a lock file which of "
                    "the two is for them: write one lock file for each target"
                )


def _named(candidate: Candidate) -> str:
    label = candidate.label
    build = "the non-variant file" if label is None else f"variant {label}"
    return f"{build} of {candidate.project} {candidate.release}"
