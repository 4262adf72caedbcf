"""Older versions with a build for the target, where the newest one has none.

A project of another name is often released some days later: the newest version of onnxruntime is
then the one for CPUs. And newer builds need newer drivers, or leave out GPUs. The newest version is
taken as always; that an older one has a build is said.
"""

from __future__ import annotations

from itertools import islice

from pep_variants.choose.selection import File
from pep_variants.model.label import NULL_LABEL
from variants_index.candidate import Candidate
from variants_index.evaluator import CandidateEvaluator

from ..ordering import VariantOrdering

_VERSIONS = 10
"""Older versions that are looked at."""


def older_build(
    chosen: Candidate, evaluator: CandidateEvaluator, ordering: VariantOrdering[Candidate]
) -> str | None:
    """Return which older version has a build for the target, if that of *chosen* has none.

    Args:
        chosen: what is taken of a project.
        evaluator: the files of the target.
        ordering: chooses among them.
    """
    name, release = chosen.project, chosen.release
    if chosen.direct or chosen.label not in (None, NULL_LABEL) or ordering.forces(name):
        return None
    project = evaluator.project(name)
    if project.entry is None:
        return None
    # Of versions with builds, all metadata is at hand.
    older = (
        version
        for version in project.versions
        if version < release
        and not version.is_prerelease
        and any(map(_is_build, evaluator.candidates(name, version)))
    )
    for version in islice(older, _VERSIONS):
        best = next(ordering.arrange(name, evaluator.candidates(name, version)), None)
        if best is None or best.label in (None, NULL_LABEL):
            continue
        selection = ordering.selection(name, best)
        why = "" if selection is None else selection.why(File(best.filename, best.source, best))
        lack = f"{name} {release} has none of the builds that the catalogue describes"
        if any(map(_is_build, evaluator.candidates(name, release))):
            file = "non-variant file" if chosen.label is None else "null variant"
            lack = f"of {name} {release} only the {file} fits"
        return (
            f"{lack}; {version} has variant {best.label}{f' ({why})' if why else ''}: "
            f"to take it, require {name}=={version}"
        )
    return None


def _is_build(item: Candidate) -> bool:
    return item.catalog is not None and item.label != NULL_LABEL
