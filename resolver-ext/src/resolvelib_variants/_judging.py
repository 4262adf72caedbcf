"""Judging the versions of a resolution: metadata is read, and each decision made, once.

`decide` is for a version that is offered: its decision is remembered and told to the listener.
`preview` is for one that may never be.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Generic, TypeVar

from pep_variants import limits
from pep_variants import selection as wheel_selection
from pep_variants.errors import PluginFailed, VariantError
from pep_variants.machines import Platform
from pep_variants.metadata import Metadata
from pep_variants.preferences import Preferences
from pep_variants.selection import Admitted, File, Selection

from ._decision import Decision, file_of
from ._pins import Pins
from .interfaces import CandidateFiles, InstalledDistributions, Listener, OwnBuilds

logger = logging.getLogger(__name__)

CT = TypeVar("CT")


@dataclass(eq=False)
class VersionJudge(Generic[CT]):
    """Decides which files of a version fit, and remembers every decision.

    What is decided about a version holds for every subset of its files: a resolver that leaves out
    what it found to conflict sees the rest in the same order.

    Attributes:
        files, platform, preferences, listener, installed: as of `VariantOrdering`.
        pins: watched from when a variant turns out to be built against another project.
        abi_projects: projects that some variant judged so far is built against.
        decisions: by project and version, in the order in which they were made.
        latest: by project, the label that was chosen last; None for files that are no variants.
        previews: of versions that may never be offered, None for those that cannot be judged.
        metadata: what was read, by project, version and source; or the error of that.
        reads: how often metadata was read, by project.
        built_only: projects of which a version has nothing but builds that do not fit, though
            their wheels have no label. Older sources do not stand in for them.
    """

    files: CandidateFiles[CT]
    platform: Callable[[Metadata], Platform]
    preferences: Preferences
    listener: Listener | None
    installed: InstalledDistributions | None
    pins: Pins[CT]
    abi_projects: set[str] = field(default_factory=set)
    decisions: dict[tuple[str, Hashable], Decision[CT]] = field(default_factory=dict)
    latest: dict[str, str | None] = field(default_factory=dict)
    previews: dict[tuple[str, Hashable], Selection[CT] | None] = field(default_factory=dict)
    metadata: dict[tuple[str, Hashable, str], Metadata | Exception] = field(default_factory=dict)
    built_only: set[str] = field(default_factory=set)
    reads: Counter[str] = field(default_factory=Counter)

    def forces(self, project: str) -> bool:
        """Return whether the user forced a label of *project*, or its non-variant wheel."""
        return project in self.preferences.forced

    @cached_property
    def has_accelerator(self) -> bool:
        """Whether the target has an accelerator, of any kind."""
        return wheel_selection.has_accelerator(self.platform)

    def decision(self, project: str, candidate: CT) -> Decision[CT] | None:
        """Return the decision about the version of *candidate*, None if it was not judged."""
        return self.decisions.get((project, self.files.version(candidate)))

    def selections(self, project: str) -> Iterator[tuple[Hashable, Selection[CT]]]:
        """Yield version and selection of every version of *project* that was judged, in order."""
        for (name, version), decision in self.decisions.items():
            if name == project:
                yield version, decision.selection

    def files_of(self, project: str, version: Hashable, group: Sequence[CT]) -> list[File[CT]]:
        """Return the files of the candidates in *group*, all of one version."""
        decision = self.decisions.get((project, version))
        return [file_of(self.files, candidate, decision) for candidate in group]

    def decide(self, project: str, version: Hashable, files: Sequence[File[CT]]) -> Decision[CT]:
        """Return the decision about a version, which has *files* at least.

        Raises:
            Exception: whatever went wrong for a project of which a label is forced. For all other
                projects a fault costs the version its variants.
            PluginFailed: a plugin that the user allowed gives no answer.
            VariantError: metadata of as many versions was read already as the limit has it.
        """
        # Resolvers ask again, with new objects and without what turned out to conflict.
        decision = self.decisions.get((project, version))
        if decision is None:
            self._check_reads(project)
        offered = {} if decision is None else dict(decision.files)
        for file in files:
            offered.setdefault((file.filename, file.source), file)
        if decision is None or len(offered) > len(decision.files):
            selection = self._decided(project, version, tuple(offered.values()))
            decision = self.decisions[project, version] = Decision(offered, selection)
            if wheel_selection.is_built_only(selection):
                self.built_only.add(project)
            if selection.rankings and selection.chosen is not None:
                self.latest[project] = selection.chosen.label
                logger.debug("%s %s: %s fits best", project, version, selection.chosen.filename)
        return decision

    def preview(
        self, project: str, version: Hashable, files: Sequence[File[CT]]
    ) -> Selection[CT] | None:
        """Return the selection of a version that may never be offered; None if that fails."""
        key = (project, version)
        if key in self.decisions:
            return self.decisions[key].selection
        if key not in self.previews:
            try:
                self.previews[key] = self._selection(project, version, files, self.platform)
            except Exception:  # it is reported if the version is offered
                logger.debug("a version of %s cannot be judged", project, exc_info=True)
                self.previews[key] = None
        return self.previews[key]

    def admitted(self, project: str, version: Any, group: Sequence[CT]) -> Admitted:  # noqa: ANN401 - as clients have it
        """Return a version as one that may be judged, if it comes to that."""
        files = self.files_of(project, version, group)
        labels = {file.label for file in files if file.label is not None}
        return Admitted(version, labels, partial(self.preview, project, version, files))

    def _decided(self, project: str, version: Hashable, files: Sequence[File[CT]]) -> Selection[CT]:
        try:
            selection = self._selection(project, version, files, self._supporting)
        except PluginFailed:
            raise  # the user allowed that plugin, and wants to know
        except Exception as error:
            # An internal error costs the variants, not the install, unless a label is forced.
            if self.forces(project):
                raise
            logger.debug("selecting a variant of %s %s failed", project, version, exc_info=True)
            if self.listener is not None:
                self.listener.failed(project, version, error)
            plain = tuple(file for file in files if file.label is None)
            return Selection(plain, {}, {}, (), self.preferences)
        if self.listener is not None:
            self.listener.selected(project, version, selection)
        return selection

    def _check_reads(self, project: str) -> None:
        if self.reads[project] >= limits.READ_VERSIONS:
            raise VariantError(
                f"{project}: variants of {limits.READ_VERSIONS} versions were looked at, and none "
                f"could be taken: require other versions, such as '{project}>=VERSION'"
            )

    def _selection(
        self,
        project: str,
        version: Hashable,
        files: Sequence[File[CT]],
        platform: Callable[[Metadata], Platform],
    ) -> Selection[CT]:
        beside = {file.source: file.item for file in reversed(files) if file.label is not None}

        def metadata(source: str) -> Metadata:
            key = (project, version, source)
            if key not in self.metadata:
                self._check_reads(project)
                self.reads[project] += 1
                try:
                    self.metadata[key] = self.files.metadata(project, beside[source])
                except Exception as error:  # an internal error would happen again, too
                    self.metadata[key] = error
            answer = self.metadata[key]
            if isinstance(answer, Exception):
                raise answer
            return answer

        tells = self.files if isinstance(self.files, OwnBuilds) else None
        builds = {
            file.source
            for file in files
            if tells is not None and file.label is None and tells.is_build(file.item)
        }
        return wheel_selection.select(
            files,
            metadata=metadata,
            platform=platform,
            preferences=self.preferences,
            project=project,
            builds=builds,
        )

    def _supporting(self, metadata: Metadata) -> Platform:
        """Return the platform, with what the resolution will judge taken for supported."""
        version = self.installed.version if self.installed is not None else None
        platform = wheel_selection.supporting(self.platform(metadata), metadata, version)
        projects = wheel_selection.abi_projects(platform)
        if projects:
            self.abi_projects.update(projects)
            self.pins.are_watched = True
        return platform
