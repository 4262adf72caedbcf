"""Platforms by name (``linux-x86_64``), for which only the system and CPU are known.

Which wheels are for a platform, its marker environment, and which wheels can replace others. Only
tags are compared: an installer decides whether a wheel can be installed. A `target.Target` has all
tags of one machine and Python instead.
"""

from __future__ import annotations

import re
from functools import lru_cache

from pep_variants.internal import LINUX, MACOS, modern_tag, system_markers

_ANY_SYSTEM = "any"
_CPYTHON = re.compile(r"cp(\d)(\d+)")
_WINDOWS = {"win_amd64": "x86_64", "win32": "i686", "win_arm64": "aarch64"}
_MACS = {
    "x86_64": ("x86_64",),
    "arm64": ("aarch64",),
    "universal2": ("x86_64", "aarch64"),
    "universal": ("x86_64", "i686"),
    "intel": ("x86_64", "i686"),
}


@lru_cache(maxsize=4096)
def is_for_platform(tags: str, platform: str) -> bool:
    """Return whether wheels with a platform tag are for *platform*.

    Args:
        tags: the platform tag of a wheel's filename, or several with dots between.
        platform: system and CPU, ``linux-x86_64``; ``any`` for an unknown system; empty for all
            platforms.
    """
    if not platform:
        return True
    system, _, machine = platform.partition("-")
    return any(_is_for(tag, system, machine) for tag in tags.split("."))


def _is_for(tag: str, system: str, machine: str) -> bool:
    if tag == "any":
        return True
    if system == _ANY_SYSTEM:
        return any(_is_for(tag, name, machine) for name in ("linux", "win", "macosx"))
    if system == "linux":
        return tag.startswith(("manylinux", "musllinux", "linux")) and tag.endswith(f"_{machine}")
    if system == "win":
        return _WINDOWS.get(tag) == machine
    if system == "macosx":
        match = MACOS.fullmatch(tag)
        return match is not None and machine in _MACS.get(match[3], (match[3],))
    return tag.startswith(f"{system}_")


@lru_cache(maxsize=256)
def platform_of_namespaces(namespaces: tuple[str, ...]) -> str:
    """Return the platform that supported namespaces imply, empty if they do not.

    Args:
        namespaces: those of which a property is supported, ascending.
    """
    families = [name for name in namespaces if name in ("x86_64", "aarch64")]
    return f"{_ANY_SYSTEM}-{families[0]}" if len(families) == 1 else ""


def environment_of(platform: str) -> dict[str, str]:
    """Return the marker environment of *platform* (PEP 508), the same on every machine.

    The version of Python is not known: it is the one that nearly all wheels support.
    """
    system, _, machine = (platform or "linux-x86_64").partition("-")
    tag = f"linux_{machine}"
    if system == "win":
        tag = {family: name for name, family in _WINDOWS.items()}.get(machine, "win_amd64")
    elif system == "macosx":
        tag = f"macosx_11_0_{'arm64' if machine == 'aarch64' else machine}"
    return {
        "implementation_name": "cpython",
        "implementation_version": "3.12.0",
        "python_full_version": "3.12.0",
        "platform_python_implementation": "CPython",
        "python_version": "3.12",
        **(system_markers(tag) or {}),
    }


@lru_cache(maxsize=65536)
def covers(tags: str, others: str) -> bool:
    """Return whether *tags* can be installed wherever *others* can.

    Args:
        tags: the last three parts of a plain wheel filename, ``py3-none-any``.
        others: those of another wheel.
    """
    pythons, abis, platforms = (part.split(".") for part in tags.split("-"))
    other_pythons, other_abis, other_platforms = (part.split(".") for part in others.split("-"))
    # Installers that use the proxy run on Python 3.
    other_pythons = [name for name in other_pythons if name[2:3] != "2"] or other_pythons
    return all(
        any(_platform_covers(one, other) for one in platforms) for other in other_platforms
    ) and all(
        any(_abi_covers(one, this, other, that) for one in pythons for this in abis)
        for other in other_pythons
        for that in other_abis
    )


def _platform_covers(tag: str, other: str) -> bool:
    if tag in (other, "any"):
        return True
    if tag.startswith("linux_"):  # every libc
        libc = _libc(other)
        return libc is not None and libc[2] == tag.removeprefix("linux_")
    if (one := _libc(tag)) and (two := _libc(other)):
        return one[0] == two[0] and one[2] == two[2] and one[1] <= two[1]
    if (mac := MACOS.fullmatch(tag)) and (mac2 := MACOS.fullmatch(other)):
        older = (int(mac[1]), int(mac[2])) <= (int(mac2[1]), int(mac2[2]))
        machines = set(_MACS.get(mac2[3], (mac2[3],)))
        return older and machines <= set(_MACS.get(mac[3], (mac[3],)))
    return False


def _libc(tag: str) -> tuple[str, tuple[int, int], str] | None:
    match = LINUX.fullmatch(modern_tag(tag))
    if match is None or match[1] is None:
        return None
    return match[1], (int(match[2]), int(match[3])), match[4]


def _abi_covers(python: str, abi: str, other_python: str, other_abi: str) -> bool:
    if (python, abi) == (other_python, other_abi):
        return True
    one, two = _CPYTHON.fullmatch(python), _CPYTHON.fullmatch(other_python)
    not_newer = (
        one is not None
        and two is not None
        and one[1] == two[1]
        and int(one[2]) <= int(two[2])
    )  # fmt: skip
    if abi == "none":
        if python == "py3" or (python == "py2" and other_python.startswith(("py2", "cp2"))):
            return other_python.startswith(("cp3", "py3", "pp3")) or python == "py2"
        return python == other_python
    if abi == "abi3":
        # No limited API without the GIL; an older minimum covers a newer one.
        plain = two is not None and other_abi in (other_python, "abi3", "none")
        return not_newer and plain
    return False
