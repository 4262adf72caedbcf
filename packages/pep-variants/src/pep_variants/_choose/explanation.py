"""Properties and judgements in words: as phrases, as a table, as notices and as JSON.

The same in every client. Well-known features have specific phrases, all others a general one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from .._model.platform import Platform, Support
from .._model.property import ABI_DEPENDENCY, Properties, Property, properties_tree
from .._providers.base import FeatureWords
from .._providers.registry import ACCELERATORS, find_vendor
from ..errors import cut, listed
from .ranking import Ranking, Reason

_PUBLISHER_ORDER = ("priority", "order")
"""Name in PyTorch's metadata of the order of builds that a machine supports equally."""

MORE = " (-v shows every variant, --variant {}=LABEL takes another one)"
"""How to see and take other variants of a project; for the first line that misses a better one."""

_HERE = Platform()


def why_chosen(supported: Properties) -> str:
    """Return in a few words what makes a variant with these supported properties fit.

    Empty for the null variant. The publisher's order of builds is not a demand, and is left out.

    >>> from pep_variants.selection import why_chosen
    >>> why_chosen({"nvidia": {"cuda_version_lower_bound": ("12.8",), "sm_arch": ("90_real",)}})
    'CUDA driver 12.8 or newer, compute capability 9.0'
    """
    return ", ".join(
        f"built against {feature} {listed(values)}"
        if namespace == ABI_DEPENDENCY  # all of them do, which one counts the resolution says
        else _fits(namespace, feature, values[0])
        for namespace, features in supported.items()
        for feature, values in features.items()
        if (namespace, feature) != _PUBLISHER_ORDER
    )


def why_rejected(reason: Reason, platform: Platform = _HERE) -> str:
    """Return *reason* as a phrase such as ``needs x86-64-v4, this CPU has x86-64-v3``.

    Args:
        reason: against a variant.
        platform: of the machine, whose facts name what it has but does not support.
    """
    needed = needs(reason)
    if reason.excluded is not None:
        return needed
    words = _words(reason.namespace, reason.feature)
    has = reason.supported or tuple(
        fact.value
        for fact in platform.support(reason.namespace).facts
        if words and fact.what.lower() == words.heading.lower()
    )
    if has:
        return f"{needed}, {words.has(has) if words and words.has else _has(has)}"
    if _is_flag(reason.namespace, reason.wanted):
        return f"{needed}, which this CPU does not have"
    if not (platform.source or platform.support(reason.namespace).facts):
        return f"{needed}, which this machine does not have"  # the key of a proxy says no more
    vendor = find_vendor(reason.namespace)
    lacks = (words and words.lacks) or (vendor and vendor.device) or f"support for {reason.feature}"
    return f"{needed}, {_missing(platform, [lacks])}"


def _has(values: Sequence[str]) -> str:
    return f"this machine has {listed(values, 'and')}"


def _missing(platform: Platform, things: Sequence[str]) -> str:
    """Return that *platform* has none of *things*: ``no AMD GPU and no NVIDIA driver found``."""
    missing = listed([f"no {thing}" for thing in things], "and")
    return f"{missing} in {platform.source}" if platform.source else f"{missing} found"


def _required(namespace: str) -> str:
    """Return the device or driver without which nothing of *namespace* is supported."""
    vendor = find_vendor(namespace)
    if vendor is None:
        return f"support for {namespace}"
    return ACCELERATORS.get(namespace, f"{vendor.title} CPU")


def _fits(namespace: str, feature: str, value: str) -> str:
    if _is_flag(namespace, (value,)):
        return feature
    words = _words(namespace, feature)
    return words.fits(value) if words else f"{namespace} {feature} {value}"


def asked(namespace: str, feature: str) -> str:
    """Return a feature as a heading, to which `answered` gives an answer."""
    words = _words(namespace, feature)
    if words:
        return words.heading
    return f"CPU extension {feature}" if _is_cpu(namespace) else f"{namespace} :: {feature}"


def answered(namespace: str, feature: str, value: str) -> str:
    """Return *value* as an answer to `asked`: ``CUDA driver``: ``13.0 or newer``.

    >>> from pep_variants.selection import answered, asked
    >>> feature = "nvidia", "cuda_version_lower_bound"
    >>> f"{asked(*feature)}: {answered(*feature, '13.0')}"
    'CUDA driver: 13.0 or newer'
    """
    words = _words(namespace, feature)
    if words:
        return words.answer(value)
    return "yes" if value == "on" else value


def all_needs(properties: Properties) -> Iterator[str]:
    """Yield what *properties* need of an accelerator, with all values of each feature.

    >>> from pep_variants.selection import all_needs
    >>> list(all_needs({"nvidia": {"sm_arch": ("100_real", "90_real")}}))
    ['Compute capability 9.0, 10.0']
    """
    for namespace, features in properties.items():
        for feature, values in features.items() if namespace in ACCELERATORS else ():
            said = {answered(namespace, feature, value) for value in values}
            yield f"{asked(namespace, feature)} {', '.join(sorted(said, key=_by_number))}"


def _by_number(text: str) -> tuple[list[int], str]:
    return [int(digits) for digits in re.findall("[0-9]+", text)], text


def needs(reason: Reason) -> str:
    """Return the needs of a rejected variant, without what the platform has."""
    if reason.excluded is not None:
        return f"excluded by your preference {str(reason.excluded)!r}"
    if _is_flag(reason.namespace, reason.wanted):
        return f"needs the CPU extension {reason.feature}"
    words = _words(reason.namespace, reason.feature)
    if words:
        return words.needs(reason.wanted)
    if reason.namespace == ABI_DEPENDENCY:
        return f"is built against {reason.feature} {listed(reason.wanted)}"
    return f"needs {reason.namespace} :: {reason.feature} {listed(reason.wanted)}"


