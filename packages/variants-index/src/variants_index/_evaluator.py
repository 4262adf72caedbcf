"""The files of a version that a target can use, best first, and why others are rejected."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from operator import attrgetter

from packaging.version import Version

from pep_variants import labels as wheel_labels
from pep_variants import metadata as variant_metadata
from pep_variants import selection as wheel_selection

from ._candidate import Candidate
from ._catalog_builds import variants_of
from ._package_finder import PackageFinder, Project
from ._version_metadata import ReleaseMetadata, fetch_release_metadata
from .target import Target, meets_python

Hashes = Mapping[str, frozenset[str]]

REWRITTEN = "is rewritten when it is installed, and hashes are required"
"""Why builds of the catalogue are rejected where hashes are given."""

logger = logging.getLogger(__name__)

_PINNED = re.compile(r"\s*(===|==(?!.*\.\*\s*$))")


class CandidateEvaluator:
    """Evaluates files for one target; results are kept.

    Attributes:
        rejected: by project and version, how many files were rejected for which reason.
        no_system, no_python: the reasons for wheels of another system or of another Python.
    """

    def __init__(
        self, finder: PackageFinder, target: Target, hashes: Mapping[str, Hashes] | None = None
    ) -> None:
        """Set up.

        Args:
            finder: finds the files.
            target: the machine and Python that uses them.
            hashes: allowed digests by project and algorithm; for other projects, any are.
        """
        self.rejected: dict[tuple[str, Version], Counter[str]] = {}
        self.no_system = f"no wheel for {target.system}"
        self.no_python = f"no wheel for {target.interpreter}"
        self._finder = finder
        self._target = target
        self._hashes = hashes or {}
        self._known: dict[tuple[str, Version, bool | None], tuple[Candidate, ...]] = {}

    def project(self, name: str) -> Project:
        """Return all files of a project; raises PackageIndexError."""
        return self._finder.project(name)

    def has_hashes(self, name: str) -> bool:
        """Return whether hashes are given of the files of a project."""
        return bool(self._hashes.get(name))

    def candidates(
        self, name: str, version: Version, *, pinned: bool = False
    ) -> tuple[Candidate, ...]:
        """Return the files of a version that the target can use, the best first.

        Wheels by tag and build number, source distributions after them; files of preferred
        sources first among equals. Variants are not told apart here. Files that the catalogue
        brings come before all others.

        Args:
            name: normalized project name.
            version: one of `Project.versions`.
            pinned: whether exactly this version is asked for, which admits a yanked one (PEP 592).
        """
        # Whether it is pinned makes a difference only where files are yanked.
        candidates = self._known.get(
            (name, version, pinned), self._known.get((name, version, None))
        )
        if candidates is None:
            files = self.project(name).versions.get(version, ())
            allowed = [item for item in files if item.file.yanked is None]
            key = (name, version, pinned if len(allowed) < len(files) else None)
            if pinned and not allowed:
                allowed = list(files)
            counts: Counter[str] = Counter()
            if len(allowed) < len(files):
                counts["yanked"] = len(files) - len(allowed)
                logger.debug("Skipping %d files of %s %s: yanked", counts["yanked"], name, version)
            candidates = self._judge(name, allowed, counts)
            # Complete: another thread may read it.
            self.rejected[name, version] = counts
            self._known[key] = candidates
        return candidates

    def release_metadata(self, candidate: Candidate) -> ReleaseMetadata:
        """Return the variant metadata of the version of *candidate* in its source.

        Raises:
            VariantError: there is none, it cannot be fetched, or it is broken.
        """
        session, prefetcher = self._finder.session, self._finder.prefetcher
        if candidate.direct:
            return fetch_release_metadata(session, prefetcher, [candidate.file], None, source=None)
        if candidate.catalog is not None:
            usable = self.candidates(candidate.project, candidate.release, pinned=True)
            files = [item.catalog for item in reversed(usable) if item.catalog is not None]
            variants = variants_of([*files, candidate.catalog])
            assert variants is not None
            return ReleaseMetadata(
                variants, {"": variant_metadata.write_metadata(variants).encode()}
            )
        wheels = [
            item.file
            for item in self.candidates(candidate.project, candidate.version, pinned=True)
            if item.source == candidate.source and item.label is not None
        ]
        return fetch_release_metadata(
            session, prefetcher, wheels, candidate.metadata, candidate.source
        )

    def supports_python(self, specifier: str | None) -> bool:
        """Return whether the target's Python meets a ``Requires-Python`` value.

        An invalid specifier is met, as in pip.
        """
        return meets_python(specifier, self._target.python)

    def _judge(
        self, name: str, files: Sequence[Candidate], counts: Counter[str]
    ) -> tuple[Candidate, ...]:
        judged = wheel_selection.by_tags(files, attrgetter("filename"), self._target.places)
        if len(judged) < len(files):
            counts["misnamed"] = len(files) - len(judged)
        usable = []
        for candidate, has_tags in judged:
            python = candidate.file.requires_python
            reason = "" if has_tags else self._unfit(candidate.filename)
            if not reason and not self.supports_python(python):
                reason = f"needs Python {python}"
            if reason := reason or self._forbidden(candidate):
                counts[reason] += 1
                logger.debug("Skipping file %r: %s", candidate.filename, reason)
            else:
                usable.append(candidate)
        logger.debug(
            "Checked %d files for project %s against %d hashes: %d can be used",
            len(files),
            name,
            sum(map(len, self._hashes.get(name, {}).values())),
            len(usable),
        )
        first = self.project(name).first
        return tuple(sorted(usable, key=lambda candidate: candidate.source not in first))

    def _unfit(self, filename: str) -> str:
        """Return whether a wheel is for another system, or for another Python."""
        tags = filename.removesuffix(".whl").split("-")
        is_label = wheel_labels.split_label(filename)[1] is not None
        systems = tags[-2 if is_label else -1].split(".")
        fits = not self._target.systems.isdisjoint(systems) or "any" in systems
        return self.no_python if fits else self.no_system

    def _forbidden(self, candidate: Candidate) -> str:
        """Return why the given hashes exclude a file, empty if they do not."""
        allowed = self._hashes.get(candidate.project)
        if not allowed:
            return ""
        # Rewritten, no file would have one of them.
        if candidate.rewritten is not None:
            return REWRITTEN
        hashes = candidate.file.hashes
        # If the index gives no such hash, the file is checked when it is downloaded.
        algorithms = [algorithm for algorithm in allowed if algorithm in hashes]
        if not algorithms or any(
            hashes[algorithm] in allowed[algorithm] for algorithm in algorithms
        ):
            return ""
        return "has another hash than the requirements allow"


def is_pinned(specifiers: Sequence[str]) -> bool:
    """Return whether one of the specifier sets names exactly one version.

    >>> from variants_index.finder import is_pinned
    >>> is_pinned([">=2", "==2.8.0"]), is_pinned(["==2.*"])
    (True, False)
    """
    return any(_PINNED.match(part) for text in specifiers for part in text.split(","))
