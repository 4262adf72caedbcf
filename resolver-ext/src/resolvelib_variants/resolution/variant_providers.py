"""`VariantProvider` over an index: with prefetching, and for lock files of every variant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from packaging.version import Version

from pep_variants import VariantContext, reduce_requirement
from pep_variants.internal import NON_VARIANT
from variants_index import Candidate

from ..provider import VariantProvider
from .index_provider import ExplicitRequirement, IndexProvider, SpecifierRequirement


class PrefetchingProvider(VariantProvider[Any, Candidate, str]):
    """Fetches metadata of what the resolver is likely to take, while it looks at the rest."""

    def __init__(self, index: IndexProvider, **options: Any) -> None:  # noqa: ANN401
        """Wrap *index* for one resolution; *options* are those of `VariantProvider`."""
        super().__init__(index, index, **options)
        self._index = index

    def find_matches(
        self,
        identifier: str,
        requirements: Mapping[str, Iterator[Any]],
        incompatibilities: Mapping[str, Iterator[Candidate]],
    ) -> Any:  # noqa: ANN401 - what resolvelib calls `Matches`
        """Return the matches, which start a prefetch when they are gone through."""
        matches = super().find_matches(
            identifier=identifier, requirements=requirements, incompatibilities=incompatibilities
        )
        if not callable(matches):
            return matches
        return lambda: self._looking_ahead(iter(matches()))

    def _looking_ahead(self, candidates: Iterator[Candidate]) -> Iterator[Candidate]:
        first = next(candidates, None)
        if first is not None:
            self._index.look_ahead(first)
            yield first
            yield from candidates


APART = (
    "not every variant fits into one lock file; write one lock file for each target, "
    "without --all-variants"
)


class AllVariantsProvider(PrefetchingProvider):
    """Requires what any variant of a version requires."""

    def __init__(self, index: IndexProvider, **options: Any) -> None:  # noqa: ANN401
        super().__init__(index, **options)
        self.ordering.judges_first = True  # what others require takes the metadata of all
        # By project and version: which labels have a requirement.
        self._needs: dict[tuple[str, Version], dict[SpecifierRequirement, list[str]]] = {}

    def contradictions(self, project: str, newer_than: Version | None = None) -> Iterator[str]:
        """Yield why versions of *project* cannot be locked with all of their variants.

        Args:
            project: normalized name.
            newer_than: only versions that are; all by default.
        """
        for (name, version), needs in self._needs.items():
            if name != project or (newer_than is not None and version <= newer_than):
                continue
            by_project: dict[str, list[SpecifierRequirement]] = {}
            for need in needs:
                if need.url is None and not need.extra:
                    by_project.setdefault(need.project, []).append(need)
            for other, wanted in by_project.items():
                specifiers = [need.specifier for need in wanted]
                if not self._index.matching(other, specifiers) and all(
                    self._index.matching(other, [specifier]) for specifier in specifiers
                ):
                    listed = "; ".join(
                        f"{other}{need.specifier} for {', '.join(sorted(needs[need]))}"
                        for need in wanted
                    )
                    yield (
                        f"the variants of {project} {version} need different versions of {other} "
                        f"({listed})"
                    )

    def _dependencies(self, candidate: Candidate) -> Iterable[Any]:
        """Return the requirements of all files of the version, each once."""
        files = self._index.alternatives(candidate)
        if len(files) == 1:
            return super()._dependencies(candidate)
        selection = self.ordering.selection(candidate.project, candidate)
        ranking = selection.rankings.get(candidate.source) if selection else None
        found: dict[Any, None] = {}
        for file in {file.label: file for file in reversed(files)}.values():
            context = NON_VARIANT
            if file.label is not None and ranking is not None:
                label = ranking.metadata.label_of(file.label)
                context = VariantContext(file.label, ranking.metadata.properties_of(label) or {})
            for item in self._index.dependencies(
                file, partial(reduce_requirement, context=context)
            ):
                if isinstance(item, SpecifierRequirement):
                    needs = self._needs.setdefault((candidate.project, candidate.release), {})
                    labels = needs.setdefault(item, [])
                    if (label := file.label or "non-variant") not in labels:
                        labels.append(label)
                # The extra's own file is the one that was chosen.
                found.setdefault(
                    ExplicitRequirement(candidate.base)
                    if isinstance(item, ExplicitRequirement)
                    else item
                )
        return list(found)
