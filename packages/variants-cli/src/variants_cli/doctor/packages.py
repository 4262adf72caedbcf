"""What is installed, against what would fit now."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from pep_variants.catalog.elsewhere import is_in_catalog
from pep_variants.choose.preferences import DEFAULT_CATALOG
from pep_variants.choose.rejections import why_not_better
from pep_variants.errors import redacted
from variants_index.doctor.findings import Part, Problem
from variants_index.doctor.states import (
    UNKNOWN,
    State,
    missed_problem,
    state_of,
    switch_problem,
)

if TYPE_CHECKING:
    from pep_variants.wheelfile.installed import Installed

    from ..comparison import Compared


def packages_part(
    compared: Iterable[Compared],
    switch: Callable[[Installed], str],
    options: Collection[str],
    indexes: str,
) -> Part:
    """Return the state of every distribution that was looked at.

    Args:
        compared: the comparisons.
        switch: gives the command that installs what fits.
        options: of the command, for commands that look at the same indexes.
        indexes: where they were looked up, in words.
    """
    rows: list[tuple[str, str]] = []
    problems: list[Problem] = []
    tree: list[dict[str, Any]] = []
    for each in compared:
        state = _state(each)
        tree.append(state.as_tree())
        rows += state.rows()
        problems += _problems(each, state, switch, options, indexes)
    return Part(tuple(rows), tuple(problems), tree)


def _problems(
    each: Compared,
    state: State,
    switch: Callable[[Installed], str],
    options: Collection[str],
    indexes: str,
) -> Iterator[Problem]:
    name = state.name
    if each.item.problem:
        yield Problem("metadata", each.item.problem, switch(each.item))
    explanation = each.explanation
    if explanation is None:
        yield Problem(
            "wrong-index",
            f"{name} is not on {indexes}, so nothing is known of its variants: "
            f"{redacted(each.problem)}. Name the index that it is from",
            "variants doctor --index-url URL",
            fails=each.item.label is not None,
        )
        return
    plugins = {
        support.untrusted: support.notice
        for ranking in explanation.rankings.values()
        for support in ranking.platform.namespaces.values()
        if support.untrusted
    }
    for requirement, notice in plugins.items():
        command = f"export VARIANTS_ALLOW_PROVIDER={shlex.quote(requirement)}"
        yield Problem("plugin", f"{name}: {notice}", command)
    for text in explanation.warnings:
        if not any(notice in text for notice in plugins.values()):
            yield Problem("choice", text, fails=False)
    if not explanation.rankings:
        catalog = explanation.entry is None and is_in_catalog(each.item.project)
        words = [f"--variant-catalog={DEFAULT_CATALOG}"] if catalog else ["--index-url=URL"]
        yield Problem(
            "no-variants",
            (explanation.lack or f"{name} has no variants on {indexes}")
            + ("; a variant is installed" if each.item.label else ""),
            shlex.join(["variants", "doctor", *words, each.item.project]),
            fails=False,
        )
    if problem := switch_problem(state, switch(each.item)):
        yield problem
        return
    selection = explanation.selection
    if selection is None or selection.chosen is None:
        return
    if missed := why_not_better(selection, selection.chosen):
        wanted = f"{each.item.project}=={explanation.version}"
        command = shlex.join(["variants", "explain", *options, wanted])
        yield missed_problem(state, missed, command)


def catalog_hints(
    found: Iterable[Installed], compared: Iterable[Compared], options: Collection[str]
) -> Iterator[Problem]:
    """Yield hints at builds that the catalogue would know, if it was enabled.

    Args:
        found: everything that is installed.
        compared: what was looked at.
        options: of the command, for a command that looks at the same indexes.
    """
    seen = {each.item.project for each in compared}
    for item in found:
        if item.label is None and item.project not in seen and is_in_catalog(item.project):
            yield Problem(
                "catalog-off",
                f"{item.project} {item.version} is installed without a variant, and the catalogue "
                "describes its builds for GPUs and CPUs as variants, once it is asked",
                shlex.join(
                    ["variants", "doctor", *options, f"--variant-catalog={DEFAULT_CATALOG}",
                     item.project]
                ),
                fails=False,
            )  # fmt: skip


def _state(each: Compared) -> State:
    project, version, explanation = each.item.project, str(each.item.version), each.explanation
    if explanation is None:
        return State(project, version, each.item.label, None, UNKNOWN, None)
    now = explanation.chosen.label if explanation.chosen else None
    verdicts = {
        redacted(source): [row._asdict() for row in explanation.verdicts(source)]
        for source in explanation.rankings
    }
    label = each.item.label or explanation.label_of(each.item.version)
    return state_of(project, version, label, each.advice, now, verdicts)
