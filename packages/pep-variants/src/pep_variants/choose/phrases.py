"""Properties, and why they are not met, as phrases.

Features of built-in providers have the phrases of their `Vendor`, all others a general one.
"""

from __future__ import annotations

from ..errors import listed
from ..model.property import ABI_DEPENDENCY, Properties
from ..providers.registry import find_vendor
from ..providers.vendor import FeatureWords
from .ranking import Reason

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
    words = _words(reason.namespace, reason.feature)
    if not reason.supported:
        if _is_flag(reason.namespace, reason.wanted):
            return f"{needed}, which this CPU does not have"
        return (
            f"{needed}, {words.lacks}" if words and words.lacks else needed + NOTHING.format("it")
        )
    if words and words.has:
        return f"{needed}, {words.has(reason.supported)}"
    return f"{needed}, this machine has {listed(reason.supported, 'and')}"


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
    """Return *value* as an answer to `asked`: ``CUDA driver``: ``13.0 or newer``."""
    words = _words(namespace, feature)
    if words:
        return words.answer(value)
    return "yes" if value == "on" else value


def needs(reason: Reason) -> str:
    """Return what a rejected variant needs, without what the platform has."""
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
