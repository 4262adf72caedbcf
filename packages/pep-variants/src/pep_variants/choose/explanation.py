"""Properties and judgements in words: as phrases, as a table, as notices and as JSON.

The same in every client. Well-known features have specific phrases, all others a general one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from ..model.intel_gpus import titled
from ..model.platform import Platform, Support
from ..model.property import ABI_DEPENDENCY, Properties, properties_tree
from .ranking import Ranking, Reason

_SM = re.compile(r"(\d+)(\d[a-z]?)_(real|virtual)")
_MAX_VALUES = 4
_CPUS = ("x86_64", "aarch64")

_PUBLISHER_ORDER = ("priority", "order")
"""What PyTorch's metadata calls the order of builds that a machine supports equally."""

NOTHING = "; nothing of {} is supported here"


MORE = " (-v shows every variant, --variant {}=LABEL takes another one)"
"""How to see and take other variants of a project; for the first line that misses a better one."""


def why_chosen(supported: Properties) -> str:
    """Return in a few words what makes a variant with these supported properties fit.

    Empty for the null variant. The publisher's order of builds is not a demand, and is left out.
    """
    return ", ".join(
        f"built against {feature} {listed(values)}"
        if namespace == ABI_DEPENDENCY  # all of them do, which one counts the resolution says
        else _fits(namespace, feature, values[0])
        for namespace, features in supported.items()
        for feature, values in features.items()
        if (namespace, feature) != _PUBLISHER_ORDER
    )


def why_rejected(reason: Reason) -> str:
    """Return *reason* as a phrase such as ``needs x86-64-v4, this CPU has x86-64-v3``."""
    needed = needs(reason)
    if reason.excluded is not None:
        return needed
    if not reason.supported:
        if _is_extension(reason):
            return f"{needed}, which this CPU does not have"
        lacks = _LACKS.get((reason.namespace, reason.feature))
        return f"{needed}, {lacks}" if lacks else needed + NOTHING.format("it")
    has = _HAS.get((reason.namespace, reason.feature))
    found = has(reason.supported) if has else f"this machine has {listed(reason.supported, 'and')}"
    return f"{needed}, {found}"


def _fits(namespace: str, feature: str, value: str) -> str:
    if _is_flag(namespace, (value,)):
        return feature
    phrase = _FITS.get((namespace, feature))
    return phrase(value) if phrase else f"{namespace} {feature} {value}"


def asked(namespace: str, feature: str) -> str:
    """Return a feature as a heading, to which `answered` gives an answer."""
    if (namespace, feature) in _ASKED:
        return _ASKED[namespace, feature]
    if namespace in _CPUS:
        return f"CPU extension {feature}"
    return f"{namespace} :: {feature}"


def answered(namespace: str, feature: str, value: str) -> str:
    """Return *value* as an answer to `asked`: ``CUDA driver``: ``13.0 or newer``."""
    phrase = _ANSWERED.get((namespace, feature))
    if phrase is not None:
        return phrase(value)
    return "yes" if value == "on" else value


def needs(reason: Reason) -> str:
    """Return what a rejected variant needs, without what the platform has."""
    if reason.excluded is not None:
        return f"excluded by your preference {str(reason.excluded)!r}"
    if _is_extension(reason):
        return f"needs the CPU extension {reason.feature}"
    phrase = _NEEDS.get((reason.namespace, reason.feature))
    if phrase:
        return phrase(reason.wanted)
    if reason.namespace == ABI_DEPENDENCY:
        return f"is built against {reason.feature} {listed(reason.wanted)}"
    return f"needs {reason.namespace} :: {reason.feature} {listed(reason.wanted)}"


def _is_extension(reason: Reason) -> bool:
    return _is_flag(reason.namespace, reason.wanted)


def _is_flag(namespace: str, values: tuple[str, ...]) -> bool:
    """Return whether *values* are that of a feature which is there or not, of a CPU."""
    return values == ("on",) and namespace in _CPUS


def listed(values: Sequence[str], word: str = "or") -> str:
    """Return *values* as a list in words, a long one cut short."""
    shown = list(values[:_MAX_VALUES])
    if len(values) > _MAX_VALUES:
        return f"{', '.join(shown)}, … ({len(values)} values)"
    if len(shown) < 2:
        return "".join(shown)
    return f"{', '.join(shown[:-1])} {word} {shown[-1]}"


def _numbers(value: str) -> tuple[int, ...]:
    return tuple(int(part) for part in value.split(".") if part.isdigit() and len(part) < 6)


def _capability(value: str) -> str:
    match = _SM.fullmatch(value)
    return f"{match[1]}.{match[2]}" if match else value


def _capabilities(values: Sequence[str]) -> str:
    found = sorted({_capability(value) for value in values}, key=_numbers)
    return listed(found)


