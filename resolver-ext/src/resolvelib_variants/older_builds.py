"""Older versions with a build for the target's accelerator, where the chosen one has none."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pep_variants.choose.displaced import (
    MAX_VERSIONS,
    displaced_by,
    has_accelerator,
    is_accelerated,
    is_promising,
)
from pep_variants.choose.preferences import Preferences
from pep_variants.choose.selection import Selection, select
from pep_variants.model.metadata import Metadata
from pep_variants.model.platform import Platform

from .decision import file_of, group_by_version
from .interfaces import CandidateFiles
from .ordering import VariantOrdering

logger = logging.getLogger(__name__)

CT = TypeVar("CT")


@dataclass(frozen=True)
class Judge(Generic[CT]):
    """Decides about versions that are not offered to the resolver.

    Attributes:
        files: how candidates name their files.
        platform: supported values for metadata.
        preferences: of the user.
    """

    files: CandidateFiles[CT]
    platform: Callable[[Metadata], Platform]
    preferences: Preferences

    def __call__(self, project: str, group: Sequence[CT]) -> Selection[CT] | None:
        """Return the decision about a version, given by all its files; None after any error."""
        files = [file_of(self.files, candidate) for candidate in group]
        first: dict[str, CT] = {}
        for file in files:
            if file.label is not None:
                first.setdefault(file.source, file.item)
        try:
            return select(
                files,
                metadata=lambda source: self.files.metadata(project, first[source]),
                platform=self.platform,
                preferences=self.preferences,
                project=project,
            )
        except Exception:  # nothing depends on it
            logger.debug("a version of %s cannot be judged", project, exc_info=True)
            return None


def older_build(
    ordering: VariantOrdering[CT],
    judge: Judge[CT],
    project: str,
    chosen: CT,
    offered: Iterable[CT],
) -> str:
    """Return the line about an older version with a build for the accelerator of the target.

    Empty if *chosen* is such a build, if there is no such version, or no accelerator. The metadata
    of at most `MAX_VERSIONS` versions is read, and none where nothing can come of it.

    Args:
        ordering: of the resolution, which is finished.
        judge: of versions that the resolution did not come to.
        project: normalized project name.
        chosen: what the resolution took of it.
        offered: files that the requirements admit, newest version first.
    """
    files = judge.files
    version: Any = files.version(chosen)
    selection, file = ordering.selection(project, chosen), file_of(files, chosen)
    if ordering.forces(project) or is_accelerated(selection, file):
        return ""
    older: list[tuple[Hashable, Sequence[CT]]] = []
    for other, group in group_by_version(files, offered):
        if len(older) == MAX_VERSIONS:
            break
        if not other < version or getattr(other, "is_prerelease", False):
            continue
        if is_promising(selection, _labels(files, group)):
            older.append((other, group))
    if not older or not has_accelerator(judge.platform):
        return ""

    known = dict(ordering.judged(project))
    decisions = (
        (other, known[other] if other in known else judge(project, group)) for other, group in older
    )
    return displaced_by(project, version, selection, file, decisions)


def _labels(files: CandidateFiles[CT], group: Iterable[CT]) -> frozenset[str]:
    labels = (file_of(files, candidate).label for candidate in group)
    return frozenset(label for label in labels if label is not None)
