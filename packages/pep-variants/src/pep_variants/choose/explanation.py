"""A ranking as a table, as notices and as JSON, the same in every client."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from ..errors import listed
from ..model.platform import Platform, Support
from ..model.property import ABI_DEPENDENCY, properties_tree
from ..providers.registry import ACCELERATORS
from .phrases import NOTHING, needs, why_chosen, why_rejected
from .ranking import Ranking

_MAX_REASONS = 12
_NOTICE_LENGTH = 400
"""Characters of a notice in a reason: it quotes the metadata, and every label may repeat it."""

UNRESOLVED = ": only a resolver can tell whether that release is taken"


def why_not(ranking: Ranking, label: str, *, notices: bool = True) -> tuple[str, ...]:
    """Return every reason against *label* as a phrase.

    A namespace of which nothing is supported has one phrase for all its features.

    Args:
        ranking: the judged variants.
        label: one of them.
        notices: say why nothing of a namespace is supported, if the platform tells.
    """
    phrases: list[str] = []
    for namespace, group in groupby(ranking.reasons(label), lambda reason: reason.namespace):
        reasons = list(group)
        support = ranking.platform.support(namespace)
        unmet = [reason for reason in reasons if reason.excluded is None]
        phrases += (why_rejected(reason) for reason in reasons if reason.excluded is not None)
        if support.features or not unmet:
            phrases += map(why_rejected, unmet)
            continue
        if namespace == ABI_DEPENDENCY:
            phrases.append(" and ".join(map(needs, unmet)) + UNRESOLVED)
            continue
        notice = f" ({_cut(support.notice)})" if notices and support.notice else ""
        needed = " and ".join(map(needs, unmet))
        phrases.append(needed + NOTHING.format(namespace) + notice)
    return tuple(phrases)


def absent(platform: Platform, namespaces: Sequence[str], labels: Sequence[str]) -> str:
    """Say in one clause that nothing of *namespaces* is supported, which variants need.

    Args:
        platform: the machine.
        namespaces: all of them, ascending.
        labels: of these variants, ascending.
    """
    wanting = f"{labels[0]} needs" if len(labels) == 1 else f"{len(labels)} variants need"
    needed = f"which {wanting}"
    if not platform.described:
        return (
            "the target is not this machine, so nothing is known of its "
            f"{listed(namespaces, 'and')}, {needed}: describe it with --variant-platform FILE"
        )
    said: dict[str, list[str]] = {}
    notes = []
    for namespace in namespaces:
        support = platform.support(namespace)
        what = namespace
        if _actionable(support):  # its notice is printed separately
            text = f"namespace {namespace} is skipped"
        elif platform.source:
            text = "the platform file lists nothing of {}"
        elif support.notice:
            text = f"nothing of {namespace} is supported"
            notes.append(_cut(support.notice))
        else:
            text = "{} found"
            what = f"no {ACCELERATORS.get(namespace, f'support for {namespace}')}"
        said.setdefault(text, []).append(what)
    found = [text.format(listed(parts, "and")) for text, parts in said.items()]
    return ": ".join([f"{'; '.join(found)}, {needed}", *notes])


class Verdict(NamedTuple):
    """One line of the table of a version: label, ``chosen``/``compatible``/``rejected``, why."""

    label: str
    verdict: str
    why: str


def verdicts(ranking: Ranking, chosen: str | None) -> tuple[Verdict, ...]:
    """Return the verdict on every variant: compatible ones in order, then the rejected ones.

    Args:
        ranking: the judged variants.
        chosen: label that was taken, None if none was.
    """
    taken = None if chosen is None else ranking.metadata.label_of(chosen)
    compatible = (
        Verdict(
            variant.label,
            "chosen" if variant.label == taken else "compatible",
            why_chosen(variant.supported) or "always fits",
        )
        for variant in ranking.ranked
    )
    rejected = (
        Verdict(label, "rejected", _joined(why_not(ranking, label)))
        for label in ranking.rejected_labels
    )
    return (*compatible, *rejected)


def table_lines(rows: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    """Yield *rows*, `Verdict`s or what they are made of, as lines with aligned columns."""
    width = max((len(label) for label, _, _ in rows), default=0)
    for label, verdict, why in rows:
        yield f"{label:{width}}  {verdict:10}  {why}"


def ranking_tree(ranking: Ranking, selected: str | None) -> dict[str, Any]:
    """Return *ranking* as JSON data, as ``variants rank --json`` prints it.

    Args:
        ranking: the judged variants.
        selected: label that was chosen, None if none was.
    """
    return {
        "selected": selected,
        "ranked": [
            {
                "label": variant.label,
                "properties": properties_tree(variant.properties),
                "supported": properties_tree(variant.supported),
            }
            for variant in ranking.ranked
        ],
        "rejected": [
            {
                "label": variant.label,
                "reasons": [
                    {
                        "namespace": reason.namespace,
                        "feature": reason.feature,
                        "wanted": list(reason.wanted),
                        "supported": list(reason.supported),
                    }
                    for reason in variant.reasons
                ],
            }
            for variant in ranking.rejected
        ],
    }


class Notice(NamedTuple):
    """What the user should know about a namespace nothing of which could be judged.

    Attributes:
        text: one sentence with the way out.
        actionable: a plugin was not run because the user has not allowed it, or failed and was
            skipped; said by default, while the others are for verbose output.
    """

    text: str
    actionable: bool


def notices(ranking: Ranking) -> tuple[Notice, ...]:
    """Return the notices of the namespaces that variants of this version use."""
    used = {
        namespace for properties in ranking.metadata.variants.values() for namespace in properties
    }
    return tuple(
        Notice(
            f"Namespace {namespace!r} is skipped: {support.notice}",
            _actionable(support),
        )
        for namespace, support in ranking.platform.namespaces.items()
        if support.notice and namespace in used
    )


def _actionable(support: Support) -> bool:
    return bool(support.untrusted) or support.failed


def _joined(reasons: Sequence[str]) -> str:
    shown = "; ".join(reasons[:_MAX_REASONS])
    more = len(reasons) - _MAX_REASONS
    return f"{shown}; and {more} more reasons" if more > 0 else shown


def _cut(notice: str) -> str:
    """Return *notice* for a row of a table; `notices` has the whole of it."""
    return notice if len(notice) <= _NOTICE_LENGTH else f"{notice[: _NOTICE_LENGTH - 1]}…"
