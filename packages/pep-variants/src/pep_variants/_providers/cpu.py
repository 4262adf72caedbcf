"""Base of the CPU providers: the detected CPU, and how it turns into supported values.

archspec knows the microarchitectures, their extensions and how to recognize them; it is imported
only when needed, as it costs tens of milliseconds.
"""

from __future__ import annotations

import logging
import os
import platform
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from .._model.platform import Fact
from .._model.property import NAME, Features
from .base import tried

if TYPE_CHECKING:
    from archspec.cpu import Microarchitecture

logger = logging.getLogger(__name__)

ON = ("on",)
"""The only value of a feature that stands for a CPU extension."""

_SOURCES = {"Linux": "/proc/cpuinfo", "Darwin": "sysctl", "Windows": "cpuid"}
"""Source that archspec reads, by `platform.system`."""
_MACHINE_TYPE = "the machine type that Python reports"


class Cpu(NamedTuple):
    """A CPU, in archspec's names.

    Attributes:
        name: the most specific microarchitecture that fits, e.g. ``haswell``, or a generic one.
        family: the root of its family, e.g. ``x86_64``.
        generics: the generic architectures it is compatible with, e.g. ``x86_64_v3``, any order.
        features: the extensions of that microarchitecture, e.g. ``avx2``.
    """

    name: str
    family: str
    generics: frozenset[str]
    features: frozenset[str]

    @classmethod
    def of(cls, target: Microarchitecture) -> Cpu:
        """Return archspec's description of *target*."""
        lineage = [target, *target.ancestors]
        return cls(
            target.name,
            target.family.name,
            frozenset(ancestor.name for ancestor in lineage if ancestor.vendor == "generic"),
            frozenset(target.features),
        )


def detected_cpu(family: str) -> Cpu | None:
    """Return the CPU of this machine, None when it is of another family or cannot be found out.

    Under Rosetta this is the real, Apple CPU, whatever the interpreter was built for.
    """
    system, machine = platform.system(), platform.machine()
    if system not in ("Darwin", "Windows") and machine != family:
        tried(_MACHINE_TYPE, f"is {machine}, not {family}")
        return None  # as archspec would say, tens of milliseconds later
    try:
        cpu = _host(family)
    except Exception as error:  # archspec lets errors of files, tools and instructions through
        logger.warning("The CPU cannot be identified, so no CPU variant is considered: %s", error)
        logger.debug("archspec failed", exc_info=True)
        return None
    return cpu if cpu.family == family else None


def _host(family: str) -> Cpu:
    """Return archspec's description of this machine; report it as the answer about *family*."""
    with _quiet():
        import archspec.cpu

        cpu = Cpu.of(archspec.cpu.host())
    _report(cpu, family)
    return cpu


def _report(cpu: Cpu, family: str) -> None:
    """Report what archspec takes the CPU for, where it was asked about *family*."""
    place = _SOURCES.get(platform.system(), _MACHINE_TYPE)
    if cpu.family != family:
        tried(place, f"shows a CPU of the family {cpu.family}")
    elif cpu.name == cpu.family:
        tried(place, "does not tell the model of the CPU")
        tried(_MACHINE_TYPE, f"is {platform.machine()}, all that is known", found=True)
    else:
        tried(place, f"shows a CPU that archspec takes for {cpu.name}", found=True)


def cpu_source(cpu: Cpu) -> str:
    """Return where archspec learns about the CPU of this machine, of which it said *cpu*."""
    # That a CPU belongs to its family is known without looking at it, and all that remains
    # where looking fails.
    source = "" if cpu.name == cpu.family else _SOURCES.get(platform.system(), "")
    return source or _MACHINE_TYPE


def known_cpus(family: str) -> list[Cpu]:
    """Return every microarchitecture of *family* that archspec knows."""
    with _quiet():
        import archspec.cpu

        targets = archspec.cpu.TARGETS.values()
        return [Cpu.of(target) for target in targets if target.family.name == family]


