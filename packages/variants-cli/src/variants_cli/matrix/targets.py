"""The Python and the platform that a wheel is built for: what they are called, and what fits them.

Pythons are named as in wheel tags (PEP 425) and by cibuildwheel: ``cp312``, ``cp313t``, ``pp311``;
``3.12`` and ``3.13t`` are the same. Platforms are named by a platform tag, whole or without the
version: ``manylinux_2_28_x86_64`` or ``manylinux_x86_64``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from packaging.tags import Tag
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from pep_variants.model.label import split_label

_PYTHON = re.compile(r"(cp|pp|)(\d)\.?(\d{1,2})(t?)")
_PLATFORM = re.compile(
    r"(?P<family>manylinux|musllinux|linux|macosx|win)"
    r"(?:_(?P<major>\d+)_(?P<minor>\d+)|(?P<legacy>1|2010|2014))?"
    r"(?:_(?P<machine>[a-z0-9_]+)|(?P<win32>32))"
)
_LEGACY = {"1": (2, 5), "2010": (2, 12), "2014": (2, 17)}
"""glibc of the platform tags before PEP 600."""
_IMPLEMENTATIONS = {"cp": "CPython", "pp": "PyPy"}
_SYSTEMS = {"macosx": "darwin", "win": "win32"}
_MACHINES = {
    "x86_64": ("x86_64",),
    "amd64": ("AMD64", "x86_64"),
    "x86": ("AMD64", "x86_64", "x86"),
    "arm64": ("arm64", "ARM64"),
    "universal2": ("arm64", "x86_64"),
    "i686": ("i686", "x86_64"),
}
"""Values of `platform.machine` that can build for a machine, where its name is not the only one."""


@dataclass(frozen=True)
class Python:
    """A Python that wheels are built with.

    Attributes:
        implementation: ``cp`` or ``pp``.
        version: major and minor number.
        free_threaded: whether it is the build without the GIL.
    """

    implementation: str
    version: tuple[int, int]
    free_threaded: bool = False

    @property
    def tag(self) -> str:
        """Its name in cibuildwheel's identifiers, such as ``cp313t``."""
        major, minor = self.version
        return f"{self.implementation}{major}{minor}{'t' * self.free_threaded}"

    @property
    def request(self) -> str:
        """What ``uv python find`` takes for it."""
        major, minor = self.version
        name = "cpython" if self.implementation == "cp" else "pypy"
        return f"{name}@{major}.{minor}{'+freethreaded' if self.free_threaded else ''}"

    def fits(self, tag: Tag) -> bool:
        """Return whether a wheel with *tag* can have been built with it, and runs on it."""
        major, minor = self.version
        if tag.interpreter in (f"py{major}", f"py{major}{minor}"):
            return True
        if tag.abi == "abi3" and self.implementation == "cp" and not self.free_threaded:
            oldest = re.fullmatch(rf"cp{major}(\d+)", tag.interpreter)
            return oldest is not None and int(oldest[1]) <= minor
        if tag.interpreter != f"{self.implementation}{major}{minor}":
            return False
        if self.implementation == "cp" and tag.abi.startswith("cp"):
            return tag.abi.endswith("t") == self.free_threaded
        return True

    def __str__(self) -> str:
        """Return it in words."""
        major, minor = self.version
        name = _IMPLEMENTATIONS[self.implementation]
        return f"{name} {major}.{minor}{' free-threaded' * self.free_threaded}"


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
        if self.family == "win" and self.machine == "x86":
            return "win32"
        return f"{self.family}_{self.machine}"

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

    def can_build(self, system: str, machine: str) -> bool:
        """Return whether a machine can build for it, without a container.

        Args:
            system: its `sys.platform`.
            machine: its `platform.machine`.
        """
        return system == self.system and machine in _MACHINES.get(self.machine, (self.machine,))


def read_python(text: str) -> Python:
    """Return the Python named *text*.

    Raises:
        ValueError: it is not such a name.
    """
    match = _PYTHON.fullmatch(text)
    if match is None:
        raise ValueError("is not a Python such as '3.12', 'cp312', '3.13t' or 'pp311'")
    return Python(match[1] or "cp", (int(match[2]), int(match[3])), bool(match[4]))


def read_platform(text: str) -> Platform:
    """Return the platform named *text*.

    Raises:
        ValueError: it is not such a name.
    """
    match = _PLATFORM.fullmatch(text)
    if match is None or (match["win32"] and match["family"] != "win"):
        raise ValueError(
            "is not a platform such as 'manylinux_2_28_x86_64', 'manylinux_x86_64', "
            "'macosx_arm64' or 'win_amd64'"
        )
    version = _LEGACY.get(match["legacy"] or "")
    if match["major"]:
        version = int(match["major"]), int(match["minor"])
    return Platform(match["family"], match["machine"] or "x86", version)


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
