"""The platform key of this machine, or of the machine that a platform file describes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pep_variants import machines, safe_files
from pep_variants.machines import Platform
from variants_proxy import urls as proxy_urls
from variants_proxy.errors import InvalidKey
from variants_proxy.urls import Machine

if TYPE_CHECKING:
    from pep_variants.machines import Support
    from pep_variants.preferences import Preferences

    from ._context import Context
    from ._provider_plugins import Plugins
    from ._uv_lock import LockMachine

# Values of --python-platform, and the words of wheel tags for them.
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
class PlatformKey:
    """A machine's platform key and what belongs to it.

    Attributes:
        key: the machine's part of the URLs of a proxy.
        platforms: platform files that the proxy has to read, by name.
        platform: supported properties, and how they were found; None without variants.
        machine: that the key is for.
    """

    key: str
    platforms: Mapping[str, Path] = field(default_factory=dict)
    platform: Platform | None = None
    machine: Machine = field(default_factory=Machine, compare=False)


def platform_key(
    preferences: Preferences,
    cache: Path,
    *,
    python_platform: str | None = None,
    answers: Mapping[str, Support] | None = None,
    locked: LockMachine | None = None,
    python: str = "",
) -> PlatformKey:
    """Return the platform key of the machine that is installed for.

    Args:
        preferences: which variants are preferred or forced, and the platform file.
        cache: directory for a description that is too long for a URL.
        python_platform: value of uv's ``--python-platform``, for another machine than this one.
        answers: of plugins, by `provider_id`.
        locked: the machine that a lock is for, in place of this one.
        python: version of the Python that is installed for, see `Machine.python`.

    Raises:
        PlatformFileError: the platform file cannot be read.
        InvalidKey: the preferences do not fit into a URL.
    """
    target = target_of(python_platform) if python_platform else None
    if locked is not None:
        machine = locked.machine(preferences, target)
    else:
        machine = replace(proxy_urls.described_machine(preferences, target, answers), python=python)
    if not preferences.use_variants:
        return PlatformKey(proxy_urls.encode(machine), machine=machine)
    detected, stated = machine.detected, machine.platform
    platform = Platform({**detected.namespaces, **stated.namespaces})
    try:
        return PlatformKey(proxy_urls.encode(machine), platform=platform, machine=machine)
    except InvalidKey:
        found = _by_name(replace(machine, platform=platform, detected=Platform()), cache)
        return replace(found, machine=machine)


def machine_key(
    context: Context, plugins: Plugins | None, locked: LockMachine | None = None
) -> PlatformKey:
    """Return the platform key of the machine that a command installs for.

    Args:
        context: the command.
        plugins: with their answers.
        locked: the machine that a lock is for, in place of this one.
    """
    return platform_key(
        context.preferences,
        context.cache,
        python_platform=context.invocation.last("python-platform"),
        answers=plugins.answers if plugins is not None else None,
        locked=locked,
        python=context.environment_python,
    )


def target_of(python_platform: str) -> str:
    """Return the target for a value of ``--python-platform``, empty if there is none."""
    if python_platform in _DEFAULTS:
        return _DEFAULTS[python_platform]
    words = python_platform.lower().replace("_", "-").replace("x86-64", "x86_64").split("-")
    machine = next((_MACHINES[word] for word in words if word in _MACHINES), "")
    system = next((_SYSTEMS[word] for word in words if word in _SYSTEMS), "")
    if not system and any(word.startswith(("manylinux", "musllinux")) for word in words):
        system = "linux"
    return f"{system}-{machine}" if system and machine else ""


def _by_name(machine: Machine, cache: Path) -> PlatformKey:
    """Return a key that names a file with the platform of *machine*."""
    text = machines.write_platform(machine.platform, "uv-variants")
    name = f"local-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    folder = cache / "platforms"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f"{name}.toml"
    if not path.exists():
        with safe_files.replacing(path) as stream:
            stream.write(text.encode())
    key = proxy_urls.encode(replace(machine, name=name))
    return PlatformKey(key, {name: path}, machine.platform)
