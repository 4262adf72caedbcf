"""Machines for the form: what the built-in providers answer on them, as compact data.

The values are the providers' own; nothing of their rules is repeated here or in the script. Only
their shape is used: an NVIDIA driver cuts one list in two, and a CPU has some of the features of
its family. Whatever does not have that shape is written out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

from pep_variants.choose.phrases import DEVICES
from pep_variants.detect.known_machines import BY_NAME
from pep_variants.detect.machines import load_machine
from pep_variants.detect.providers.aarch64 import AArch64Provider
from pep_variants.detect.providers.amd import ROCM_VERSION, AmdProvider
from pep_variants.detect.providers.ascend import NPU_TYPE, AscendProvider
from pep_variants.detect.providers.cpu import CpuProvider, known_cpus
from pep_variants.detect.providers.cpu_cache import Cpu
from pep_variants.detect.providers.intel import DEVICE_IP, DEVICE_OVERRIDE, IntelProvider
from pep_variants.detect.providers.nvidia import (
    CAPABILITY_OVERRIDE,
    DRIVER_OVERRIDE,
    LOWER_BOUND,
    SM_ARCH,
    UPPER_BOUND,
    NvidiaProvider,
)
from pep_variants.detect.providers.x86_64 import X8664Provider
from pep_variants.model.metadata import natural
from pep_variants.model.platform import Platform, Support
from pep_variants.model.property import Features

from .devices import AMD, CPUS, INTEL, NVIDIA

Pairs = list[list[Any]]
"""An ordered mapping. Objects of JavaScript put keys that are numbers first."""

_FAMILY_TITLES = {"x86_64": "x86-64", "aarch64": "64-bit Arm"}
_FAMILIES: tuple[type[CpuProvider], ...] = (X8664Provider, AArch64Provider)


class Family(NamedTuple):
    """The CPUs of one family.

    Attributes:
        values: every ``(feature, value)`` that a CPU of the family may support, in order.
        cpus: which of them each CPU supports, by archspec's name, as bits: the first is the
            lowest.
    """

    values: tuple[tuple[str, str], ...]
    cpus: Mapping[str, int]

    def bits(self, features: Features) -> int | None:
        """Return *features* as bits, None if they are not values of the family in its order."""
        given = _values(features)
        bits = _bits(self.values, given)
        return bits if self.of(bits) == given else None

    def of(self, bits: int) -> tuple[tuple[str, str], ...]:
        """Return the values that *bits* stand for."""
        return tuple(item for place, item in enumerate(self.values) if bits >> place & 1)


def _values(features: Features) -> tuple[tuple[str, str], ...]:
    return tuple((feature, value) for feature, values in features.items() for value in values)


def pairs(features: Features) -> Pairs:
    """Return *features* as data whose order counts."""
    return [[feature, list(values)] for feature, values in features.items()]


@cache
def machine_tree() -> dict[str, Any]:
    """Return what the form offers, as JSON data.

    ``cuda``: versions, newest first. A driver supports its version and those behind it as lower
    bounds, and those before it as upper bounds; ``features`` names both, and that of GPU code.
    ``capabilities``: name, products, values. ``amd``: architecture, products. ``rocm``: versions.
    ``intel``: IP version, products, values. ``ascend``: types. ``families``: namespace, title,
    pairs of feature and value, and CPUs as name, title, bits (hexadecimal), system. ``named``:
    name, title, and facts: ``group``, ``system``, ``nvidia`` (driver, capability), ``cpu``
    (namespace, bits), ``more`` (namespace, features).
    """
    families = _families()
    machines = {name: load_machine(name) for name in sorted(BY_NAME)}
    named = [
        [name, BY_NAME[name].title, _facts(BY_NAME[name].title, machine.namespaces, families)]
        for name, machine in machines.items()
    ]
    return {
        "cuda": list(NvidiaProvider({}).known()[LOWER_BOUND]),
        "features": [LOWER_BOUND, UPPER_BOUND, SM_ARCH],
        "capabilities": [
            [capability, NVIDIA[capability], list(values)]
            for capability, values in _gpu_values().items()
        ],
        "amd": [list(item) for item in AMD.items()],
        "intel": [
            [ip, products, list(IntelProvider({DEVICE_OVERRIDE: ip}).supported()[DEVICE_IP])]
            for ip, products in INTEL.items()
        ],
        "ascend": list(AscendProvider({}).known()[NPU_TYPE]),
        "families": [
            [namespace, _FAMILY_TITLES[namespace], [*map(list, family.values)], _cpus(family)]
            for namespace, family in families.items()
        ],
        "named": named,
        "rocm": _rocm_versions(machines.values()),
    }


def _rocm_versions(machines: Iterable[Platform]) -> list[str]:
    """Return the versions of ROCm on *machines*, newest first."""
    found = {
        version
        for machine in machines
        for version in machine.support(AmdProvider.namespace).features.get(ROCM_VERSION, ())
    }
    return sorted(found, key=natural, reverse=True)


def _cpus(family: Family) -> list[list[str]]:
    return [
        [name, title, f"{family.cpus[name]:x}", _system(family, title)]
        for name, title in CPUS.items()
        if name in family.cpus
    ]


def _system(family: Family, title: str) -> str:
    """Return the system that a machine of that title most likely has, of `SYSTEMS`."""
    if title.startswith(("Apple", "Mac")):
        return "macos-arm64"
    return "linux-aarch64" if "aarch64" in family.cpus else "linux-x86_64"


def nvidia_features(driver: str, capability: str) -> Features:
    """Return what is supported with this CUDA version of the driver, and this GPU."""
    return NvidiaProvider({DRIVER_OVERRIDE: driver, CAPABILITY_OVERRIDE: capability}).supported()


@cache
def _gpu_values() -> Mapping[str, tuple[str, ...]]:
    """Return the supported GPU code by compute capability."""
    return {capability: nvidia_features("13.0", capability)[SM_ARCH] for capability in NVIDIA}


def _families() -> dict[str, Family]:
    found = {}
    for provider in _FAMILIES:
        values = _values(provider().known())
        cpus = {cpu.name: provider(partial(_same, cpu)) for cpu in known_cpus(provider.namespace)}
        found[provider.namespace] = Family(
            values,
            {name: _bits(values, _values(cpu.supported())) for name, cpu in cpus.items()},
        )
    return found


def _same(cpu: Cpu, family: str) -> Cpu | None:
    """Return *cpu*, as if it had been detected."""
    return cpu if cpu.family == family else None


def _bits(values: Sequence[tuple[str, str]], given: Iterable[tuple[str, str]]) -> int:
    there = set(given)
    return sum(1 << place for place, item in enumerate(values) if item in there)


def _facts(
    title: str, namespaces: Mapping[str, Support], families: Mapping[str, Family]
) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    more: list[list[Any]] = []
    groups = [name for name in namespaces if name in DEVICES and namespaces[name].features]
    facts["group"] = DEVICES[groups[0]] if groups else "No accelerator"
    for namespace, support in namespaces.items():
        features: Features = support.features
        if not features:
            continue
        family = families.get(namespace)
        bits = family.bits(features) if family is not None else None
        if bits is not None:
            facts |= {
                "cpu": [namespace, f"{bits:x}"],
                "system": _system(families[namespace], title),
            }
        elif namespace == NvidiaProvider.namespace and (known := _nvidia_facts(features)):
            facts["nvidia"] = known
        else:
            more.append([namespace, pairs(features)])
    return facts | ({"more": more} if more else {})


def _nvidia_facts(features: Features) -> list[str] | None:
    """Return driver and capability that give *features*, None if none do."""
    driver = next(iter(features.get(LOWER_BOUND, ())), "")
    for capability, values in _gpu_values().items():
        if driver and features.get(SM_ARCH) == values:
            same = list(nvidia_features(driver, capability).items()) == list(features.items())
            return [driver, capability] if same else None
    return None
