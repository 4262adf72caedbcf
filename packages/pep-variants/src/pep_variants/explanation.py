"""Choices and rejections in words, the same ones in every client.

Well-known features get a phrase of their own, everything else a general one. Phrases are for
people; machines read `ranking.Reason`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import NamedTuple

from .property import ABI_DEPENDENCY, Properties
from .ranking import Ranking, Reason

_SM = re.compile(r"(\d+)(\d[a-z]?)_(real|virtual)")
_MAX_VALUES = 4
_NOTHING = "; nothing of {} is supported here"
_UNRESOLVED = ": whether that is taken, only a resolver can tell"


def why_chosen(supported: Properties) -> str:
    """Return in a few words what makes a variant with these supported properties fit.

    Empty for the null variant.
    """
    return ", ".join(
        f"built against {feature} {_listed(values)}"
        if namespace == ABI_DEPENDENCY  # all of them do, which one counts the resolution says
        else _fits(namespace, feature, values[0])
        for namespace, features in supported.items()
        for feature, values in features.items()
    )


def why_rejected(reason: Reason) -> str:
    """Return *reason* as a phrase such as ``needs x86-64-v4, this CPU has x86-64-v3``."""
    needs = _needs(reason)
    if reason.excluded is not None:
        return needs
    if not reason.supported:
        if _is_extension(reason):
            return f"{needs}, which this CPU does not have"
        lacks = _LACKS.get((reason.namespace, reason.feature))
        return f"{needs}, {lacks}" if lacks else needs + _NOTHING.format("it")
    has = _HAS.get((reason.namespace, reason.feature))
    found = has(reason.supported) if has else f"this machine has {_listed(reason.supported, 'and')}"
    return f"{needs}, {found}"


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
            phrases.append(" and ".join(map(_needs, unmet)) + _UNRESOLVED)
            continue
        notice = f" ({support.notice})" if notices and support.notice else ""
        needs = " and ".join(map(_needs, unmet))
        phrases.append(needs + _NOTHING.format(namespace) + notice)
    return tuple(phrases)


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
        Verdict(label, "rejected", "; ".join(why_not(ranking, label)))
        for label in ranking.rejected_labels
    )
    return (*compatible, *rejected)


class Notice(NamedTuple):
    """What the user should know about a namespace nothing of which could be judged.

    Attributes:
        text: one sentence with the way out.
        actionable: a plugin was not run because the user has not allowed it; said unasked, while
            the others are for those who want to know more.
    """

    text: str
    actionable: bool


def notices(ranking: Ranking) -> tuple[Notice, ...]:
    """Return the notices of the namespaces that variants of this version use."""
    used = {
        namespace for properties in ranking.metadata.variants.values() for namespace in properties
    }
    return tuple(
        Notice(f"Namespace {namespace!r} is skipped: {support.notice}", bool(support.untrusted))
        for namespace, support in ranking.platform.namespaces.items()
        if support.notice and namespace in used
    )


def _fits(namespace: str, feature: str, value: str) -> str:
    if _is_flag(namespace, (value,)):
        return feature
    phrase = _FITS.get((namespace, feature))
    return phrase(value) if phrase else f"{namespace} {feature} {value}"


def _needs(reason: Reason) -> str:
    if reason.excluded is not None:
        return f"excluded by your preference {str(reason.excluded)!r}"
    if _is_extension(reason):
        return f"needs the CPU extension {reason.feature}"
    phrase = _NEEDS.get((reason.namespace, reason.feature))
    if phrase:
        return phrase(reason.wanted)
    if reason.namespace == ABI_DEPENDENCY:
        return f"is built against {reason.feature} {_listed(reason.wanted)}"
    return f"needs {reason.namespace} :: {reason.feature} {_listed(reason.wanted)}"


def _is_extension(reason: Reason) -> bool:
    return _is_flag(reason.namespace, reason.wanted)


def _is_flag(namespace: str, values: tuple[str, ...]) -> bool:
    """Return whether *values* are that of a feature which is there or not, of a CPU."""
    return values == ("on",) and namespace in ("x86_64", "aarch64")


def _listed(values: Sequence[str], word: str = "or") -> str:
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
    return _listed(found)


def _level(value: str) -> str:
    return f"x86-64-{value}"


def _intel(value: str) -> str:
    from .providers.intel import titled

    return titled(value)


_FITS: dict[tuple[str, str], Callable[[str], str]] = {
    ("nvidia", "cuda_version_lower_bound"): lambda value: f"CUDA driver {value} or newer",
    ("nvidia", "cuda_version_upper_bound"): lambda value: f"CUDA driver older than {value}",
    ("nvidia", "sm_arch"): lambda value: f"compute capability {_capability(value)}",
    ("amd", "gfx_arch"): lambda value: f"GPU {value}",
    ("amd", "rocm_version"): lambda value: f"ROCm {value}",
    ("intel", "device_ip"): lambda value: f"Intel GPU {_intel(value)}",
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
    ("amd", "gfx_arch"): lambda values: f"built for GPU {_listed(values)}",
    ("amd", "rocm_version"): lambda values: f"needs ROCm {_listed(sorted(values, key=_numbers))}",
    ("intel", "device_ip"): lambda values: (
        f"built for Intel GPU {_listed(sorted(values, key=_numbers))}"
    ),
    ("x86_64", "level"): lambda values: f"needs {_level(min(values))}",
    ("aarch64", "version"): lambda values: f"needs ARMv{min(values, key=_numbers)}",
}

_HAS: dict[tuple[str, str], Callable[[Sequence[str]], str]] = {
    ("nvidia", "cuda_version_lower_bound"): lambda values: f"this one supports up to {values[0]}",
    ("nvidia", "sm_arch"): lambda values: f"this GPU has {_capability(values[0])}",
    ("intel", "device_ip"): lambda values: (
        f"this machine has {_listed([_intel(value) for value in values], 'and')}"
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
