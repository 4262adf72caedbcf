"""A release as pictures show it: its variants, what machines get of them, and the questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pep_variants.errors import VariantError, shortened
from pep_variants.model.metadata import Metadata

from ..matrix.combination import distinct, metadata_of
from ..matrix.model import Matrix, Variant
from .coverage import Coverage, Unchosen, cover, optional_namespaces, unchosen
from .decision_tree import DecisionTree, TreeTooLarge, grow
from .machines import Machine
from .provider_order import ProviderOrder, learn_order


@dataclass(frozen=True)
class Workload:
    """What is chosen where some optional namespaces are enabled.

    Attributes:
        added: the namespace that this adds to those that are enabled anyway; empty for none.
        coverage: what machines get.
        tree: the questions; None if there are too many.
        problem: why there is no tree, or for which machines it does not hold; mostly empty.
    """

    added: str
    coverage: Coverage
    tree: DecisionTree | None
    problem: str


@dataclass(frozen=True)
class Release:
    """A matrix, or a part of one, before the eyes of people.

    Attributes:
        matrix: the file.
        variants: those that are shown, one for each label.
        workloads: without further optional namespaces, then with each of those that there are.
        order: what is known of providers.
    """

    matrix: Matrix
    variants: tuple[Variant, ...]
    workloads: tuple[Workload, ...]
    order: ProviderOrder

    @property
    def title(self) -> str:
        """What is released; the name of the file if that does not say."""
        return self.matrix.title or Path(self.matrix.source).stem

    @property
    def metadata(self) -> Metadata:
        """The variant metadata of the release."""
        return self.workloads[0].coverage.metadata

    @cached_property
    def unchosen(self) -> tuple[Unchosen, ...]:
        """The variants that no machine gets, whatever is enabled."""
        coverages = [workload.coverage for workload in self.workloads]
        return tuple(unchosen(coverages, self.order.chains.keys()))


def examine(
    matrix: Matrix,
    variants: Sequence[Variant],
    machines: Sequence[Machine],
    known: Sequence[Machine],
    enabled: Sequence[str] = (),
) -> Release:
    """Return *variants* of *matrix* as *machines* see them.

    Args:
        matrix: the file.
        variants: of it, at least one.
        machines: that variants are chosen for.
        known: all machines that show in which order providers list what they support.
        enabled: optional namespaces that are enabled in any case.

    Raises:
        VariantError: an enabled namespace that is not an optional one of the matrix.
        MatrixError: a label or property that the matrix itself rules out.
    """
    metadata = metadata_of(matrix, variants)
    optional = optional_namespaces(metadata)
    for namespace in enabled:
        if namespace not in optional:
            listed = ", ".join(optional) or "none"
            raise VariantError(
                f"{shortened(namespace)} is not an optional namespace of {matrix.source}; "
                f"there are: {listed}"
            )
    order = learn_order(metadata, [machine.platform for machine in (*known, *machines)])
    workloads = []
    for added in ("", *(namespace for namespace in optional if namespace not in enabled)):
        counting = tuple(filter(None, (*enabled, added)))
        coverage = cover(metadata, machines, counting)
        try:
            # The smaller one is for machines with one GPU, or several equal ones: nearly all.
            trees = (grow(metadata, order, counting, several=several) for several in (False, True))
            tree = next((t for t in trees if not _unlike(t, coverage)), None)
            tree = tree or grow(metadata, order, counting)
        except TreeTooLarge as error:
            workloads.append(Workload(added, coverage, None, str(error)))
            continue
        unlike = _unlike(tree, coverage)
        problem = ""
        if unlike:
            problem = (
                f"Does not hold for {', '.join(unlike)}, which list what they support in another "
                "order than other machines."
            )
        workloads.append(Workload(added, coverage, tree, problem))
    return Release(matrix, distinct(variants), tuple(workloads), order)


def _unlike(tree: DecisionTree, coverage: Coverage) -> list[str]:
    """Return the machines for which *tree* leads to another variant than is chosen."""
    return [
        choice.machine.name
        for choice in coverage.choices
        if tree.decide(choice.ranking.platform) != choice.label
    ]
