"""The Python and the platform that a wheel is built for: what they are called, and what fits them.

Pythons are named as in wheel tags (PEP 425) and by cibuildwheel: ``cp312``, ``cp313t``; ``3.12``
and ``3.13t`` are the same. Platforms are named by a platform tag, whole or without the
version: ``manylinux_2_28_x86_64`` or ``manylinux_x86_64``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from packaging.tags import Tag, compatible_tags, cpython_tags, platform_tags
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from pep_variants import split_label
from pep_variants.internal import modern_tag

_PYTHON = re.compile(r"(?:cp)?(\d)\.?(\d{1,2})(t?)")
_PLATFORM = re.compile(r"(manylinux|musllinux|linux|macosx|win)(?:_(\d+)_(\d+))?_([a-z0-9_]+)")
_SYSTEMS = {"macosx": "darwin", "win": "win32"}


@dataclass(frozen=True)
class Python:
    """A CPython that wheels are built with.

    Attributes:
        version: major and minor number.
        free_threaded: whether it is the build without the GIL.
    """

    version: tuple[int, int]
    free_threaded: bool = False

    @property
    def request(self) -> str:
        """What uv takes for it."""
        return "cpython@{}.{}".format(*self.version) + "+freethreaded" * self.free_threaded

    def __str__(self) -> str:
        """Return its name in cibuildwheel's identifiers, such as ``cp313t``."""
        return "cp{}{}".format(*self.version) + "t" * self.free_threaded

    def fits(self, tag: Tag) -> bool:
        """Return whether a wheel with *tag* can have been built with it, and runs on it."""
        own = cpython_tags(self.version, [str(self)], ["any"])
        other = compatible_tags(self.version, str(self).rstrip("t"), ["any"])
        return Tag(tag.interpreter, tag.abi, "any") in (*own, *other)


@dataclass(frozen=True)
class Platform:
    """A platform that wheels are built for.

    Attributes:
        family: ``manylinux``, ``musllinux``, ``linux``, ``macosx`` or ``win``.
        machine: as in platform tags; ``x86`` for 32-bit Windows.
        version: of the C library or of macOS that wheels may ask for at most, None for any.
    """

    family: str
    machine: str
    version: tuple[int, int] | None = None

    @property
    def system(self) -> str:
        """Its value of `sys.platform`."""
        return _SYSTEMS.get(self.family, "linux")

    @property
    def tag(self) -> str:
        """Its name in cibuildwheel's identifiers, without the version."""
        return f"{self.family}_{self.machine}".replace("win_x86", "win32")

    @property
    def image(self) -> str:
        """The name of cibuildwheel's image for it, empty for its default one."""
        if self.system != "linux" or self.version is None:
            return ""
        major, minor = self.version
        name = f"{self.family}_{major}_{minor}"
        return "manylinux2014" if name == "manylinux_2_17" else name

    def __str__(self) -> str:
        """Return it as a platform tag, with the version if it has one."""
        version = "".join(f"_{number}" for number in self.version or ())
        return self.tag.replace(self.family, f"{self.family}{version}", 1)

    def fits(self, tag: Tag) -> bool:
        """Return whether a wheel with *tag* is for it; those for any platform are."""
        if tag.platform == "any":
            return True
        try:
            other = read_platform(tag.platform)
        except ValueError:
            return False
        if other.family != self.family or other.machine not in (self.machine, "universal2"):
            return False
        return self.version is None or other.version is None or other.version <= self.version

    def is_here(self) -> bool:
        """Return whether this machine builds for it, without a container."""
        found = map(_match, platform_tags())
        return any(match and (match[1], match[4]) == (self.family, self.machine) for match in found)


def read_python(text: str) -> Python:
    """Return the Python named *text*.

    Raises:
        ValueError: it is not such a name.
    """
    match = _PYTHON.fullmatch(text)
    if match is None:
        raise ValueError("is not a Python such as '3.12', 'cp312' or '3.13t'")
    return Python((int(match[1]), int(match[2])), bool(match[3]))


def read_platform(text: str) -> Platform:
    """Return the platform named *text*.

    Raises:
        ValueError: it is not such a name.
    """
    match = _match(text)
    if match is None:
        raise ValueError(
            "is not a platform such as 'manylinux_2_28_x86_64', 'manylinux_x86_64', "
            "'macosx_arm64' or 'win_amd64'"
        )
    family, major, minor, machine = match.groups()
    return Platform(family, machine, (int(major), int(minor)) if major else None)


def _match(tag: str) -> re.Match[str] | None:
    return _PLATFORM.fullmatch("win_x86" if tag == "win32" else modern_tag(tag))


def is_built_for(filename: str, python: Python | None, platform: Platform | None) -> bool:
    """Return whether the wheel *filename*, with or without a label, is for *python* and *platform*.

    What is None fits every wheel.
    """
    try:
        tags = parse_wheel_filename(split_label(filename)[0])[3]
    except InvalidWheelFilename:
        return False
    return any(
        (python is None or python.fits(tag)) and (platform is None or platform.fits(tag))
        for tag in tags
    )
