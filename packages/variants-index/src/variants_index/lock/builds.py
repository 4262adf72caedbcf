"""Builds of the catalogue in lock files, which other installers are to read.

A published file is listed as published: under the publisher's name, with its version, URL and
hashes, and without variant metadata, which no installer needs to take the one build that is there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from packaging.utils import canonicalize_name

from pep_variants.errors import LockError

from ..candidate import Candidate
from ..target import Target

Names = Mapping[str, str]
"""Publishers' names by project, where they differ."""

_NAME = re.compile(r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)")


def published_names(
    targets: Sequence[tuple[Target, Sequence[Candidate]]],
) -> Mapping[str, Names]:
    """Return the publishers' names of the candidates of each target, by its name.

    Raises:
        LockError: targets that no marker tells apart need different builds; names the project.
    """
    _check_builds(targets)
    return {
        target.name: {
            item.project: item.published_name
            for item in candidates
            if item.published_name != item.project
        }
        for target, candidates in targets
    }


def renamed(requirements: Iterable[str], every: Iterable[Names]) -> list[str]:
    """Return *requirements* of what the lock file lists, by the names of any target."""
    named = list(every)
    return list(dict.fromkeys(_renamed(text, names) for text in requirements for names in named))


def _renamed(requirement: str, names: Names) -> str:
    found = _NAME.match(requirement)
    other = None if found is None else names.get(canonicalize_name(found[1]))
    return requirement if found is None or other is None else f"{other}{requirement[found.end() :]}"


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
