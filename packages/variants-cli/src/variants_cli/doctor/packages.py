"""What is installed, against what would fit now."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from pep_variants.errors import redacted
from variants_index.doctor.findings import Part, Problem

if TYPE_CHECKING:
    from pep_variants.wheelfile.installed import Installed
    from resolvelib_variants.resolution.explanation import Explanation

    from ..comparison import Compared


def packages_part(
    compared: Iterable[Compared],
    switch: Callable[[Installed], str],
    indexes: str,
) -> Part:
    """Return the state of every distribution that was looked at.

    Args:
        compared: the comparisons.
        switch: gives the command that installs what fits.
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
        problems += _problems(each, name, switch, indexes)
    return Part(tuple(rows), tuple(problems), tree)


def _problems(
    each: Compared, name: str, switch: Callable[[Installed], str], indexes: str
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
        yield Problem(
            "no-variants",
            (explanation.lack or f"{name} has no variants on {indexes}")
            + ("; a variant is installed" if each.item.label else ""),
            f"variants doctor --index-url URL {each.item.project}",
            fails=False,
        )
    if each.advice is not None:
        version = str(each.item.version)
        text = each.advice.text(each.item.project, version)
        code = "stale-variant" if each.advice.unfit else "better-variant"
        yield Problem(code, text, switch(each.item))


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
