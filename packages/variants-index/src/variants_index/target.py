"""Targets: marker environment, wheel tags and platform of the machine that is resolved for.

A target file is a platform file with one more table, or without it:

    [target]
    python-version = "3.12"                   # default: the running Python's
    platform = "manylinux_2_28_x86_64"        # default: this machine; or a list, a name of `NAMES`
    abi = "cp312"                             # default: what follows from the others
    name = "h100"                             # default: the file's name

    [[provider]]                              # see `pep_variants._model.platform`
    namespace = "nvidia"
    …

Where only system and CPU are known (``linux-x86_64``), tags alone are compared: which wheels are
for such a platform, its marker environment, and which wheels can replace others.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path

from packaging.markers import default_environment
from packaging.specifiers import SpecifierSet
from packaging.tags import (
    Tag,
    compatible_tags,
    cpython_tags,
    generic_tags,
    interpreter_name,
    mac_platforms,
    sys_tags,
)

from pep_variants import limits, machines, safe_files
from pep_variants.errors import shortened
from pep_variants.machines import Platform

from ._errors import TargetError

__all__ = [
    "MACS", "WINDOWS", "Target", "covers", "environment_of", "host_target", "is_for_platform",
    "load_target", "make_target", "meets_python", "platform_of_namespaces", "platform_tag",
    "read_target",
]  # fmt: skip

NAMES = {
    "linux": "manylinux_2_28_x86_64",
    "linux-x86_64": "manylinux_2_28_x86_64",
    "linux-aarch64": "manylinux_2_28_aarch64",
    "macos": "macosx_14_0_arm64",
    "macos-arm64": "macosx_14_0_arm64",
    "macos-x86_64": "macosx_14_0_x86_64",
    "windows": "win_amd64",
    "windows-x86_64": "win_amd64",
    "windows-arm64": "win_arm64",
}
"""Short names of common platforms; any other name is a platform tag."""

_KEYS = ("python-version", "platform", "abi", "name")
_PYTHON = re.compile(r"\d+\.\d+(\.\d+)?")
_OLDEST = {"x86_64": 5, "i686": 5}

_ANY_SYSTEM = "any"
_CPYTHON = re.compile(r"cp(\d)(\d+)")
WINDOWS = {"win_amd64": "x86_64", "win32": "i686", "win_arm64": "aarch64"}
"""CPU of each platform tag of Windows, in the spelling of Linux."""

MACS = {
    "x86_64": ("x86_64",),
    "arm64": ("aarch64",),
    "universal2": ("x86_64", "aarch64"),
    "universal": ("x86_64",),
    "intel": ("x86_64",),
}
"""CPUs of platform tags of macOS: no supported Python runs on a 32-bit one."""


@dataclass(frozen=True)
class Target:
    """A machine and its Python.

    Attributes:
        name: for messages.
        environment: values of marker variables (PEP 508).
        tags: wheel tags, most preferred first.
        platform: supported properties from a platform file, None to detect them.
        here: whether it is this machine, possibly with another Python.
    """

    name: str
    environment: Mapping[str, str]
    tags: Sequence[Tag] = field(repr=False)
    platform: Platform | None = field(default=None, repr=False)
    here: bool = False

    @property
    def python(self) -> str:
        """The full version of its Python, without the ``+`` of development builds."""
        return self.environment["python_full_version"].rstrip("+")

    @cached_property
    def places(self) -> Mapping[Tag, int]:
        """Position of each tag, 0 is the most preferred."""
        return {tag: place for place, tag in reversed([*enumerate(self.tags)])}

    @cached_property
    def systems(self) -> frozenset[str]:
        """Platform tags of the wheels that it can use."""
        return frozenset(tag.platform for tag in self.tags)

    @property
    def system(self) -> str:
        """Its system and architecture in words: ``musllinux x86_64``."""
        systems = [tag.platform for tag in self.tags if tag.platform != _ANY_SYSTEM]
        for tag in systems:
            if (linux := machines.LINUX.fullmatch(machines.modern_tag(tag))) and linux[1]:
                return f"{linux[1]} {linux[4]}"
            if mac := machines.MACOS.fullmatch(tag):
                return f"macOS {mac[3]}"
        return systems[0] if systems else "any system"

    @property
    def interpreter(self) -> str:
        """Its Python in words: ``Python 3.12``."""
        return f"Python {self.environment['python_version']}"

    @property
    def marker(self) -> str:
        """A marker that is true in this environment, and false in different ones."""
        env = self.environment
        return (
            f"implementation_name == '{env['implementation_name']}' "
            f"and platform_machine == '{env['platform_machine']}' "
            f"and python_version == '{env['python_version']}' "
            f"and sys_platform == '{env['sys_platform']}'"
        )


def host_target(platform: Platform | None = None) -> Target:
    """Return this machine with the running Python."""
    environment = {key: str(value) for key, value in default_environment().items()}
    return Target("this machine", environment, tuple(sys_tags()), platform, here=True)


def make_target(
    *,
    python_version: str | None = None,
    platforms: Sequence[str] = (),
    abi: str | None = None,
    name: str = "",
    platform: Platform | None = None,
) -> Target:
    """Return the target with these properties, by default those of this machine.

    Args:
        python_version: ``3.12`` or ``3.12.4``.
        platforms: platform tags, most preferred first, or names of `NAMES`. Those that are
            implied (older manylinux, older macOS) are added.
        abi: ABI tag, e.g. ``cp313t``.
        name: for messages.
        platform: supported properties, None to detect them.

    Raises:
        TargetError: a value is invalid.

    >>> from variants_index.target import make_target
    >>> target = make_target(python_version="3.12", platforms=["manylinux_2_28_x86_64"])
    >>> target.environment["python_version"], target.environment["sys_platform"]
    ('3.12', 'linux')
    >>> str(target.tags[0])
    'cp312-cp312-manylinux_2_28_x86_64'
    """
    if not (python_version or platforms or abi):
        here = host_target(platform)
        return replace(here, name=name) if name else here
    python: tuple[int, ...] = sys.version_info[:3]
    if python_version is not None:
        if not _PYTHON.fullmatch(python_version):
            raise TargetError(
                f"{shortened(python_version)} is not a valid python-version: write it like 3.12"
            )
        python = tuple(map(int, python_version.split(".")))
    systems = [NAMES.get(given, given) for given in platforms]
    if systems and machines.system_markers(systems[0]) is None:
        raise TargetError(
            f"platform {shortened(platforms[0])} is not known: name a platform tag such as "
            f"manylinux_2_28_x86_64, macosx_14_0_arm64 or win_amd64, or one of {', '.join(NAMES)}"
        )
    environment = machines.target_environment(systems, python)
    tags_of = [tag for system in systems for tag in _expanded(system)]
    tags = _tags(python[:2], environment["implementation_name"], abi, tags_of or None)
    described = f"Python {environment['python_version']} on {', '.join(platforms) or sys.platform}"
    return Target(
        name or described, environment, tuple(dict.fromkeys(tags)), platform, here=not platforms
    )


def load_target(
    path: Path, *, python_version: str | None = None, platforms: Sequence[str] = ()
) -> Target:
    """Read a target file, or a platform file.

    Args:
        path: of the file.
        python_version: for a file without one.
        platforms: for a file without one.

    Raises:
        TargetError: it cannot be read, or is invalid.
        PlatformFileError: its ``[[provider]]`` tables are invalid.
    """
    try:
        data = safe_files.read_regular(path, limits.SETTINGS_BYTES).data
        tree = safe_files.read_toml(data.decode())
    except OSError as error:
        raise TargetError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise TargetError(f"{path}: not valid TOML: {error}") from None
    # The platform file of a machine that supports nothing has [metadata] alone.
    described = "provider" in tree or "metadata" in tree
    platform = machines.read_platform(data, str(path)) if described else None
    table = tree.get("target", {})
    if not isinstance(table, dict):
        raise TargetError(f"{path}: target: expected a table, found {shortened(table)}")
    for key, value in table.items():
        if key not in _KEYS:
            raise TargetError(f"{path}: target.{key}: unknown key; the keys are {', '.join(_KEYS)}")
        several = key == "platform" and isinstance(value, list)
        if not all(isinstance(item, str) for item in (value if several else [value])):
            raise TargetError(f"{path}: target.{key}: expected text, found {shortened(value)}")
    given = table.get("platform", list(platforms))
    try:
        return make_target(
            python_version=table.get("python-version", python_version),
            platforms=[given] if isinstance(given, str) else given,
            abi=table.get("abi"),
            name=table.get("name", path.stem),
            platform=platform,
        )
    except TargetError as error:
        raise TargetError(f"{path}: target: {error}") from None


def read_target(
    machine: str, *, python_version: str | None = None, platforms: Sequence[str] = ()
) -> Target:
    """Return the target that an option names: a target file, or a machine.

    Args:
        machine: path of a file as in `load_target`; name or facts of a machine, see `load_machine`.
        python_version: for a machine, or a file without one.
        platforms: the same. Without them the system of a machine is this one if its CPU can run
            it, else Linux, or macOS for Apple's machines.

    Raises:
        TargetError: as `load_target`.
        PlatformFileError: there is no such machine, or its file is invalid.

    >>> from variants_index.target import read_target
    >>> target = read_target("cuda=12.8,sm=9.0", python_version="3.12", platforms=["linux_x86_64"])
    >>> target.platform.namespaces["nvidia"].features["sm_arch"][:2]
    ('90_real', '90_virtual')
    """
    path = Path(machine)
    if machines.names_file(machine) and (path.exists() or path.suffix == ".toml"):
        return load_target(path, python_version=python_version, platforms=platforms)
    platform = machines.load_machine(machine)
    return make_target(
        python_version=python_version,
        platforms=platforms or _system_of(machine, platform),
        name=machine,
        platform=platform,
    )


def _system_of(machine: str, platform: Platform) -> tuple[str, ...]:
    """Return the name in `NAMES` of what runs on a machine, nothing if this system does."""
    families = [name for name in ("x86_64", "aarch64") if platform.support(name).features]
    if machine.startswith("apple-"):
        wanted = "macos-arm64"
    elif families:
        wanted = f"linux-{families[0]}"
    else:
        return ()
    here = default_environment()["platform_machine"].lower()
    family = {"amd64": "x86_64", "arm64": "aarch64"}.get(here, here)
    mac = sys.platform == "darwin"
    same = families[0] == family and mac == wanted.startswith("macos")
    return () if same else (wanted,)


def _expanded(platform: str) -> list[str]:
    """Return *platform* and all platform tags whose wheels it can use, best first."""
    match = machines.LINUX.fullmatch(machines.modern_tag(platform))
    if match and match[1] == "manylinux":
        major, newest, machine = int(match[2]), int(match[3]), match[4]
        found = []
        for minor in range(newest, _OLDEST.get(machine, 17) - 1, -1):
            found.append(f"manylinux_{major}_{minor}_{machine}")
            found += [
                f"{name}_{machine}" for name, at in machines.LEGACY.items() if at == (major, minor)
            ]
        return [*found, f"linux_{machine}"]
    if match and match[1] == "musllinux":
        major, newest, machine = int(match[2]), int(match[3]), match[4]
        found = [f"musllinux_{major}_{minor}_{machine}" for minor in range(newest, -1, -1)]
        return [*found, f"linux_{machine}"]
    if match := machines.MACOS.fullmatch(platform):
        return list(mac_platforms((int(match[1]), int(match[2])), match[3]))
    return [platform]


def _tags(
    version: tuple[int, ...], implementation: str, abi: str | None, platforms: list[str] | None
) -> list[Tag]:
    digits = f"{version[0]}{version[1]}"
    if implementation == "cpython":
        abis = [abi] if abi else None if version == sys.version_info[:2] else [f"cp{digits}"]
        interpreter = f"cp{digits}"
        found = [*cpython_tags(version, abis, platforms)]
    else:  # that of the running Python
        interpreter = f"{interpreter_name()}{digits}"
        found = [*generic_tags(interpreter, [abi] if abi else ["none"], platforms)]
    return [*found, *compatible_tags(version, interpreter, platforms)]


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
        return WINDOWS.get(tag) == machine
    if system == "macosx":
        match = machines.MACOS.fullmatch(tag)
        return match is not None and machine in MACS.get(match[3], (match[3],))
    return tag.startswith(f"{system}_")


@lru_cache(maxsize=4096)
def meets_python(specifier: str | None, version: str) -> bool:
    """Return whether a version of Python meets a ``Requires-Python`` value, None for no such value.

    An invalid specifier is met, as in pip.
    """
    try:
        return SpecifierSet(specifier or "").contains(version, prereleases=True)
    except ValueError:  # also what `int` says of thousands of digits
        return True


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

    >>> from variants_index.target import environment_of
    >>> environment_of("macosx-aarch64")["platform_machine"]
    'arm64'
    """
    return {
        "implementation_name": "cpython",
        "implementation_version": "3.12.0",
        "python_full_version": "3.12.0",
        "platform_python_implementation": "CPython",
        "python_version": "3.12",
        **(machines.system_markers(platform_tag(platform or "linux-x86_64")) or {}),
    }


