"""Variant filtering and ordering of a stream of candidates, version by version.

This is the part that every resolver shares, whatever its candidates are: objects of a resolvelib
provider (see `provider`) or pip's not yet built candidate infos. It asks for metadata only when a
version with variant wheels is really looked at, and decides about a version once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, Generic, Protocol, TypeVar

from pep_variants.errors import NoSuchVariant
from pep_variants.markers import NON_VARIANT, VariantContext
from pep_variants.metadata import Metadata
from pep_variants.platform import Platform
from pep_variants.preferences import Preferences
from pep_variants.selection import File, Selection, missing_variant, select

logger = logging.getLogger(__name__)

CT = TypeVar("CT")
CT_contra = TypeVar("CT_contra", contravariant=True)


class CandidateFiles(Protocol[CT_contra]):
    """How candidates name their file and where metadata beside it comes from."""

    def version(self, candidate: CT_contra) -> Hashable:
        """Return the version; candidates of one version come one after the other."""
        ...

    def filename(self, candidate: CT_contra) -> str | None:
        """Return the filename, None for what is no file (installed, editable)."""
        ...

    def source(self, candidate: CT_contra) -> str:
        """Return the index page or directory that lists the file."""
        ...

    def metadata(self, project: str, candidate: CT_contra) -> Metadata:
        """Return the variant metadata that lies beside the file of *candidate*.

        Called at most once per version and source. The hash the index gives for the metadata is
        verified by the implementation.

        Raises:
            VariantError: there is none, it cannot be had, or it is broken.
        """
        ...


class Listener(Protocol):
    """Hears what was decided; how to tell people is the client's business."""

    def selected(self, project: str, version: Hashable, selection: Selection[Any]) -> None:
        """Take note of the selection of one version with variants; once per version."""
        ...

    def failed(self, project: str, version: Hashable, error: Exception) -> None:
        """Take note of a fault of this software, which costs the version its variants."""
        ...


class Arranger(Generic[CT]):
    """Arranges the candidates of one resolution and remembers every decision.

    Make one per resolution: decisions hold as long as the files of a version stay the same.

    Attributes:
        missing: for projects of which the user forced a label: why no version offered so far had
            it. It is no error while the resolver can still backtrack; when the resolution fails
            or the project is not in its result, the client raises what is in here.
    """

    def __init__(
        self,
        files: CandidateFiles[CT],
        *,
        platform: Callable[[Metadata], Platform],
        preferences: Preferences,
        listener: Listener | None = None,
    ) -> None:
        """Set up.

        Args:
            files: how candidates name their files.
            platform: supported values for metadata, e.g. `Detector.platform` of the engine.
            preferences: what the user asked for.
            listener: hears decisions and faults.
        """
        self.missing: dict[str, NoSuchVariant] = {}
        self._files = files
        self._platform = platform
        self._preferences = preferences
        self._listener = listener
        # By project, version and files: the decision, and the order as places in the list of files.
        self._decisions: dict[Hashable, tuple[Selection[CT], tuple[int, ...]]] = {}
        self._by_file: dict[tuple[str, str, str], Selection[CT]] = {}

    def arrange(self, project: str, candidates: Iterable[CT]) -> Iterator[CT]:
        """Yield the candidates that fit, version by version, best variant first.

        Versions keep their order. Versions without variant wheels pass unchanged. A version is
        judged when the iterator reaches it, not before.

        Args:
            project: normalized project name.
            candidates: all files of all versions, those of a version together, in the order of
                preference without variants.
        """
        forced = self._preferences.forced.get(project)
        considered: list[tuple[str, Selection[CT], list[File[CT]]]] = []
        for version, group in self._by_version(candidates):
            files = [self._file(candidate) for candidate in group]
            if forced is None and all(file.label is None for file in files):
                yield from group
                continue
            selection, order = self._decide(project, version, files)
            considered.append((str(version), selection, files))
            for place in order:
                yield group[place]
        if forced is not None:
            error = missing_variant(project, considered)
            if error is not None:
                self.missing.setdefault(project, error)

    def context(self, project: str, candidate: CT) -> VariantContext:
        """Return what variant markers of *candidate* are evaluated against."""
        file = self._file(candidate)
        selection = self._by_file.get((project, file.filename, file.source))
        return NON_VARIANT if selection is None else selection.context(file)

    def selection(self, project: str, candidate: CT) -> Selection[CT] | None:
        """Return the decision that *candidate* came out of, None for versions without variants."""
        file = self._file(candidate)
        return self._by_file.get((project, file.filename, file.source))

    def _file(self, candidate: CT) -> File[CT]:
        return File(self._files.filename(candidate) or "", self._files.source(candidate), candidate)

    def _by_version(self, candidates: Iterable[CT]) -> Iterator[tuple[Hashable, list[CT]]]:
        group: list[CT] = []
        current: Hashable = None
        for candidate in candidates:
            version = self._files.version(candidate)
            if group and version != current:
                yield current, group
                group = []
            current = version
            group.append(candidate)
        if group:
            yield current, group

    def _decide(
        self, project: str, version: Hashable, files: list[File[CT]]
    ) -> tuple[Selection[CT], tuple[int, ...]]:
        # Resolvers ask for the matches of a project again and again, with new candidate objects.
        key = (project, version, tuple((file.filename, file.source) for file in files))
        if key not in self._decisions:
            selection = self._select(project, version, files)
            places = {id(file): place for place, file in enumerate(files)}
            order = tuple(places[id(file)] for file in selection.files)
            self._decisions[key] = selection, order
            for file in selection.files:
                self._by_file[project, file.filename, file.source] = selection
        return self._decisions[key]

    def _select(self, project: str, version: Hashable, files: list[File[CT]]) -> Selection[CT]:
        first: dict[str, CT] = {}
        for file in files:
            if file.label is not None:
                first.setdefault(file.source, file.item)
        try:
            selection = select(
                files,
                metadata=lambda source: self._files.metadata(project, first[source]),
                platform=self._platform,
                preferences=self._preferences,
                project=project,
            )
        except Exception as error:
            # A fault of ours must cost the variants, never the install: unless the user asked for
            # a variant of just this project.
            if project in self._preferences.forced:
                raise
            logger.debug("selecting a variant of %s %s failed", project, version, exc_info=True)
            if self._listener is not None:
                self._listener.failed(project, version, error)
            plain = tuple(file for file in files if file.label is None)
            return Selection(plain, {}, {}, (), self._preferences)
        if self._listener is not None:
            self._listener.selected(project, version, selection)
        return selection
