"""What the page says in words: what a variant needs, sizes, dates, counts."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pep_variants.choose.phrases import needs
from pep_variants.choose.ranking import Reason
from pep_variants.model.metadata import Metadata
from pep_variants.model.property import ABI_DEPENDENCY

_UNITS = ("kB", "MB", "GB", "TB")
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?=T|$)")


def needed(metadata: Metadata, label: str) -> tuple[str, ...]:
    """Return what the variant *label* needs, a phrase for each feature.

    Namespaces that only order variants, because every machine supports all their values, are left
    out. Empty for the null variant.
    """
    properties = metadata.properties_of(label) or {}
    namespaces = dict.fromkeys((*metadata.namespaces, ABI_DEPENDENCY))
    return tuple(
        needs(Reason(namespace, feature, values, ()))
        for namespace in namespaces
        if namespace in properties and not only_orders(metadata, namespace)
        for feature, values in sorted(properties[namespace].items())
    )


def only_orders(metadata: Metadata, namespace: str) -> bool:
    """Return whether every machine supports all values of *namespace* that variants have."""
    provider = metadata.providers.get(namespace)
    if provider is None or provider.static is None or provider.enable_if or provider.optional:
        return False
    static = provider.static
    return not static or all(
        set(values) <= set(static.get(feature, ()))
        for feature, values in metadata.used_values(namespace).items()
    )


def size(number: int) -> str:
    """Return a number of bytes as text with three digits, ``741 MB``; units are decimal."""
    if number < 1000:
        return f"{number} bytes"
    value = float(number)
    for unit in _UNITS:
        value /= 1000
        if value < 999.5 or unit == _UNITS[-1]:
            break
    return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f} {unit}"


def sizes(numbers: Iterable[int]) -> str:
    """Return the range of *numbers* of bytes, ``741 MB to 900 MB``; empty if there are none."""
    found = sorted(numbers)
    if not found:
        return ""
    least, most = size(found[0]), size(found[-1])
    return least if least == most else f"{least} to {most}"


def date(time: str | None) -> str:
    """Return the day of an ISO 8601 *time*, empty if it is not one."""
    match = _DATE.match(time or "")
    return match[0] if match else ""