class CpuProvider:
    """Base of the providers of one CPU family.

    The first feature grades the generic architectures of the family, best first, with all that
    the CPU can run. Then comes one feature per extension the CPU has, in archspec's naming, with
    the value ``on``. Extensions are those of the microarchitecture that archspec recognized, as
    in the packages we stand in for: more flags in ``/proc/cpuinfo`` do not count.

    Their order is that of the class attribute `extensions`: more advanced ones first, so that of
    two builds the one using newer instructions wins. Extensions that the table does not list yet
    are newer than it and go before it, by name.
    """

    namespace: ClassVar[str]
    """The namespace; also archspec's name of the family."""
    grade: ClassVar[str]
    """Name of the first feature."""
    extensions: ClassVar[tuple[str, ...]]
    """Extensions, most preferred first."""

    def __init__(self, detect: Callable[[str], Cpu | None] = detected_cpu) -> None:
        """Set up; nothing is looked at yet.

        Args:
            detect: how to find a CPU of the family; the real thing unless a test says otherwise.
        """
        self._detect = detect

    def supported(self) -> Features:
        """Return the grades and extensions of this machine's CPU; empty on another family."""
        return self._features([self._cpu]) if self._cpu else {}

    def known(self) -> Features:
        """Return the grades and extensions of all CPUs of the family that archspec knows."""
        return self._features(known_cpus(self.namespace))

    def facts(self) -> tuple[Fact, ...]:
        """Return the best grade and, where it is known, the microarchitecture."""
        if self._cpu is None:
            return ()
        source = cpu_source(self._cpu)
        grade = Fact("CPU level", self._title(self._grades([self._cpu])[0]), source)
        if self._cpu.name in self._cpu.generics:
            return (grade,)
        return (grade, Fact("CPU", self._cpu.name, source))

    @classmethod
    def by_name(cls) -> dict[str, Cpu]:
        """Return the known CPUs of the family by the names that people write.

        They are archspec's with hyphens (``skylake-avx512``), and those of the grades
        (``x86-64-v3``, ``armv8.2-a``).
        """
        cpus: dict[str, Cpu] = {}
        for cpu in known_cpus(cls.namespace):
            cpus[cpu.name.replace("_", "-")] = cpu
            if (grade := cls._grade_of(cpu.name)) is not None:
                cpus[cls._title(grade)] = cpu
        return cpus

    @cached_property
    def _cpu(self) -> Cpu | None:
        return self._detect(self.namespace)

    def _features(self, cpus: Iterable[Cpu]) -> Features:
        extensions = {name for cpu in cpus for name in cpu.features if NAME.fullmatch(name)}
        unlisted = sorted(extensions.difference(self.extensions))
        ordered = [*unlisted, *(name for name in self.extensions if name in extensions)]
        return {self.grade: self._grades(cpus), **dict.fromkeys(ordered, ON)}

    def _grades(self, cpus: Iterable[Cpu]) -> tuple[str, ...]:
        names = {name for cpu in cpus for name in cpu.generics}
        grades = [grade for name in names if (grade := self._grade_of(name)) is not None]
        return tuple(sorted(grades, key=_numbers, reverse=True))

    @staticmethod
    def _grade_of(generic: str) -> str | None:
        """Return the value for archspec's *generic* architecture, None if it has no level."""
        raise NotImplementedError

    @staticmethod
    def _title(grade: str) -> str:
        """Return how people call *grade*."""
        raise NotImplementedError


def _numbers(value: str) -> list[int]:
    return [int(number) for number in re.findall("[0-9]+", value)]


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep archspec's warnings and, on macOS, the error output of its ``sysctl`` from the user."""
    with (
        warnings.catch_warnings(),
        _discarded_stderr() if platform.system() == "Darwin" else nullcontext(),
    ):
        warnings.simplefilter("ignore")
        yield


@contextmanager
def _discarded_stderr() -> Iterator[None]:
    """Send what this process and its children write to file descriptor 2 nowhere."""
    try:
        saved = os.dup(2)
    except OSError:  # closed: nothing can be seen anyway
        yield
        return
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 2)
        os.close(null)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
