"""Candidates that stand for a version before its variants are judged.

Where the index gives one hash for METADATA of all wheels of a version (PEP 658), its dependencies
are known before its variant is. The resolver then gets a provisional candidate, of the variant that
another version had, and the variant metadata is fetched only if it accepts the dependencies:
backtracking costs no more requests than without variants.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from pep_variants import labels as wheel_labels
from pep_variants.selection import File

from ._decision import file_of
from ._judging import VersionJudge, logger
from .interfaces import MetadataHashes

CT = TypeVar("CT")


@dataclass
class ProvisionalVersion(Generic[CT]):
    """A version that is offered before it is judged.

    Attributes:
        candidate: stands for it.
        file: of the candidate.
        files: all of its files.
        attempted: the resolver attempted the file since it was offered last.
        confirmed: the version was judged since, and the file is what is chosen.
    """

    candidate: CT
    file: File[CT]
    files: Sequence[File[CT]]
    attempted: bool = False
    confirmed: bool = False

    def is_taken(self, candidate: CT) -> bool:
        """Return whether *candidate* is the one that stood for it, and was confirmed."""
        return self.confirmed and candidate is self.candidate


class ProvisionalCandidates(Generic[CT]):
    """The provisional candidates of one resolution."""

    def __init__(
        self, judge: VersionJudge[CT], confirmed: Callable[[str, CT], object] | None
    ) -> None:
        """Set up.

        Args:
            judge: of the resolution.
            confirmed: called with project and candidate that turned out to be what is chosen.
        """
        self._judge = judge
        self._confirmed = confirmed
        self._hashes = judge.files if isinstance(judge.files, MetadataHashes) else None
        self._versions: dict[tuple[str, Hashable], ProvisionalVersion[CT]] = {}

    def __bool__(self) -> bool:
        """Return whether there was any."""
        return bool(self._versions)

    def offer(
        self, project: str, version: Hashable, group: Sequence[CT]
    ) -> ProvisionalVersion[CT] | None:
        """Return the version as it is offered before it is judged, None to judge it now."""
        judge, hashes = self._judge, self._hashes
        if hashes is None or project not in judge.latest or (project, version) in judge.decisions:
            return None
        files = judge.files_of(project, version, group)
        wheels = [
            (candidate, file)
            for candidate, file in zip(group, files, strict=True)
            if file.filename.endswith(".whl")
        ]
        labels = {file.label for _, file in wheels}
        if labels <= {None} or not labels & {
            None,
            wheel_labels.NULL_LABEL,
        }:  # perhaps nothing fits
            return None
        promised = {hashes.metadata_hash(candidate) for candidate, _ in wheels}
        if len(promised) > 1 or None in promised:
            return None
        for candidate, file in wheels:
            if file.label == judge.latest[project]:
                logger.debug("%s %s: %s stands for it", project, version, file.filename)
                offered = ProvisionalVersion(candidate, file, files)
                self._versions[project, version] = offered
                return offered
        return None

    def includes(self, project: str, candidate: CT) -> bool:
        """Return whether *candidate* stands for a version whose variant is not known to be it."""
        key = (project, self._judge.files.version(candidate))
        offered = self._versions.get(key)
        if offered is None or offered.confirmed:
            return False
        file = file_of(self._judge.files, candidate)
        if (file.filename, file.source) != (offered.file.filename, offered.file.source):
            return False
        # One that is built against another project may be offered once more, in its place.
        decision = self._judge.decisions.get(key)
        return decision is None or not decision.built_against(file)

    def attempt(self, project: str, candidate: CT) -> bool:
        """Take note that the resolver attempts *candidate*.

        Returns:
            False if its version was judged meanwhile, and another variant is chosen.
        """
        key = (project, self._judge.files.version(candidate))
        self._versions[key].attempted = True
        return key not in self._judge.decisions or self.confirm(project, candidate)

    def confirm(self, project: str, candidate: CT) -> bool:
        """Judge the version of *candidate*; return whether that is what is chosen."""
        version = self._judge.files.version(candidate)
        offered = self._versions[project, version]
        if not offered.confirmed:
            decision = self._judge.decide(project, version, offered.files)
            chosen = next(decision.choice(offered.files, decision.fitting(offered.files)), None)
            offered.confirmed = chosen is not None and offered.files[chosen] is offered.file
            if not offered.confirmed:
                logger.debug("Skipping %s: another variant fits better", offered.file.filename)
            if offered.confirmed and self._confirmed is not None:
                self._confirmed(project, candidate)
        return offered.confirmed
