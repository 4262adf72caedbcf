"""Marker environments of targets that are not the running Python (PEP 508)."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

LINUX = re.compile(r"(manylinux|musllinux)_(\d+)_(\d+)_(\w+)|(linux)_(\w+)")
"""Platform tags of Linux in the spelling of PEP 600."""
MACOS = re.compile(r"macosx_(\d+)_(\d+)_(\w+)")
LEGACY = {"manylinux2014": (2, 17), "manylinux2010": (2, 12), "manylinux1": (2, 5)}
"""Older spellings of manylinux tags: the version of glibc that each means."""
_WINDOWS = {"win_amd64": "AMD64", "win_arm64": "ARM64", "win32": "x86"}
_KEYS = ("os_name", "sys_platform", "platform_system", "platform_machine")


def modern_tag(platform: str) -> str:
    """Return a platform tag in the spelling of PEP 600."""
    legacy, _, machine = platform.partition("_")
    if legacy in LEGACY:
        major, minor = LEGACY[legacy]
        return f"manylinux_{major}_{minor}_{machine}"
    return platform


def system_markers(platform: str) -> dict[str, str] | None:
    """Return the marker variables that follow from a platform tag, None for an unknown tag.

    Release and version of the system do not follow from it; they are empty.

    >>> from pep_variants.machines import system_markers
    >>> system_markers("manylinux_2_28_x86_64")["platform_machine"]
    'x86_64'
    >>> system_markers("any") is None
    True
    """
    if match := LINUX.fullmatch(modern_tag(platform)):
        names = ("posix", "linux", "Linux", match[4] or match[6])
    elif match := MACOS.fullmatch(platform):
        names = ("posix", "darwin", "Darwin", match[3])
    elif platform in _WINDOWS:
        names = ("nt", "win32", "Windows", _WINDOWS[platform])
    else:
        return None
    markers = dict(zip(_KEYS, names, strict=True))
    return markers | {"platform_release": "", "platform_version": ""}


def target_environment(platforms: Sequence[str], python: Sequence[int]) -> dict[str, str]:
    """Return the marker environment of another target.

    Args:
        platforms: its platform tags, most preferred first; none for the system that this runs on.
            A tag that is not known leaves the variables as they are here.
        python: version of its Python, two or three numbers; a missing third is 0, as in pip and uv.

    >>> from pep_variants.machines import target_environment
    >>> environment = target_environment(["macosx_14_0_arm64"], (3, 13))
    >>> environment["python_version"], environment["sys_platform"]
    ('3.13', 'darwin')
    """
    from packaging.markers import default_environment

    environment = {key: str(value) for key, value in default_environment().items()}
    for platform in platforms:
        if markers := system_markers(platform):
            environment |= markers
            break
    if tuple(python) != sys.version_info[:3]:  # else it may be a pre-release
        version, full = (".".join(map(str, (*python, 0)[:count])) for count in (2, 3))
        environment |= {"python_version": version, "python_full_version": full}
        if environment["implementation_name"] == "cpython":
            environment["implementation_version"] = full
    return environment
