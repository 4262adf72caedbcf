"""Which extensions the properties of a label declare, for the machine of a library."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from pep_variants.detect.providers.cpu import known_cpus
from pep_variants.model.property import Properties

from .extensions import ARM_VERSIONS

_X86_LEVELS = ("v1", "v2", "v3", "v4")
_ALWAYS_X86 = frozenset({"xsave"})
_UNSEEN = frozenset({"lahf_lm", "mmx", "sse", "sse2", "xsave", "cx16"})
"""Extensions of levels that say nothing where they do not occur."""


@dataclass(frozen=True)
class Declared:
    """What a label declares for one machine.

    Attributes:
        title: level and extensions, for messages.
        allowed: extensions that every CPU that it fits has.
        expected: titles of what it declares beyond the base architecture, and the extensions any
            of which is expected for each.
    """

    title: str
    allowed: frozenset[str]
    expected: Mapping[str, frozenset[str]]


def declared(machine: str, properties: Properties) -> Declared | None:
    """Return what *properties* declare for *machine*, None if it is not known what it includes."""
    if machine == "x86_64":
        return _x86(properties)
    if machine == "aarch64":
        return _arm(properties)
    return None


def level_of(machine: str, extension: str) -> str:
    """Return the first level that includes *extension*, such as ``x86-64-v3``, empty if none."""
    if machine == "x86_64":
        found = [level for level in _X86_LEVELS if extension in _x86_level(level)]
        return f"x86-64-{found[0]}" if found else ""
    versions = (version for version, names in ARM_VERSIONS.items() if extension in names)
    version = next(versions, "")
    return f"ARMv{version}" if version else ""


@lru_cache(maxsize=1)
def _generic_x86() -> dict[str, frozenset[str]]:
    return {cpu.name: cpu.features for cpu in known_cpus("x86_64") if cpu.name in cpu.generics}


def _x86_level(level: str) -> frozenset[str]:
    """Return the extensions of a level of the psABI, as archspec has them."""
    return _generic_x86().get("x86_64" if level == "v1" else f"x86_64_{level}", frozenset())


def _extensions(features: Mapping[str, tuple[str, ...]], grade: str) -> list[str]:
    return [name for name, values in features.items() if name != grade and "on" in values]


def _x86(properties: Properties) -> Declared:
    features = properties.get("x86_64", {})
    levels = [level for level in features.get("level", ()) if level in _X86_LEVELS]
    level = min(levels, default="v1")
    named = _extensions(features, "level")
    allowed = _x86_level(level) | frozenset(named) | _ALWAYS_X86
    # What has AVX-512 or AVX2 has what came before it.
    for prefix, included in (("avx512", "v4"), ("avx2", "v3"), ("avx", "v2"), ("fma", "v2")):
        if any(name.startswith(prefix) for name in named):
            allowed |= _x86_level(included) | {"avx"}
    expected = {name: frozenset({name}) for name in named}
    if level != "v1":
        before = _x86_level(_X86_LEVELS[_X86_LEVELS.index(level) - 1])
        expected[f"x86-64-{level}"] = _x86_level(level) - before - _UNSEEN
    return Declared(", ".join([f"x86-64-{level}", *named]), allowed, expected)


def _arm(properties: Properties) -> Declared:
    features = properties.get("aarch64", {})
    versions = [text for text in features.get("version", ()) if text in ARM_VERSIONS]
    version = min(versions, key=_number, default="8a")
    named = _extensions(features, "version")
    allowed = {
        name
        for other, names in ARM_VERSIONS.items()
        for name in names
        if _number(other) <= _number(version)
        # 9.0 starts from 8.5.
        and not (version == "9.0a" and other == "8.6a")
    }
    allowed |= {*named, "sve"} if any(name.startswith("sve") for name in named) else {*named}
    expected = {name: frozenset({name}) for name in named if name in _recognised()}
    own = frozenset(allowed - set(named))
    if own:
        expected[f"ARMv{version}"] = own
    return Declared(", ".join([f"ARMv{version}", *named]), frozenset(allowed), expected)


@lru_cache(maxsize=1)
def _recognised() -> frozenset[str]:
    return frozenset(name for names in ARM_VERSIONS.values() for name in names)


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)))
