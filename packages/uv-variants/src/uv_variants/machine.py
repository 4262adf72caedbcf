"""For whom is chosen: this machine or the one of a platform file, and its platform key."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from .shim.key import Machine, encode, host_target

if TYPE_CHECKING:
    from pep_variants.platform import Platform
    from pep_variants.preferences import Preferences

# Words that uv has for other machines (--python-platform), and what wheel tags call them.
_SYSTEMS = {"linux": "linux", "windows": "win", "macos": "macosx", "darwin": "macosx"}
_MACHINES = {
    "x86_64": "x86_64",
    "x8664": "x86_64",
    "aarch64": "aarch64",
    "arm64": "aarch64",
    "i686": "i686",
}
_DEFAULTS = {"linux": "linux-x86_64", "windows": "win-x86_64", "macos": "macosx-aarch64"}


@dataclass(frozen=True)
class Subject:
    """A machine, as the shim is told of it.

    Attributes:
        key: platform key.
        platforms: platform files that the shim has to know, by name.
        platform: what it supports, and how that was found out; None if nobody asked.
    """

    key: str
    platforms: Mapping[str, Path] = field(default_factory=dict)
    platform: Platform | None = None


def subject_of(
    preferences: Preferences,
    cache: Path,
    *,
    python_platform: str | None = None,
    more: Platform | None = None,
) -> Subject:
    """Return for whom is chosen.

    Args:
        preferences: what was asked for.
        cache: directory where a description is kept that is too long for a URL.
        python_platform: value of uv's ``--python-platform``: the machine is another one.
        more: support of further namespaces, from plugins.

    Raises:
        PlatformFileError: the platform file cannot be read.
        InvalidKey: the preferences do not fit into a URL.
    """
    from pep_variants.platform import Platform

    if not preferences.use_variants:
        return Subject(encode(Machine(preferences=preferences)))
    target = target_of(python_platform) if python_platform else host_target()
    stated, detected = more or Platform(), Platform()
    if preferences.platform_file is not None:
        from pep_variants.platform import load_platform

        stated = load_platform(preferences.platform_file)
    elif not python_platform or target == host_target():
        # Otherwise looking at this machine says nothing about that one.
        from pep_variants.detection import Detector

        detected = Detector(enabled=preferences.enable).host()
    machine = Machine(stated, target=target, preferences=preferences, detected=detected)
    platform = Platform({**detected.namespaces, **stated.namespaces})
    from .errors import InvalidKey

    try:
        return Subject(encode(machine), platform=platform)
    except InvalidKey:
        return _by_name(replace(machine, platform=platform, detected=Platform()), cache)


def target_of(python_platform: str) -> str:
    """Return the target that uv's word for a platform means, empty if it has none."""
    if python_platform in _DEFAULTS:
        return _DEFAULTS[python_platform]
    words = python_platform.lower().replace("_", "-").replace("x86-64", "x86_64").split("-")
    machine = next((_MACHINES[word] for word in words if word in _MACHINES), "")
    system = next((_SYSTEMS[word] for word in words if word in _SYSTEMS), "")
    if not system and any(word.startswith(("manylinux", "musllinux")) for word in words):
        system = "linux"
    return f"{system}-{machine}" if system and machine else ""


def _by_name(machine: Machine, cache: Path) -> Subject:
    """Return *machine* with its platform in a file: the same file for the same platform."""
    import hashlib

    from pep_variants.platform import write_platform

    text = write_platform(machine.platform, "uv-variants")
    name = f"local-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    folder = cache / "platforms"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f"{name}.toml"
    if not path.exists():
        unfinished = path.with_suffix(f".{os.getpid()}")
        unfinished.write_text(text, "utf-8")
        unfinished.replace(path)
    key = encode(replace(machine, name=name))
    return Subject(key, {name: path}, machine.platform)