def platform_tag(platform: str) -> str:
    """Return a platform tag of wheels for *platform*, of Linux for an unknown system.

    Empty for an empty one.

    >>> from variants_index.target import platform_tag
    >>> platform_tag("macosx-aarch64"), platform_tag("any-x86_64")
    ('macosx_11_0_arm64', 'linux_x86_64')
    """
    system, _, machine = platform.partition("-")
    if system == "win":
        return {family: name for name, family in WINDOWS.items()}.get(machine, "win_amd64")
    if system == "macosx":
        return f"macosx_11_0_{'arm64' if machine == 'aarch64' else machine}"
    return f"linux_{machine}" if machine else ""


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
    if (mac := machines.MACOS.fullmatch(tag)) and (mac2 := machines.MACOS.fullmatch(other)):
        older = (int(mac[1]), int(mac[2])) <= (int(mac2[1]), int(mac2[2]))
        architectures = set(MACS.get(mac2[3], (mac2[3],)))
        return older and architectures <= set(MACS.get(mac[3], (mac[3],)))
    return False


def _libc(tag: str) -> tuple[str, tuple[int, int], str] | None:
    match = machines.LINUX.fullmatch(machines.modern_tag(tag))
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
        every = python == "py3" and other_python.startswith(("cp3", "py3", "pp3"))
        return every or python == other_python
    if abi == "abi3":
        # No limited API without the GIL; an older minimum covers a newer one.
        plain = two is not None and other_abi in (other_python, "abi3", "none")
        return not_newer and plain
    return False
