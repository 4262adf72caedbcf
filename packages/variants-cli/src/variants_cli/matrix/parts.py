"""Parts of a matrix: groups by the values of axes, and shares of equal size.

CI services limit the number of jobs of one list.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pep_variants.errors import VariantError, shortened

from .model import Variant

_SHARE = re.compile(r"([1-9]\d{0,5})/([1-9]\d{0,5})")


@dataclass(frozen=True)
class Part:
    """Some of the variants of a matrix.

    Attributes:
        name: its name: the values that its variants share, and the number of the share.
        options: options of `variants matrix` that select it.
        variants: what is in it.
    """

    name: str
    options: tuple[str, ...]
    variants: tuple[Variant, ...]


def grouped(variants: Sequence[Variant], axes: Sequence[str], limit: int) -> list[Part]:
    """Return *variants* in groups of equal values of *axes*, none larger than *limit*.

    Args:
        variants: what to group; may have been selected with ``--only``.
        axes: names of axes; nothing for one group.
        limit: groups of more variants are split into shares.

    Raises:
        VariantError: the matrix has no such axis.
    """
    groups: dict[tuple[str, ...], list[Variant]] = {}
    for variant in variants:
        for axis in axes:
            if axis not in variant.values:
                raise VariantError(
                    f"{shortened(axis)} is not an axis; there are {', '.join(variant.values)}"
                )
        groups.setdefault(tuple(variant.values[axis].name for axis in axes), []).append(variant)
    parts = []
    for names, group in groups.items():
        options = tuple(
            word
            for axis, name in zip(axes, names, strict=True)
            for word in ("--only", f"{axis}={name}")
        )
        count = math.ceil(len(group) / limit)
        for number in range(1, count + 1):
            several = (f"{number}/{count}",) * (count > 1)
            parts.append(
                Part(
                    " ".join((*names, *several)),
                    (*options, *(word for text in several for word in ("--part", text))),
                    share(group, number, count),
                )
            )
    return parts


def share(variants: Sequence[Variant], number: int, count: int) -> tuple[Variant, ...]:
    """Return share *number* of *count* of *variants*, counted from 1; sizes differ by one."""
    size = len(variants)
    return tuple(variants[size * (number - 1) // count : size * number // count])


def read_share(text: str) -> tuple[int, int]:
    """Return the number and the count that ``2/3`` says.

    Raises:
        ValueError: it is not of that form, or the number is larger than the count.
    """
    match = _SHARE.fullmatch(text)
    if match is None or int(match[1]) > int(match[2]):
        raise ValueError(f"{shortened(text)} is not a share such as 2/3")
    return int(match[1]), int(match[2])


def counts(variants: Iterable[Variant]) -> str:
    """Return how many wheels there are, of how many variants, Pythons and platforms, in words."""
    wheels = list(variants)
    parts = []
    for found, noun in (
        ({variant.label for variant in wheels}, "variant"),
        ({variant.python for variant in wheels} - {None}, "Python"),
        ({variant.platform for variant in wheels} - {None}, "platform"),
    ):
        if found:
            parts.append(f"{len(found)} {noun}{'s' * (len(found) != 1)}")
    if len(parts) == 1:
        return parts[0]
    return f"{len(wheels)} wheel{'s' * (len(wheels) != 1)}: {', '.join(parts)}"
