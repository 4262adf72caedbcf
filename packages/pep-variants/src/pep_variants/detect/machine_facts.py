"""Machines in a few words: ``cuda=12.8,sm=9.0,cpu=zen4``.

Each word is a fact that a built-in provider would detect. The providers turn them into supported
values, as they do with the variables that override detection, so the words mean what they mean
there; nothing of this machine is looked at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import NamedTuple

from ..choose.explanation import listed
from ..errors import PlatformFileError, printable, shortened
from ..model.intel_gpus import BY_IP, KNOWN_DEVICES
from ..model.platform import Support
from ..model.property import VALUE
from .answers import ask_known
from .providers import amd, ascend, intel, nvidia
from .providers.aarch64 import AArch64Provider
from .providers.base import Provider
from .providers.cpu import Cpu
from .providers.x86_64 import X8664Provider
from .registry import BUILTIN_NAMESPACES, KnownProvider

Facts = Mapping[str, tuple[str, ...]]
"""Values by the name of the fact, as they were written."""

LONGEST = 1000
"""Characters of a description; more are a mistake."""

CPU = "cpu"

_FAMILIES = (X8664Provider, AArch64Provider)
_NAMESPACES_OF_CPUS = {provider.namespace for provider in _FAMILIES}
_NOWHERE = Path("/nonexistent")
"""Root of the file system for providers, which have nothing to detect there. The system is given
as none, too: its drivers cannot be asked."""

ABSENT = {
    "nvidia": "no NVIDIA driver",
    "amd": "neither an AMD GPU nor ROCm",
    "intel": "no Intel GPU with Level Zero",
    "ascend": "no Ascend NPU",
    "x86_64": "a CPU of another family",
    "aarch64": "a CPU of another family",
}
"""Why nothing of a namespace is supported, where the facts are complete."""

_NO_CPU = "no CPU is given: add one, such as cpu=x86-64-v3"


class Word(NamedTuple):
    """A fact that a description may have, besides the CPU.

    Attributes:
        namespace: whose provider it is for.
        variable: the override of that provider which says the same.
        example: a value.
        read: returns the value for the variable; a `ValueError` says what is wrong with it.
        several: there may be several values, for several devices.
    """

    namespace: str
    variable: str
    example: str
    read: Callable[[str], str]
    several: bool = False


def _matching(pattern: str, what: str, example: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"is not {what}, such as {example}")
        return text

    return read


def _driver(text: str) -> str:
    found = nvidia.version_pair(_matching(nvidia.DRIVER_PATTERN, "a CUDA version", "12.8")(text))
    if not nvidia.OLDEST_DRIVER <= found <= nvidia.NEWEST_DRIVER:
        oldest, newest = (
            f"{major}.{minor}" for major, minor in (nvidia.OLDEST_DRIVER, nvidia.NEWEST_DRIVER)
        )
        raise ValueError(f"is outside {oldest} to {newest}, for which there are builds")
    return text


def _capability(text: str) -> str:
    matching = _matching(nvidia.CAPABILITY_PATTERN, "a compute capability", "9.0")
    found = nvidia.version_pair(matching(text))
    if found < nvidia.OLDEST_CAPABILITY:
        major, minor = nvidia.OLDEST_CAPABILITY
        raise ValueError(f"is below {major}.{minor}, the oldest for which there are builds")
    return text


def _device(text: str) -> str:
    """Return the IP version of the Intel GPU *text*: that version, or a name of Intel's."""
    if text in BY_IP:
        return text
    for device in KNOWN_DEVICES:
        if text in device.names.split(", "):
            return device.ip
    names = [name for device in KNOWN_DEVICES for name in device.names.split(", ")]
    raise ValueError(
        "is not an Intel GPU: write its IP version, such as 20.1.0, or Intel's name"
        + _meant(text, [*names, *BY_IP])
    )


def _word(
    namespace: str, variable: str, pattern: str, what: str, example: str, *, several: bool = False
) -> Word:
    return Word(namespace, variable, example, _matching(pattern, what, example), several)


_ascend = ascend.AscendProvider.override

WORDS: Mapping[str, Word] = {
    "cuda": Word("nvidia", nvidia.DRIVER_OVERRIDE, "12.8", _driver),
    "sm": Word("nvidia", nvidia.CAPABILITY_OVERRIDE, "9.0", _capability, several=True),
    "rocm": _word("amd", amd.VERSION_OVERRIDE, amd.VERSION_PATTERN, "a version of ROCm", "6.4"),
    "gfx": _word(
        "amd",
        amd.ARCHITECTURE_OVERRIDE,
        amd.ARCHITECTURE_PATTERN,
        "the architecture of an AMD GPU",
        "gfx942",
        several=True,
    ),
    "intel": Word("intel", intel.DEVICE_OVERRIDE, "bmg-g21", _device, several=True),
    "npu": _word(
        "ascend",
        _ascend(ascend.NPU_TYPE),
        VALUE.pattern,
        "the type of an Ascend NPU",
        "910b",
        several=True,
    ),
    "ascend": _word(
        "ascend",
        _ascend(ascend.DRIVER_VERSION),
        VALUE.pattern,
        "a version of the Ascend driver",
        "24.1.rc1",
    ),
    "cann": _word(
        "ascend", _ascend(ascend.CANN_VERSION), VALUE.pattern, "a version of CANN", "8.0.rc1"
    ),
}
"""Every fact but `CPU`, by its name."""


