"""The version of a project that goes first where the user prefers builds for the accelerator.

With ``--variant-before-version`` the newest version whose file is a build for the accelerator of
the target goes before newer ones. It has to be judged before the first version is offered, and so
have those before it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Generic, TypeVar

from pep_variants import selection as wheel_selection
from pep_variants.selection import Admitted, NewestBuild, VersionNote

from ._coherence import Agreements
from ._decision import Decision, file_of, group_by_version
from ._judging import VersionJudge, logger
from .interfaces import VersionOrder

CT = TypeVar("CT")


@dataclass(eq=False)
class BuildOrder(Generic[CT]):
    """Puts the version with a build for the accelerator first, and says so.

    Attributes:
        judge: of the resolution.
        agreements: of the resolution, which may take another variant of that version.
        version_order: what the client knows.
        displaced: projects of which an older version goes before the newest.
        without: projects of which no version that was read has such a build.
    """

    judge: VersionJudge[CT]
    agreements: Agreements[CT]
    version_order: VersionOrder
    displaced: dict[str, NewestBuild] = field(default_factory=dict)
    without: dict[str, NewestBuild] = field(default_factory=dict)

    def puts_first(self, project: str) -> bool:
        """Return whether the newest version with a build for the accelerator goes first."""
        by_default = self.version_order.by_default(project)
        return self.judge.preferences.puts_first(project, by_default=by_default)

    def sort(
        self,
        project: str,
        groups: Iterator[tuple[Hashable, list[CT]]],
        refusals: Mapping[Hashable, Sequence[CT]],
    ) -> Iterator[tuple[Hashable, list[CT]]]:
        """Yield *groups*, that of the newest version with a build for the accelerator first.

        It stays where it is if that build, or one of a newer version, was refused: a conflict is
        answered by the order of versions. Likewise if another variant of that version is taken, to
        agree with what is installed or chosen.
        """
        judge = self.judge
        self.displaced.pop(project, None)
        self.without.pop(project, None)
        read: list[tuple[Hashable, list[CT]]] = []
        refused: list[Any] = [
            version
            for version in refusals
            for decision in (judge.decisions.get((project, version)),)
            if decision
            and wheel_selection.is_accelerated(decision.selection, decision.selection.chosen)
        ]

        def admitted() -> Iterator[Admitted]:
            for version, group in groups:
                read.append((version, group))
                if any(newer > version for newer in refused):
                    return
                yield judge.admitted(project, version, [*group, *refusals.get(version, ())])

        build = wheel_selection.newest_build(project, admitted(), lambda: judge.has_accelerator)
        rest = chain(read, groups)
        if build is None or build.version is None:
            if build is not None:
                self.without[project] = build
            return rest
        floor: Any = self.version_order.floor(project)
        if floor is not None and build.version < floor:
            return rest
        first = next(item for item in read if item[0] == build.version)
        if not self._stays_accelerated(project, build, first[1]):
            return rest
        logger.debug("%s: %s goes before %s", project, build.version, build.newest)
        self.displaced[project] = build
        judge.pins.are_watched = True
        read.remove(first)
        return chain([first], rest)

    def _stays_accelerated(self, project: str, build: NewestBuild, group: Sequence[CT]) -> bool:
        """Return whether the build is taken of its version, after all that it should agree with."""
        if build.build is None or not self.agreements.concerns(project):
            return True
        files = self.judge.files_of(project, build.version, group)
        decision = Decision({(file.filename, file.source): file for file in files}, build.build)
        fitting = decision.fitting(files)
        fitting = self.agreements.sort(project, build.version, files, fitting, decision)
        return bool(fitting) and wheel_selection.is_accelerated(build.build, files[fitting[0][1]])

    def note(self, project: str, chosen: CT, offered: Iterable[CT]) -> VersionNote | None:
        """Return the note about the order of versions, see `VariantOrdering.version_note`."""
        judge = self.judge
        version: Any = judge.files.version(chosen)
        displaced = self.displaced.get(project)
        if displaced is not None and displaced.version == version:
            return displaced.preferred()
        decision = judge.decision(project, chosen)
        selection = None if decision is None else decision.selection
        if (
            judge.forces(project)
            or not judge.preferences.use_variants
            or wheel_selection.is_accelerated(selection, file_of(judge.files, chosen))
        ):
            return None
        if project in self.without:
            return self.without[project].preferred()
        older = (
            judge.admitted(project, release, group)
            for release, group in group_by_version(judge.files, offered)
            if release < version
        )
        first = Admitted(version, ("",) if selection else (), lambda: selection)
        build = wheel_selection.newest_build(
            project, chain([first], older), lambda: judge.has_accelerator
        )
        if build is None or build.version is None:
            return None
        return build.excluded() if self.puts_first(project) else build.missed()
