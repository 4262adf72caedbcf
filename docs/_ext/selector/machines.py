"""The machines of the selector: GPUs by name, with each driver, on each system.

Machines that support the same of what builds need share their answers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from pep_variants.machines import (
    KNOWN_DRIVERS,
    KNOWN_GPUS,
    SEEN_BY,
    KnownDriver,
    KnownGpu,
    Platform,
    load_machine,
)
from variants_catalog.entries import CatalogProject

UNKNOWN = {
    "nvidia": "This is for the newest driver that your GPU can have: look which one you have.",
    "jetson": "This is for the newest JetPack that your module can have: look which one you have.",
    "amd": "",
}
"""What is said to people who do not know their driver, by kind, see `KnownGpu.assumed_driver`."""


@dataclass(frozen=True)
class System:
    """A system that people have.

    Attributes:
        id: in URLs.
        title: for people.
        target: name in `KnownGpu.systems`.
        tag: platform tag of its newest wheels.
    """

    id: str
    title: str
    target: str
    tag: str


SYSTEMS = (
    System("linux", "Linux, x86-64", "linux-x86_64", "manylinux_2_35_x86_64"),
    System("linux-arm", "Linux, 64-bit Arm", "linux-aarch64", "manylinux_2_35_aarch64"),
    System("windows", "Windows, x86-64", "windows-x86_64", "win_amd64"),
    System("macos", "macOS, Apple silicon", "macos-arm64", "macosx_14_0_arm64"),
)
"""With the C library of Ubuntu 22.04, or macOS 14."""


@dataclass(frozen=True)
class Machine:
    """A GPU with a driver.

    Attributes:
        key: facts of the GPU, a slash, and the name of the driver, if it is known.
        facts: of both.
    """

    key: str
    facts: str

    @property
    def vendor(self) -> str:
        """Namespace of its accelerator; ``apple``, or empty for none."""
        kinds = {"sm": "nvidia", "gfx": "amd", "intel": "intel"}
        word, _, value = self.key.partition("=")
        return kinds.get(word, "apple" if value.startswith("m1") else "")


def machines_of(system: System) -> list[Machine]:
    """Return all machines of *system*, each once."""
    found: dict[str, Machine] = {}
    for gpu in KNOWN_GPUS:
        if system.target in gpu.systems:
            drivers = [*gpu.known_drivers()] if _matters(gpu, system) else []
            unknown = gpu.assumed_driver()
            for driver in (*drivers, None):
                key = f"{gpu.facts}/{driver.name if driver else ''}"
                found.setdefault(key, Machine(key, gpu.machine(driver or unknown)))
    return [*found.values()]


def _matters(gpu: KnownGpu, system: System) -> bool:
    return gpu.drivers != "amd" or system.target.startswith("linux")


def signature(
    machine: Machine, wanted: Mapping[str, frozenset[str]]
) -> tuple[tuple[str, ...], ...]:
    """Return what *machine* supports of the *wanted* values, by feature, best first."""
    namespaces = _platform(machine.facts).namespaces
    return tuple(
        (f"{namespace}/{feature}", *(value for value in values if value in wanted[feature]))
        for namespace, support in sorted(namespaces.items())
        for feature, values in sorted(support.features.items())
        if feature in wanted
    )


def wanted_values(entries: Iterable[CatalogProject]) -> dict[str, frozenset[str]]:
    """Return the values that builds of *entries* need, by feature."""
    found: dict[str, set[str]] = {}
    for entry in entries:
        for item in entry.variants:
            for features in item.known_properties().values():
                for feature, values in features.items():
                    found.setdefault(feature, set()).update(values)
            for fault in item.broken:  # see `Fault.without`
                if fault.gpu.partition(".")[2].isdecimal():
                    major, minor = fault.gpu.split(".")
                    found.setdefault("sm_arch", set()).add(f"{major}{int(minor) + 1}_real")
    return {feature: frozenset(values) for feature, values in found.items()}


@cache
def _platform(facts: str) -> Platform:
    return load_machine(facts)


def platform(machine: Machine) -> Platform:
    """Return the supported values of *machine*."""
    return _platform(machine.facts)


def gpus_tree() -> list[dict[str, Any]]:
    """Return the GPUs for the page, one for each name."""
    found: dict[str, dict[str, Any]] = {}
    for gpu in KNOWN_GPUS:
        name = re.sub(r"[^a-z0-9]+", "-", re.sub(r"^(NVIDIA|AMD|Intel) ", "", gpu.name).lower())
        row = found.setdefault(
            name.strip("-"),
            {
                "id": name.strip("-"),
                "title": "No GPU" if gpu.name == "none" else gpu.name,
                "systems": {},
                "drivers": {},
            },
        )
        for system in SYSTEMS:
            if system.target in gpu.systems:
                row["systems"][system.id] = gpu.facts
                names = [driver.name for driver in gpu.known_drivers()]
                if names and _matters(gpu, system):
                    row["drivers"][system.id] = {"kind": gpu.drivers, "ids": [*reversed(names), ""]}
    return [*found.values()]


def drivers_tree() -> dict[str, Any]:
    """Return the kinds of drivers for the page."""
    return {
        kind: {
            "titles": {driver.name: driver.title for driver in _of_kind(kind)}
            | {"": "I don't know"},
            "unknown": UNKNOWN[kind],
            "seen_by": {
                system.id: command
                for system in SYSTEMS
                for target, command in SEEN_BY[kind].items()
                if target == system.target
            },
        }
        for kind in SEEN_BY
    }


def _of_kind(kind: str) -> Iterator[KnownDriver]:
    return (driver for driver in KNOWN_DRIVERS if driver.kind == kind)