def _level(value: str) -> str:
    return f"x86-64-{value}"


_ASKED: dict[tuple[str, str], str] = {
    ("nvidia", "cuda_version_lower_bound"): "CUDA driver",
    ("nvidia", "cuda_version_upper_bound"): "CUDA driver",
    ("nvidia", "sm_arch"): "Compute capability",
    ("amd", "gfx_arch"): "AMD GPU",
    ("amd", "rocm_version"): "ROCm",
    ("intel", "device_ip"): "Intel GPU",
    ("x86_64", "level"): "x86-64 CPU",
    ("aarch64", "version"): "ARM CPU",
}

_ANSWERED: dict[tuple[str, str], Callable[[str], str]] = {
    ("nvidia", "cuda_version_lower_bound"): lambda value: f"{value} or newer",
    ("nvidia", "cuda_version_upper_bound"): lambda value: f"older than {value}",
    ("nvidia", "sm_arch"): lambda value: _capability(value),
    ("intel", "device_ip"): lambda value: titled(value),
    ("x86_64", "level"): _level,
    ("aarch64", "version"): lambda value: f"ARMv{value}",
}

_FITS: dict[tuple[str, str], Callable[[str], str]] = {
    ("nvidia", "cuda_version_lower_bound"): lambda value: f"CUDA driver {value} or newer",
    ("nvidia", "cuda_version_upper_bound"): lambda value: f"CUDA driver older than {value}",
    ("nvidia", "sm_arch"): lambda value: f"compute capability {_capability(value)}",
    ("amd", "gfx_arch"): lambda value: f"GPU {value}",
    ("amd", "rocm_version"): lambda value: f"ROCm {value}",
    ("intel", "device_ip"): lambda value: f"Intel GPU {titled(value)}",
    ("x86_64", "level"): _level,
    ("aarch64", "version"): lambda value: f"ARMv{value}",
}

_NEEDS: dict[tuple[str, str], Callable[[Sequence[str]], str]] = {
    ("nvidia", "cuda_version_lower_bound"): lambda values: (
        f"needs CUDA driver {min(values, key=_numbers)} or newer"
    ),
    ("nvidia", "cuda_version_upper_bound"): lambda values: (
        f"needs CUDA driver older than {max(values, key=_numbers)}"
    ),
    ("nvidia", "sm_arch"): lambda values: f"built for compute capability {_capabilities(values)}",
    ("amd", "gfx_arch"): lambda values: f"built for GPU {listed(values)}",
    ("amd", "rocm_version"): lambda values: f"needs ROCm {listed(sorted(values, key=_numbers))}",
    ("intel", "device_ip"): lambda values: (
        f"built for Intel GPU {listed(sorted(values, key=_numbers))}"
    ),
    ("x86_64", "level"): lambda values: f"needs {_level(min(values))}",
    ("aarch64", "version"): lambda values: f"needs ARMv{min(values, key=_numbers)}",
}

_HAS: dict[tuple[str, str], Callable[[Sequence[str]], str]] = {
    ("nvidia", "cuda_version_lower_bound"): lambda values: f"this one supports up to {values[0]}",
    ("nvidia", "sm_arch"): lambda values: f"this GPU has {_capability(values[0])}",
    ("intel", "device_ip"): lambda values: (
        f"this machine has {listed([titled(value) for value in values], 'and')}"
    ),
    ("x86_64", "level"): lambda values: f"this CPU has {_level(values[0])}",
    ("aarch64", "version"): lambda values: f"this CPU has ARMv{values[0]}",
}

# Where the namespace supports something, of the feature nothing.
_LACKS: dict[tuple[str, str], str] = {
    ("nvidia", "sm_arch"): "no GPU is found here",
    ("amd", "gfx_arch"): "no GPU is found here",
    ("amd", "rocm_version"): "which is not found here",
}

DEVICES: dict[str, str] = {
    "nvidia": "NVIDIA GPU or driver",
    "amd": "AMD GPU",
    "intel": "Intel GPU",
    "ascend": "Ascend NPU",
}
"""The device or driver without which a namespace supports nothing."""


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
            what = f"no {DEVICES.get(namespace, f'support for {namespace}')}"
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
        Verdict(label, "rejected", joined_reasons(why_not(ranking, label), _MAX_REASONS))
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


def joined_reasons(reasons: Sequence[str], most: int = 2) -> str:
    """Return *reasons* as one clause, more than *most* of them cut short."""
    more = len(reasons) - most
    rest = f"; and {more} more {'reason' if more == 1 else 'reasons'}" if more > 0 else ""
    return "; ".join(reasons[:most]) + rest


def _cut(notice: str) -> str:
    """Return *notice* for a row of a table; `notices` has the whole of it."""
    return notice if len(notice) <= _NOTICE_LENGTH else f"{notice[: _NOTICE_LENGTH - 1]}…"
