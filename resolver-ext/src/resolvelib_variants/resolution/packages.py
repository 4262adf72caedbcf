"""The packages of a resolution, from what resolvelib found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pep_variants.choose.markers import reduce_requirement
from pep_variants.choose.preferences import Preferences
from pep_variants.choose.rejections import why_this
from pep_variants.choose.selection import File, Selection
from variants_index.candidate import Candidate

from ..provider import VariantProvider
from .provider import IndexProvider
from .resolver_requirements import SpecifierRequirement, split_identifier
from .result import Package
from .variant_providers import AllVariantsProvider


def packages_of(
    result: Any,  # noqa: ANN401 - of resolvelib
    roots: Sequence[Any],
    plain: IndexProvider,
    provider: VariantProvider[Any, Candidate, str],
    preferences: Preferences,
    provided: Mapping[str, str],
) -> tuple[Package, ...]:
    """Return the packages by name.

    Args:
        result: of resolvelib's resolver.
        roots: the requirements of the user, as resolvelib got them.
        plain: the provider without variants.
        provider: the provider with variants.
        preferences: what the user asked for.
        provided: which package stands for a project that is not installed.
    """
    extras: dict[str, set[str]] = {}
    files: dict[str, Candidate] = {}
    for identifier, candidate in result.mapping.items():
        project, extra = split_identifier(identifier)
        if extra:
            extras.setdefault(project, set()).add(extra)
        elif project not in provided:
            files[project] = candidate
    needs = (need.project for need in roots if isinstance(need, SpecifierRequirement))
    requested = {provided.get(name, name) for name in needs}
    depends: dict[str, set[str]] = {}
    for start, end in result.graph.iter_edges():
        if start is not None:
            required = split_identifier(end)[0]
            needed = depends.setdefault(split_identifier(start)[0], set())
            needed.add(provided.get(required, required))
    found = []
    for name in sorted(files):
        package = _package(files[name], plain, provider, preferences)
        found.append(
            replace(
                package,
                extras=tuple(sorted(extras.get(name, ()))),
                depends=tuple(sorted(depends.get(name, set()) & files.keys() - {name})),
                requested=name in requested,
            )
        )
    return tuple(found)


def _package(
    candidate: Candidate,
    plain: IndexProvider,
    provider: VariantProvider[Any, Candidate, str],
    preferences: Preferences,
) -> Package:
    project = candidate.project
    selection = provider.ordering.selection(project, candidate)
    ranking = None if selection is None else selection.rankings.get(candidate.source)
    label = candidate.label
    context = provider.ordering.context(project, candidate)
    alternatives: tuple[Candidate, ...] = (candidate,)
    if isinstance(provider, AllVariantsProvider):
        alternatives = plain.alternatives(candidate)
    one_each = {file.label or "": file for file in (*reversed(alternatives), candidate)}
    requires_dist = {
        label: plain.core_metadata(file).requires for label, file in sorted(one_each.items())
    }
    requires = (reduce_requirement(text, context) for text in requires_dist[label or ""])
    properties = metadata = None
    if ranking is not None and label is not None:
        metadata = ranking.metadata
        properties = metadata.properties_of(metadata.label_of(label))
    return Package(
        project,
        candidate.version,
        candidate,
        properties=properties,
        why=_why(candidate, selection, preferences),
        requires=tuple(text for text in requires if text is not None),
        requires_dist=requires_dist,
        alternatives=alternatives,
        metadata=metadata,
    )


def _why(
    candidate: Candidate, selection: Selection[Candidate] | None, preferences: Preferences
) -> str:
    """Return in a few words why this file of its version; empty if there was no choice."""
    if selection is None:
        return "asked for" if candidate.project in preferences.forced else ""
    wanted = (candidate.filename, candidate.source)
    files = (file for file in selection.files if (file.filename, file.source) == wanted)
    own = next(files, File(*wanted, candidate))
    why = why_this(selection, own, candidate.project)
    if candidate.published_as is None:
        return why
    return "; ".join(filter(None, (why, f"published as {candidate.published_name}")))
