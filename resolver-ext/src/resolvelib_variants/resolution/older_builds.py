"""Older versions with a build for the target, where the newest one has none.

A project of another name is often released some days later: the newest version of onnxruntime is
then the one for CPUs. And newer builds need newer drivers, or leave out GPUs. The newest version is
taken as always; that an older one has a build is said.

Of what the catalogue describes, all metadata is at hand. Of variant wheels it has to be fetched:
see `..older_builds`, which is for every client.
"""

from __future__ import annotations

from itertools import islice

from pep_variants.choose.displaced import line_of
from pep_variants.choose.selection import Selection
from pep_variants.model.label import NULL_LABEL
from variants_index.candidate import Candidate
from variants_index.evaluator import CandidateEvaluator

from ..older_builds import Judge
from ..older_builds import older_build as older_variant
from ..ordering import VariantOrdering

_VERSIONS = 10
"""Older versions that are looked at in the catalogue."""


def older_build(
    chosen: Candidate,
    evaluator: CandidateEvaluator,
    ordering: VariantOrdering[Candidate],
    judge: Judge[Candidate],
    *,
    pinned: bool,
) -> str:
    """Return which older version has a build for the target, if that of *chosen* has none.

    Args:
        chosen: what is taken of a project.
        evaluator: the files of the target.
        ordering: chooses among them.
        judge: of versions that the resolution did not come to.
        pinned: the user asks for exactly this version, so nothing is fetched for others.
    """
    name, release = chosen.project, chosen.release
    if chosen.direct or chosen.label not in (None, NULL_LABEL) or ordering.forces(name):
        return ""
    project = evaluator.project(name)
    older = (
        version for version in project.versions if version < release and not version.is_prerelease
    )
    if project.entry is None:
        if pinned or not project.has_variants:
            return ""
        offered = (item for version in older for item in evaluator.candidates(name, version))
        return older_variant(ordering, judge, name, chosen, offered)
    described = (
        version for version in older if any(map(_is_build, evaluator.candidates(name, version)))
    )
    for version in islice(described, _VERSIONS):
        best = next(ordering.arrange(name, evaluator.candidates(name, version)), None)
        if best is None or best.label in (None, NULL_LABEL):
            continue
        selection: Selection[Candidate] | None = ordering.selection(name, best)
        lack = f"{name} {release} has none of the builds that the catalogue describes"
        if any(map(_is_build, evaluator.candidates(name, release))):
            file = "non-variant file" if chosen.label is None else "null variant"
            lack = f"{name} {release}: only the {file} fits this machine"
        return "" if selection is None else f"{lack}; {line_of(name, version, selection)}"
    return ""


def _is_build(item: Candidate) -> bool:
    return item.catalog is not None and item.label != NULL_LABEL