def _words(namespace: str, feature: str) -> FeatureWords | None:
    vendor = find_vendor(namespace)
    return None if vendor is None else vendor.features.get(feature)


def _is_cpu(namespace: str) -> bool:
    vendor = find_vendor(namespace)
    return vendor is not None and not vendor.device


def _is_flag(namespace: str, values: tuple[str, ...]) -> bool:
    """Return whether *values* are that of a feature which is there or not, of a CPU."""
    return values == ("on",) and _is_cpu(namespace)


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
        if support.features or support.facts or not unmet:
            phrases += (
                _fault(ranking, label, reason) or why_rejected(reason, ranking.platform)
                for reason in unmet
            )
            continue
        if namespace == ABI_DEPENDENCY:
            phrases.append(" and ".join(map(needs, unmet)) + UNRESOLVED)
            continue
        notice = f" ({cut(support.notice, _NOTICE_LENGTH)})" if notices and support.notice else ""
        needed = " and ".join(map(needs, unmet))
        phrases.append(f"{needed}; {lacking(ranking.platform, [namespace])}{notice}")
    return tuple(phrases)


def _fault(ranking: Ranking, label: str, reason: Reason) -> str:
    """Return the known fault of *label* that is the *reason* against it; empty if none is."""
    known = ranking.metadata.faults.get(label, {})
    here = (Property(reason.namespace, reason.feature, value) for value in reason.supported)
    return next((known[item] for item in here if item in known), "")


def lacking(platform: Platform, namespaces: Sequence[str]) -> str:
    """Return that nothing of *namespaces* is supported: ``no NVIDIA driver found``."""
    things = list(dict.fromkeys(map(_required, namespaces)))
    if platform.described:
        return _missing(platform, things)
    return f"nothing is known of the target's {listed(things, 'and')}"


def absent(platform: Platform, namespaces: Sequence[str]) -> str:
    """Say in one clause why nothing of *namespaces* is supported.

    Args:
        platform: the machine.
        namespaces: all of them, ascending.
    """
    skipped, plain, explained = [], [], []
    for namespace in namespaces:
        support = platform.support(namespace)
        if _actionable(support):  # its notice is printed separately
            skipped.append(f"namespace {namespace} is skipped")
        elif support.notice and platform.described and not platform.source:
            notice = cut(support.notice, _NOTICE_LENGTH)
            explained.append(f"{lacking(platform, [namespace])} ({notice})")
        else:
            plain.append(namespace)
    found = [lacking(platform, plain)] if plain else []
    clause = "; ".join([*skipped, *found, *explained])
    if platform.described:
        return clause
    return f"{clause}: describe it with --variant-platform FILE"


def lacks_builds(namespaces: Sequence[str]) -> str:
    """Return that there is no build for the accelerators of *namespaces*, which are here."""
    vendors = filter(None, map(find_vendor, namespaces))
    return f"no build is for {listed([f'the {vendor.device}' for vendor in vendors])}"


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

    >>> from pep_variants.selection import verdicts
    >>> from pep_variants.machines import load_machine
    >>> from pep_variants.metadata import Metadata
    >>> from pep_variants.selection import rank
    >>> build = {"nvidia": {"cuda_version_lower_bound": ("13.0",)}}
    >>> metadata = Metadata(("nvidia",), {"cu130": build, "null": {}})
    >>> ranking = rank(metadata, load_machine("cuda=12.8"))
    >>> for verdict in verdicts(ranking, chosen="null"):
    ...     print(*verdict, sep=" | ")
    null | chosen | always fits
    cu130 | rejected | needs CUDA driver 13.0 or newer, this one supports up to 12.8
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
        Verdict(label, "rejected", joined_reasons(why_not(ranking, label), _MAX_REASONS))
        for label in ranking.rejected_labels
    )
    return (*compatible, *rejected)


def table_lines(
    rows: Sequence[tuple[str, str, str]], properties: Iterable[object] = ()
) -> Iterator[str]:
    """Yield *rows* as lines with aligned columns.

    Args:
        rows: each a `Verdict`, or what it is made of.
        properties: what the chosen variant needs; each on a line of its own below it.

    >>> from pep_variants.selection import table_lines
    >>> rows = [("cu128", "chosen", "CUDA driver 12.8"), ("null", "compatible", "always fits")]
    >>> for line in table_lines(rows, ["nvidia :: sm_arch :: 90_real"]):
    ...     print(line)
    cu128  chosen      CUDA driver 12.8
             nvidia :: sm_arch :: 90_real
    null   compatible  always fits
    """
    width = max((len(label) for label, _, _ in rows), default=0)
    for label, verdict, why in rows:
        yield f"{label:{width}}  {verdict:10}  {why}"
        if verdict == "chosen":
            yield from (f"{'':{width}}    {item}" for item in properties)


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
    """Notice to the user about a namespace nothing of which could be judged.

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


def joined_reasons(reasons: Sequence[str], most: int = 2) -> str:
    """Return *reasons* as one clause, more than *most* of them cut short."""
    more = len(reasons) - most
    rest = f"; and {more} more {'reason' if more == 1 else 'reasons'}" if more > 0 else ""
    return "; ".join(reasons[:most]) + rest
