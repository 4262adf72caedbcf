"""The variants of one version over an index, each with its verdict for a target."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from packaging.version import Version

from pep_variants import selection as wheel_selection
from pep_variants.selection import Ranking, Selection, Verdict, VersionNote
from variants_catalog import catalogs
from variants_index.finder import Candidate, CandidateEvaluator, Project
from variants_index.target import Target

from ..interfaces import VersionOrder
from ..ordering import VariantOrdering
from .errors import NoSolution
from .failure import none_wanted
from .index_provider import IndexProvider, SpecifierRequirement
from .requirements import Wanted
from .resolver import IndexResolver, Notes, asked_versions

if TYPE_CHECKING:
    from variants_catalog.entries import CatalogProject, Measured


@dataclass(frozen=True)
class Explanation:
    """What was decided about one version of a project, its dependencies aside.

    Attributes:
        project: normalized name.
        version: the newest one that fits; the newest one that is wanted if none fits.
        target: for which machine.
        chosen: the file that would be installed, None if none fits.
        candidates: every file of the version that is for the target, variants untold apart.
        selection: the decision, None for a version without variant wheels.
        warnings: what the user should know.
        entry: of the project in the catalogue, None without one.
        builds: by label, where the catalogue has it from: a URL, or what is required instead.
        measured: by label that needs something, what its properties were read from; labels of
            files for the target alone.
        lack: that the version has no variants for the target, and where some are; empty if it
            has, or if variants are switched off.
        version_note: which other version there is for the sake of an accelerator.
        others: by label, the versions of builds for the target that the requirement excludes.
    """

    project: str
    version: Version
    target: Target
    chosen: Candidate | None
    candidates: tuple[Candidate, ...]
    selection: Selection[Candidate] | None
    warnings: tuple[str, ...]
    entry: CatalogProject | None = None
    builds: Mapping[str, str] = field(default_factory=dict)
    measured: Mapping[str, tuple[Measured, ...]] = field(default_factory=dict)
    lack: str = ""
    version_note: VersionNote | None = None
    others: Mapping[str | None, Version] = field(default_factory=dict)

    @property
    def rankings(self) -> Mapping[str, Ranking]:
        """The judgements by source; sources that agree are one."""
        return {} if self.selection is None else self.selection.distinct_rankings

    @property
    def plain(self) -> list[str]:
        """Names of the files without label that are for everyone."""
        rejected = () if self.selection is None else self.selection.rejected
        builds = {file.item for file in rejected if file.label is None}
        return [
            item.filename for item in self.candidates if item.label is None and item not in builds
        ]

    def files(self, source: str, label: str) -> tuple[str, ...]:
        """Return the filenames of a variant in a source that are for the target."""
        ranking = self.rankings[source]
        return tuple(
            item.published
            for item in self.candidates
            if item.label is not None and ranking.metadata.label_of(item.label) == label
        )

    def verdicts(self, source: str) -> tuple[Verdict, ...]:
        """Return the verdict on every variant of a source, and on the non-variant files."""
        ranking = self.rankings[source]
        chosen = self.chosen.label if self.chosen is not None else None
        rows = []
        for row in wheel_selection.verdicts(ranking, chosen):
            if row.verdict != "rejected" and not self.files(source, row.label):
                other = self.others.get(row.label)
                lack = f"has no wheel for {self.target.interpreter} on {self.target.system}"
                if other is not None:
                    lack = f"is version {other}, which the requirement does not admit"
                row = Verdict(row.label, "rejected", lack)
            rows.append(row)
        # Compatible ones first, also where some of them have no wheel.
        rows.sort(key=lambda row: row.verdict == "rejected")
        if plain := self.plain:
            is_wheel = any(name.endswith(".whl") for name in plain)
            kind = "plain wheel" if is_wheel else "source distribution"
            verdict = "chosen" if self.chosen and self.chosen.label is None else "compatible"
            place = sum(row.verdict != "rejected" for row in rows)
            rows.insert(place, Verdict("", verdict, f"{kind} (fallback)"))
        return tuple(rows)


def explain(
    resolver: IndexResolver,
    wanted: Wanted,
    target: Target,
    *,
    pre: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Explanation:
    """Return what is chosen of a project for *target*, and why not the rest.

    Raises:
        NoSolution: there is no such project or version.
        PackageIndexError: an index does not answer.
        VariantError: a platform file or preference makes no sense.
    """
    evaluator = CandidateEvaluator(resolver.finder, target)
    plain = IndexProvider(
        resolver.session, resolver.prefetcher, resolver.finder, evaluator, target, pre=pre
    )
    notes = Notes()
    ordering: VariantOrdering[Candidate] = VariantOrdering(
        plain,
        platform=resolver.detector(target).platform,
        preferences=resolver.preferences,
        listener=notes,
        version_order=VersionOrder(resolver.finder.puts_build_first),
    )
    if progress is not None:
        progress(f"looking for {wanted}")
    roots = plain.roots([wanted])
    needs = [need for need in roots if isinstance(need, SpecifierRequirement) and not need.extra]
    if not needs:
        raise NoSolution(f"{wanted} does not apply to {target.name}")
    project = wanted.project
    matches = plain.find_matches(project, {project: iter(needs)}, {})
    offered = list(matches()) if callable(matches) else list(matches)
    chosen = next(ordering.arrange(project, offered), None)
    shown = chosen or next((item for item in offered if item.label is not None), None)
    if shown is None:
        shown = offered[0] if offered else None
    if shown is None:
        raise NoSolution(none_wanted(project, needs, plain, evaluator, resolver.finder))
    note: VersionNote | None = None
    candidates = tuple(item for item in offered if item.release == shown.release)
    warnings = [*plain.warnings, *notes.warnings]
    warnings += notes.disagreements.get((project, shown.release), ())
    unavailable: tuple[str, ...] = ()
    if not shown.direct:
        known = resolver.finder.project(project)
        if known.unavailable:
            asked = asked_versions(plain, shown, needs)
            found = (item.about(asked) for item in known.unavailable)
            unavailable = tuple(str(item) for item in found if item is not None)
        warnings += [*known.warnings, *unavailable]
    if chosen is not None:
        warnings += filter(None, [ordering.passed_over(project, chosen.release)])
        note = None if chosen.direct else ordering.version_note(project, chosen, offered)
        warnings += [note.text] if note is not None else []
    if project in ordering.missing:
        warnings.append(str(ordering.missing[project]))
    selection = ordering.selection(project, shown)
    every = () if shown.direct else evaluator.candidates(project, shown.release)
    others = {item.label: item.version for item in every if item not in candidates}
    lacking = selection is None and not shown.direct and resolver.preferences.use_variants
    lacking = lacking and not unavailable  # they may have some
    return Explanation(
        project,
        shown.release,
        target,
        chosen,
        candidates,
        selection,
        tuple(dict.fromkeys(warnings)),
        resolver.finder.entries.entry(project),
        {} if shown.direct else _builds(resolver.finder.project(project), shown.release),
        {
            known.label: known.measured
            for known in (item.catalog.published for item in every if item.catalog is not None)
            if known.properties
        },
        _lack(resolver, project, shown.release, others) if lacking else "",
        note,
        others,
    )


def _lack(
    resolver: IndexResolver, name: str, version: Version, others: Mapping[str | None, Version]
) -> str:
    if others:
        return f"left out {catalogs.not_admitted(name, version)}"
    return resolver.finder.lack(name, version)


def _builds(project: Project, version: Version) -> dict[str, str]:
    found: dict[str, str] = {}
    for item in project.versions.get(version, ()):
        if item.catalog is not None:
            published = item.catalog.published
            required = ", ".join(published.requires)
            found.setdefault(published.label, required or item.catalog.place)
    return found
