"""What is installed, against what would fit now."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pep_variants.catalog.elsewhere import is_in_catalog
from pep_variants.choose.preferences import DEFAULT_CATALOG
from pep_variants.choose.rejections import why_not_better
from pep_variants.errors import redacted
from variants_index.doctor.findings import Part, Problem

if TYPE_CHECKING:
    from pep_variants.wheelfile.installed import Installed
    from resolvelib_variants.resolution.explanation import Explanation

    from ..comparison import Compared


_MAX_VERDICTS = 12


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
        tree.append(state)
        name = f"{each.item.project} {each.item.version}"
        label = each.item.label or "(no variant)"
        text = f"{label}: {state['verdict']}"
        if each.advice is not None:
            text += f"; now {each.advice.better or 'the non-variant file'}"
        rows.append((name, text))
        rows += ((name, row) for row in _verdict_rows(state["verdicts"]))
        problems += _problems(each, name, switch, options, indexes)
    return Part(tuple(rows), tuple(problems), tree)


def _problems(
    each: Compared,
    name: str,
    switch: Callable[[Installed], str],
    options: Collection[str],
    indexes: str,
) -> Iterator[Problem]:
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
    if each.advice is not None:
        version = str(each.item.version)
        text = each.advice.text(each.item.project, version)
        code = "stale-variant" if each.advice.unfit else "better-variant"
        yield Problem(code, text, switch(each.item))
        return
    selection = explanation.selection
    if selection is None or selection.chosen is None:
        return
    if missed := why_not_better(selection, selection.chosen):
        label = selection.chosen.label
        best = f"variant {label}" if label else "the non-variant file"
        wanted = f"{each.item.project}=={explanation.version}"
        yield Problem(
            "unfit-variants",
            f"{name}: {best} is the best that fits this machine: {missed}",
            shlex.join(["variants", "explain", *options, wanted]),
            fails=False,
        )


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


def _verdict_rows(verdicts: Mapping[str, list[dict[str, str]]]) -> Iterator[str]:
    """Yield the verdicts of every source in words."""
    for source, rows in verdicts.items():
        place = f" on {source}" if len(verdicts) > 1 else ""
        for row in rows[:_MAX_VERDICTS]:
            yield f"{row['label'] or '(no variant)'} {row['verdict']}{place}: {row['why']}"
        if len(rows) > _MAX_VERDICTS:
            yield f"… and {len(rows) - _MAX_VERDICTS} more"


def _state(each: Compared) -> dict[str, Any]:
    explanation = each.explanation
    if explanation is None:
        verdict = "not known, no index has this version"
    elif not explanation.rankings:
        verdict = "the index has no variants of this version"
    elif each.advice is None:
        verdict = "what would be chosen now"
    elif each.advice.unfit:
        verdict = f"does not fit: {'; '.join(each.advice.unfit)}"
    else:
        verdict = f"another fits better: {each.advice.why}"
    now = explanation.chosen.label if explanation and explanation.chosen else None
    return {
        "project": each.item.project,
        "version": str(each.item.version),
        "installed": each.item.label,
        "now": each.advice.better if each.advice else now,
        "verdict": verdict,
        "verdicts": _verdicts(explanation) if explanation else {},
    }


def _verdicts(explanation: Explanation) -> dict[str, list[dict[str, str]]]:
    return {
        redacted(source): [row._asdict() for row in explanation.verdicts(source)]
        for source in explanation.rankings
    }
