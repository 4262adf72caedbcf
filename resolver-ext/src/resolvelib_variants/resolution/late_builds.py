"""Versions whose builds, as the catalogue describes them, are not published yet.

A project of another name is often released some days later: the newest version of onnxruntime is
then the one for CPUs. The newest version is taken as always; that it has no builds is said.
"""

from __future__ import annotations

from pep_variants.choose.selection import File
from pep_variants.model.label import NULL_LABEL
from variants_index.candidate import Candidate
from variants_index.evaluator import CandidateEvaluator

from ..ordering import VariantOrdering


def late_build(
    chosen: Candidate, evaluator: CandidateEvaluator, ordering: VariantOrdering[Candidate]
) -> str | None:
    """Return which older version has a build for the target, if the version of *chosen* has none.

    Args:
        chosen: what is taken of a project.
        evaluator: the files of the target.
        ordering: chooses among them.
    """
    name, release = chosen.project, chosen.release
    if chosen.direct or chosen.label not in (None, NULL_LABEL) or ordering.forces(name):
        return None
    project = evaluator.project(name)
    if project.entry is None or any(map(_is_build, evaluator.candidates(name, release))):
        return None
    older = (item for item in project.versions if item < release and not item.is_prerelease)
    version = next(
        (item for item in older if any(map(_is_build, evaluator.candidates(name, item)))), None
    )
    if version is None:
        return None
    best = next(ordering.arrange(name, evaluator.candidates(name, version)), None)
    if best is None or best.label in (None, NULL_LABEL):
        return None
    selection = ordering.selection(name, best)
    why = "" if selection is None else selection.why(File(best.filename, best.source, best))
    return (
        f"{name} {release} has none of the builds that the catalogue describes; {version} has "
        f"variant {best.label}{f' ({why})' if why else ''}: to take it, require {name}=={version}"
    )


def _is_build(item: Candidate) -> bool:
    return item.catalog is not None and item.label != NULL_LABEL
