"""What archspec says of the CPU, kept in the user's caches.

archspec reads 126 kB of JSON to compare this CPU with all others: 27 million instructions (7 ms)
of every command and every pip that looks at a CPU. What it says depends on its own files and, on
Linux, on ``/proc/cpuinfo`` and the machine type alone. All of that stands in the record, and has to
be equal when it is read. On other systems archspec runs a program or instructions: it is asked.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ...cache_directory import cache_directory
from ...errors import VariantError
from ...files import read_regular, replacing
from ...ownership import check_private, make_private

if TYPE_CHECKING:
    from archspec.cpu import Microarchitecture

_FORMAT = "pep-variants: CPU 1"
_RECORDS = 16
"""So many there are at most, for the CPUs and environments that share a home directory."""
_BYTES = 64 * 1024
"""The most that a record has; real ones have 3 KiB."""
_CHANGING = ("cpu MHz",)
"""What ``/proc/cpuinfo`` says of the moment; archspec does not look at it."""
_ENVIRONMENT = ("ARCHSPEC_CPU_DIR", "ARCHSPEC_EXTENSION_CPU_DIR")
"""Variables that give archspec other files."""
_NAME = re.compile(r"[0-9A-Za-z_.+-]+")


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
        """Return what archspec says of *target*."""
        lineage = [target, *target.ancestors]
        return cls(
            target.name,
            target.family.name,
            frozenset(each.name for each in lineage if each.vendor == "generic"),
            frozenset(target.features),
        )


def system_and_machine() -> tuple[str, str]:
    """Return what `platform` says of both; on Linux without importing it, which takes 2 ms."""
    if sys.platform == "linux" and "platform" not in sys.modules:
        uname = os.uname()
        return uname.sysname, uname.machine
    import platform

    return platform.system(), platform.machine()


def kept(ask: Callable[[], Cpu]) -> Cpu:
    """Return what *ask* returned for this CPU before, else what it returns now, and keep that.

    A record that is not there, damaged, or that another user could have written does not count.
    """
    key = _key()
    if key is None:
        return ask()
    path = cache_directory(os.environ, "cpu") / str(sum(key.encode()) % _RECORDS)
    try:
        content = read_regular(path, _BYTES)
        check_private(path, content.status)
        if (cpu := _parsed(content.data.decode(), key)) is not None:
            return cpu
    except (OSError, ValueError, VariantError):
        pass
    cpu = ask()
    text = _text(key, cpu)
    if _parsed(text, key) == cpu:
        _write(path, text)
    return cpu


def _key() -> str | None:
    """Return all that decides what archspec says, None where nothing is kept."""
    system, machine = system_and_machine()
    if system != "Linux" or any(name in os.environ for name in _ENVIRONMENT):
        return None
    import archspec

    try:
        # Its version, and for those who edit its data in place the time.
        data = Path(archspec.__file__).with_name("json") / "cpu" / "microarchitectures.json"
        status = data.stat()
        cpuinfo = _first_cpu()
    except (OSError, ValueError):  # in a zip file, or no /proc
        return None
    if not cpuinfo:
        return None
    version = f"archspec {archspec.__version__} {status.st_size} {status.st_mtime_ns}"
    return "\n".join((_FORMAT, version, machine, *cpuinfo))


def _first_cpu() -> list[str]:
    """Return the lines of the first CPU, which are all that archspec reads."""
    lines: list[str] = []
    with open("/proc/cpuinfo") as file:  # noqa: PTH123 - as archspec opens it
        for line in file:
            if ":" not in line and lines:
                break
            if not line.startswith(_CHANGING):
                lines.append(line.strip())
    return [line for line in lines if line]


def _text(key: str, cpu: Cpu) -> str:
    generics, features = " ".join(sorted(cpu.generics)), " ".join(sorted(cpu.features))
    return f"{key}\n\n{cpu.name}\n{cpu.family}\n{generics}\n{features}\n"


def _parsed(text: str, key: str) -> Cpu | None:
    """Return the CPU of the record *text*, None if it is of another *key* or damaged."""
    found, _, rest = text.partition("\n\n")
    lines = rest.split("\n")
    if found != key or len(lines) != 5 or lines[-1]:
        return None
    (name,), (family,), generics, features = (line.split(" ") for line in lines[:4])
    if features == [""]:  # of a generic architecture
        features = []
    if not all(map(_NAME.fullmatch, (name, family, *generics, *features))):
        return None
    if family not in generics:
        return None
    return Cpu(name, family, frozenset(generics), frozenset(features))


def _write(path: Path, text: str) -> None:
    """Write the record; where the directory is not the user's own, or not writable, do nothing."""
    with suppress(OSError, VariantError):
        there = next(folder for folder in path.parents if folder.exists())
        # As root with another user's HOME: a directory of root's would lock that user out.
        if not hasattr(os, "geteuid") or there.stat().st_uid != os.geteuid():
            return
        make_private(path.parent)
        with replacing(path, mode=0o600) as stream:
            stream.write(text.encode())