def parse_facts(text: str) -> Facts:
    """Return what *text* says, ``name=value`` separated by commas, several values by ``+``.

    Raises:
        PlatformFileError: an unknown name, a name twice, or no value; values are not looked at.
    """
    if len(text) > LONGEST:
        raise _problem(text, f"longer than {LONGEST:,} characters")
    found: dict[str, tuple[str, ...]] = {}
    for item in text.split(","):
        name, equals, value = (part.strip() for part in item.partition("="))
        if name not in WORDS and name != CPU:
            known = ", ".join((*WORDS, CPU))
            raise _problem(text, f"{shortened(name)} is not known; there are {known}")
        values = tuple(part.strip() for part in value.split("+"))
        if not equals or not all(values):
            raise _problem(text, f"{name} has no value: write {name}={_example(name)}")
        if name in found:
            joined = "+".join((*found[name], *values))
            several = name in WORDS and WORDS[name].several
            remedy = f": write {name}={joined}" if several else ""
            raise _problem(text, f"{name} is given twice{remedy}")
        found[name] = values
    return found


def write_facts(facts: Facts) -> str:
    """Return *facts* as the text that `parse_facts` reads."""
    return ",".join(f"{name}={'+'.join(values)}" for name, values in facts.items())


def support_of(facts: Facts) -> dict[str, Support]:
    """Return what a machine with these facts supports, by namespace, for all built-in providers.

    Raises:
        PlatformFileError: a value that is none, or a fact that says nothing without another.
    """
    if "sm" in facts and "cuda" not in facts:
        raise _problem(
            write_facts(facts),
            "sm needs cuda as well, the CUDA version of the driver: add cuda=12.8 or another one",
        )
    forced: dict[str, dict[str, str]] = {}
    for name, word in WORDS.items():
        if name in facts:
            forced.setdefault(word.namespace, {})[word.variable] = _value(facts, name, word)
    cpu = _cpu(facts) if CPU in facts else None
    found: dict[str, Support] = {}
    for namespace, known in sorted(BUILTIN_NAMESPACES.items()):
        if namespace in forced:
            found[namespace] = _asked(known, known.factory(forced[namespace], _NOWHERE, ""))
        elif cpu is not None and cpu.family == namespace:
            found[namespace] = _asked(known, known.factory(lambda _: cpu))
        else:
            found[namespace] = _nothing(namespace)
            if cpu is None and namespace in _NAMESPACES_OF_CPUS:
                notice = found[namespace].notice or _NO_CPU
                found[namespace] = replace(found[namespace], notice=notice)
    return found


@cache  # of a machine with one GPU, the five other namespaces took most of the time
def _nothing(namespace: str) -> Support:
    """Return what the provider of *namespace* answers where no fact is for it."""
    known = BUILTIN_NAMESPACES[namespace]
    if namespace in _NAMESPACES_OF_CPUS:
        return _asked(known, known.factory(lambda _: None))
    return _asked(known, known.factory({}, _NOWHERE, ""))


def _asked(known: KnownProvider, provider: Provider) -> Support:
    return replace(ask_known(known, provider), facts=())


def _value(facts: Facts, name: str, word: Word) -> str:
    values = facts[name]
    if len(values) > 1 and not word.several:
        raise _problem(write_facts(facts), f"{name} has one value, not {len(values)}")
    read: list[str] = []
    for value in values:
        try:
            read.append(word.read(value))
        except ValueError as error:
            raise _problem(
                write_facts(facts),
                f"{name}={printable(value[:80])} {error}",
            ) from None
    if word.variable == nvidia.CAPABILITY_OVERRIDE:
        # The variable has one value: the newest GPU is the one that counts.
        return max(read, key=nvidia.version_pair)
    return ",".join(read)


def _cpu(facts: Facts) -> Cpu:
    values = facts[CPU]
    if len(values) > 1:
        raise _problem(write_facts(facts), f"{CPU} has one value, not {len(values)}")
    known = _known_cpus()
    name = values[0].lower().replace("_", "-")
    if name not in known:
        raise _problem(
            write_facts(facts),
            f"{CPU}={printable(values[0][:80])} is not a CPU: write a level such as "
            f"x86-64-v3 or armv8.2-a, or archspec's name of a CPU{_meant(name, list(known))}",
        )
    return known[name]


@cache
def _known_cpus() -> Mapping[str, Cpu]:
    return {name: cpu for provider in _FAMILIES for name, cpu in provider.by_name().items()}


def _example(name: str) -> str:
    return "zen4" if name == CPU else WORDS[name].example


def _meant(text: str, known: list[str]) -> str:
    close = get_close_matches(text[:80], known, 3)
    return f", such as {listed(close, 'or')}" if close else ""


def _problem(text: str, problem: str) -> PlatformFileError:
    return PlatformFileError(f"machine {shortened(text)}: {problem}")
