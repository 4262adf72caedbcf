"""What is known of the maker of an accelerator, or of a family of CPUs, besides its detection.

Each module of a provider has one `Vendor`, called ``VENDOR``. Messages, machines in words, the
doctor, pages and the keys of kept plugin answers read it through `registry.find_vendor`, so that a
new accelerator is one module and one row in `registry.KNOWN`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from .base import Provider


class FeatureWords(NamedTuple):
    """One feature in words; the functions take values as metadata has them.

    Attributes:
        heading: the feature as a heading, ``CUDA driver``.
        fits: what a build with a value is for, ``CUDA driver 12.8 or newer``.
        needs: what a build with these values needs, ``needs CUDA driver 12.8 or newer``.
        answer: a value below the heading, ``12.8 or newer``.
        has: what a machine has that supports these values, ``this one supports up to 12.4``; None
            for the values themselves.
        lacks: what to say where the machine supports something of the namespace, but nothing of
            this feature; empty for the general words.
    """

    heading: str
    fits: Callable[[str], str]
    needs: Callable[[Sequence[str]], str]
    answer: Callable[[str], str] = str
    has: Callable[[Sequence[str]], str] | None = None
    lacks: str = ""


class FactWord(NamedTuple):
    """A fact in the description of a machine, such as ``cuda=12.8``.

    Attributes:
        variable: the override of the provider which says the same.
        title: what it is, for people.
        example: a value.
        read: returns the value for the variable; a `ValueError` says what is wrong with it.
        several: there may be several values, for several devices.
        best: chooses among several values if the variable takes one; None if it takes all.
    """

    variable: str
    title: str
    example: str
    read: Callable[[str], str]
    several: bool = False
    best: Callable[[Sequence[str]], str] | None = None


class Vendor(NamedTuple):
    """A maker of accelerators, or a family of CPUs.

    Attributes:
        provider: detects its devices: the class.
        title: its name, ``NVIDIA``.
        absent: why nothing is supported where a description of a machine names no device.
        features: words for its features, by name.
        device: one of its devices, ``NVIDIA GPU``; empty for CPUs.
        facts: words that describe a machine with its devices, by name.
        check: returns what is wrong with the facts of a description together; empty if nothing is.
        counted: title of the fact that there is one of for each device; empty if detection cannot
            count them.
        hidden_by: variables that hide its devices from programs.
        heeds_hiding: whether detection heeds these variables.
        variables: other variables that programs which look for its devices need.
        pci: vendor in ``/sys/bus/pci``, ``0x10de``; empty if the doctor has no advice about it.
        nodes: patterns of its device files below ``/dev``.
        versions: small files, below the root of the file system, which tell the driver's version.
        libraries: files of the driver that are replaced when it is upgraded.
    """

    provider: Callable[..., Provider]
    title: str
    absent: str
    features: Mapping[str, FeatureWords]
    device: str = ""
    facts: Mapping[str, FactWord] = {}
    check: Callable[[Mapping[str, Sequence[str]]], str] = lambda _: ""
    counted: str = ""
    hidden_by: tuple[str, ...] = ()
    heeds_hiding: bool = False
    variables: tuple[str, ...] = ()
    pci: str = ""
    nodes: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()


def matching(pattern: str, what: str, example: str) -> Callable[[str], str]:
    """Return a `FactWord.read` for values that match *pattern* as a whole."""

    def read(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"is not {what}, such as {example}")
        return text

    return read


def numbers(value: str) -> tuple[int, ...]:
    """Return the numbers between the dots of *value*, to compare versions by."""
    return tuple(int(part) for part in value.split(".") if part.isdigit() and len(part) < 6)
