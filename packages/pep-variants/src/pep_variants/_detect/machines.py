"""A machine as options, variables and settings give it: in place of looking at this one.

It is one of these:

* a path of a platform file: ``machine.toml``, ``./machine``;
* the name of a known machine: ``h100-zen4``;
* facts: ``cuda=12.8,sm=9.0,cpu=zen4``, each of which a built-in provider would detect; the name of
  a known machine may go first, of which they replace some: ``h100-zen4,cuda=13.0``. The providers
  turn facts into supported values, as they do with the variables that override detection; nothing
  of this machine is looked at.

Names and facts mean the same in every directory: a file of such a name needs a ``./`` before it.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path

from .._formats.platform_file import load_platform, write_platform
from .._model.platform import Platform, Support
from .._providers.aarch64 import AArch64Provider
from .._providers.base import FactWord, Provider
from .._providers.cpu import Cpu
from .._providers.registry import ACCELERATORS, BUILTIN_NAMESPACES, KnownProvider, ask_known
from .._providers.x86_64 import X8664Provider
from ..errors import PlatformFileError, listed, printable, shortened
from .known_machines import BY_NAME, names_file

_CLOSE = 3


def load_machine(machine: str | os.PathLike[str]) -> Platform:
    """Return the supported values of *machine*.

    Args:
        machine: a path, a name or facts; an object that is a path is nothing else.

    Raises:
        PlatformFileError: the file cannot be read or is invalid, there is no such machine, or the
            facts are invalid.

    >>> from pep_variants.machines import load_machine
    >>> machine = load_machine("cuda=12.8,sm=9.0")
    >>> sorted(machine.namespaces["nvidia"].features)
    ['cuda_version_lower_bound', 'cuda_version_upper_bound', 'sm_arch']
    >>> load_machine("h100-zen4").namespaces["nvidia"].features["sm_arch"][:2]
    ('90_real', '90_virtual')
    """
    if not isinstance(machine, str) or names_file(machine):
        try:
            return load_platform(machine)
        except PlatformFileError as error:
            if isinstance(machine, str) and isinstance(error.__context__, FileNotFoundError):
                raise _no_such(machine) from None
            raise
    return Platform(support_of(_facts(machine)), machine)


def gpus(platform: Platform) -> dict[str, str]:
    """Return the GPUs of a machine in the words of `GpuCode.runs_on`, each with its CUDA version.

    Where the machine is described and not this one, the one GPU of NVIDIA that counts.

    >>> from pep_variants.machines import gpus, load_machine
    >>> gpus(load_machine("h100-zen4")), gpus(load_machine("gfx=gfx1100"))
    ({'9.0': '12.8'}, {'gfx1100': ''})
    """
    nvidia, words = platform.support("nvidia"), BUILTIN_NAMESPACES["nvidia"].vendor
    names = [fact.value for fact in nvidia.facts if fact.what == words.counted]
    newest = nvidia.features.get("sm_arch", ())[:1]
    names = names or list(map(words.features["sm_arch"].answer, newest))
    drivers = nvidia.features.get("cuda_version_lower_bound")
    others = platform.support("amd").features.get("gfx_arch", ())
    return (dict.fromkeys(names, drivers[0]) if drivers else {}) | dict.fromkeys(others, "")


def machine_text(machine: str, created_by: str) -> str:
    """Return the platform file of *machine*: what `variants detect -o` writes there.

    Args:
        machine: as in `load_machine`.
        created_by: the program that writes it.

    Raises:
        PlatformFileError: as in `load_machine`.
    """
    platform = load_machine(machine)
    if names_file(machine):
        return write_platform(platform, created_by)
    namespaces = {
        namespace: support
        if support.features or support.notice
        else replace(support, notice=BUILTIN_NAMESPACES[namespace].vendor.absent)
        for namespace, support in platform.namespaces.items()
    }
    written = write_platform(Platform(namespaces), created_by)
    facts = f"What the built-in providers answer for {write_facts(_facts(machine))}."
    known_machine = BY_NAME.get(machine)
    comment = [*([f"{known_machine.title}."] if known_machine else []), facts]
    lines = [line for text in comment for line in textwrap.wrap(text, 98, break_on_hyphens=False)]
    return "".join(f"# {line}\n" for line in lines) + "\n" + written


def _facts(machine: str) -> Facts:
    first, _, rest = machine.partition(",")
    if "=" in first:
        return parse_facts(machine)
    known_machine = BY_NAME.get(first.strip())
    if known_machine is None:
        raise _no_such(first.strip())
    facts = parse_facts(known_machine.facts)
    return {**facts, **parse_facts(rest)} if rest else facts


def _no_such(text: str) -> PlatformFileError:
    if text.endswith(".toml"):
        return PlatformFileError(f"{printable(text)}: cannot be read: No such file or directory")
    # A path, too: settings files name machines, and what is no machine is a path beside them.
    name = text.replace("\\", "/").rpartition("/")[2]
    close = [machine for machine in BY_NAME if name and machine.startswith(name)][:_CLOSE]
    close = close or get_close_matches(name[:80], BY_NAME, _CLOSE)
    meant = f": did you mean {listed(close, 'or')}?" if close else ";"
    return PlatformFileError(
        f"{shortened(text, 200)} is neither a platform file nor a known machine{meant} "
        "'variants platforms' lists the machines"
    )


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

_NO_CPU = "no CPU is given: add one, such as cpu=x86-64-v3"


WORDS: Mapping[str, tuple[str, FactWord]] = {
    name: (namespace, word)
    for namespace in ACCELERATORS
    for name, word in BUILTIN_NAMESPACES[namespace].vendor.facts.items()
}
"""Every fact but `CPU`, by its name, with the namespace whose provider it is for."""


def parse_facts(text: str) -> Facts:
    """Return the facts in *text*, ``name=value`` separated by commas, several values by ``+``.

    Raises:
        PlatformFileError: an unknown name, a name twice, or no value; values are not looked at.

    >>> from pep_variants.machines import parse_facts
    >>> parse_facts("cuda=12.8,sm=8.6+9.0")
    {'cuda': ('12.8',), 'sm': ('8.6', '9.0')}
    """
    if len(text) > LONGEST:
        raise _problem(text, f"longer than {LONGEST:,} characters")
    facts: dict[str, tuple[str, ...]] = {}
    for item in text.split(","):
        name, equals, value = (part.strip() for part in item.partition("="))
        if name not in WORDS and name != CPU:
            known = ", ".join((*WORDS, CPU))
            raise _problem(text, f"{shortened(name)} is not known; there are {known}")
        values = tuple(part.strip() for part in value.split("+"))
        if not equals or not all(values):
            example = "zen4" if name == CPU else WORDS[name][1].example
            raise _problem(text, f"{name} has no value: write {name}={example}")
        if name in facts:
            joined = "+".join((*facts[name], *values))
            several = name in WORDS and WORDS[name][1].several
            remedy = f": write {name}={joined}" if several else ""
            raise _problem(text, f"{name} is given twice{remedy}")
        facts[name] = values
    return facts


def write_facts(facts: Facts) -> str:
    """Return *facts* as the text that `parse_facts` reads."""
    return ",".join(f"{name}={'+'.join(values)}" for name, values in facts.items())


def support_of(facts: Facts) -> dict[str, Support]:
    """Return the support of a machine with these facts, by namespace, for all built-in providers.

    Raises:
        PlatformFileError: a value that is none, or a fact that says nothing without another.
    """
    for provider in BUILTIN_NAMESPACES.values():
        if problem := provider.vendor.check(facts):
            raise _problem(write_facts(facts), problem)
    forced: dict[str, dict[str, str]] = {}
    for name, (namespace, word) in WORDS.items():
        if name in facts:
            forced.setdefault(namespace, {})[word.variable] = _value(facts, name, word)
    cpu = _cpu(facts) if CPU in facts else None
    support: dict[str, Support] = {}
    for namespace, provider in sorted(BUILTIN_NAMESPACES.items()):
        if namespace in forced:
            support[namespace] = _asked(provider, provider.factory(forced[namespace], _NOWHERE, ""))
        elif cpu is not None and cpu.family == namespace:
            support[namespace] = _asked(provider, provider.factory(lambda _: cpu))
        else:
            is_open = cpu is None and namespace in _NAMESPACES_OF_CPUS
            notice = _NO_CPU if is_open else ""
            support[namespace] = Support({}, provider.resolved, provider.plugin_apis[0], notice)
    return support


def _asked(known: KnownProvider, provider: Provider) -> Support:
    return replace(ask_known(known, provider), facts=())


def _value(facts: Facts, name: str, word: FactWord) -> str:
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
    return word.best(read) if word.best else ",".join(read)


def _cpu(facts: Facts) -> Cpu:
    values = facts[CPU]
    if len(values) > 1:
        raise _problem(write_facts(facts), f"{CPU} has one value, not {len(values)}")
    cpus = _known_cpus()
    name = values[0].lower().replace("_", "-")
    if name not in cpus:
        close = get_close_matches(name[:80], cpus, 3)
        raise _problem(
            write_facts(facts),
            f"{CPU}={printable(values[0][:80])} is not a CPU: write a level such as x86-64-v3 or "
            f"armv8.2-a, or archspec's name of a CPU{', such as ' * bool(close)}{listed(close)}",
        )
    return cpus[name]


@cache
def _known_cpus() -> Mapping[str, Cpu]:
    return {name: cpu for provider in _FAMILIES for name, cpu in provider.by_name().items()}


def _problem(text: str, problem: str) -> PlatformFileError:
    return PlatformFileError(f"machine {shortened(text)}: {problem}")
