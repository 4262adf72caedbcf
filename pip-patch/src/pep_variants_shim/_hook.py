"""The import hook: patches pip's modules as they are imported.

`PATCHES` is the one table of what is patched, for all versions of pip alike. Names and
parameters are checked when a module is patched, never the version of pip. Nothing of pip is changed
on disk, so uninstalling the shim undoes everything.
"""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, Any

from . import BUILT_IN, LOCAL
from ._guard import off_after_fault, switch

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

OLDEST = "24.0"
"""The oldest pip that the patches are tested with; older ones are not patched."""

NEWEST = "26.3"
"""The newest pip that the patches are tested with; newer ones are patched if they can be."""

PATCHES = {
    "cli.req_command": "command:patch_commands",
    "index.package_finder": "finder:patch_finder",
    "index.sources": "names:patch_sources",
    "metadata.importlib._dists": "metadata:patch_importlib",
    "metadata.pkg_resources": "metadata:patch_pkg_resources",
    "models.wheel": "names:patch_wheel",
    "operations.prepare": "prepare:patch_prepare",
    "resolution.resolvelib.factory": "resolution:patch_factory",
    "resolution.resolvelib.found_candidates": "resolution:patch_found_candidates",
    "resolution.resolvelib.resolver": "resolution:patch_resolver",
}
"""Module of ``pip._internal`` to the function of ``pep_variants_shim._patches`` that patches it.

All of them or none: a pip that lacks one of these modules or functions is not patched.
"""

EXTRAS = {
    "build_env": "build:patch_build",  # up to 26.2
    "build_env.installer": "build:patch_build",
    "cache": "build:patch_cache",
    "cli.main_parser": "start:patch_runner",
    "commands": "start:patch_create",
    "commands.freeze": "shown:patch_freeze_command",
    "commands.index": "listing:patch_listing",
    "commands.inspect": "shown:patch_inspect",
    "commands.install": "command:patch_summary",
    "commands.list": "shown:patch_list",
    "commands.lock": "lock:patch_lock",
    "commands.show": "shown:patch_show",
    "commands.uninstall": "uninstall:patch_command",
    "models.installation_report": "shown:patch_report",
    "models.pylock": "lock:patch_lock",  # 25.1 to 25.3
    "operations.check": "check:patch_check",
    "operations.freeze": "shown:patch_freeze",
    "operations.install.wheel": "install:patch_install",
    "req.req_file": "requirements:patch_files",
    "req.req_uninstall": "uninstall:patch_uninstall",
    "utils.misc": "start:patch_version",
    "utils.pylock": "lock:patch_pylock",  # since 26.0
    "wheel_builder": "build:patch_builder",
}
"""The same for output, and for commands that need no other patch.

Each is independent: a pip that lacks one of them works there as without the shim.
"""

INSTALLING = ("commands.download", "commands.install", "commands.lock", "commands.wheel")
"""Modules of the commands that print why variants are switched off."""

_INTERNAL = "pip._internal."
_METADATA = "metadata."
"""Prefix of the metadata backends, of which pip imports one."""
_patched: set[str] = set()
_BUILT_IN_NAME = "pip._variants"


class PatchFinder:
    """Meta path finder that has `PathFinder` find the modules of pip, and patches some."""

    def __init__(self) -> None:
        self._checked = False

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Return the spec of a module to patch, None for all others and after a fault."""
        if not fullname.startswith(_INTERNAL):
            return None
        with off_after_fault():
            return self._find_patched(fullname, path, target)
        return None

    def _find_patched(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None
    ) -> ModuleSpec | None:
        if not self._checked:
            self._checked = True
            version = getattr(sys.modules.get("pip"), "__version__", None)
            if _BUILT_IN_NAME in sys.modules and not BUILT_IN:
                switch.yield_to_built_in()
            elif release(str(version)) < release(OLDEST):
                _off(
                    f"pip {version} is too old ({OLDEST} or newer is needed)",
                    f"to upgrade it: {_python()} -m pip install --upgrade pip",
                )
        name = fullname[len(_INTERNAL) :]
        if name in INSTALLING:
            switch.tell()
        patch = PATCHES.get(name) or EXTRAS.get(name)
        if patch is None or not _patches(name):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            needed = name in PATCHES
            spec.loader = _PatchLoader(spec.loader, name, patch, needed=needed)  # type: ignore[assignment] # has all methods used
        return spec


class _PatchLoader:
    """Executes a module with its own loader, then patches it."""

    def __init__(self, loader: Any, module: str, patch: str, *, needed: bool) -> None:
        self._loader = loader
        self._module = module
        self._patch = patch
        self._needed = needed
        self.create_module = loader.create_module

    def exec_module(self, module: ModuleType) -> None:
        with off_after_fault():
            # The module gets the loader that it has without the shim.
            module.__loader__ = self._loader
            if module.__spec__ is not None:
                module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        with off_after_fault():
            if _patches(self._module):
                self._patch_module(module)

    def _patch_module(self, module: ModuleType) -> None:
        name, _, function = self._patch.partition(":")
        try:
            getattr(importlib.import_module(f"{__package__}._patches.{name}"), function)(module)
            _patched.add(self._module)
        except (AttributeError, ImportError) as error:
            if self._needed:
                _unsupported(f"{module.__name__} lacks {error.name}")


def _patches(name: str) -> bool:
    """Return whether a module is patched; installed variants are understood after a fault, too."""
    return switch.on or (switch.failed and name.startswith(_METADATA))


def release(version: str) -> tuple[int, ...]:
    """Return the leading numbers of *version*, without importing `packaging`."""
    numbers = []
    for part in version.partition(LOCAL)[0].split("."):
        if not part.isdecimal():
            break
        numbers.append(int(part))
    return tuple(numbers)


def complete() -> bool:
    """Return whether every module is patched; import those that are not imported yet.

    For commands that import all these modules anyway.
    """
    try:
        # The other metadata backend is never imported.
        importlib.import_module("pip._internal.metadata").select_backend()
        for name in PATCHES:
            if switch.on and not name.startswith(_METADATA):
                importlib.import_module(_INTERNAL + name)
        if switch.on and not any(name.startswith(_METADATA) for name in _patched):
            _unsupported("its metadata backend is unknown")
    except (ImportError, AttributeError) as error:
        _unsupported(str(error))
    return switch.on


def _unsupported(lack: str) -> None:
    """Switch the patches off because this pip lacks what they use."""
    version = getattr(sys.modules.get("pip"), "__version__", "")
    _off(
        f"pip {version} is not supported ({lack})",
        "to get versions that go together: "
        f'{_python()} -m pip install --upgrade pep-variants-shim "pip<={NEWEST}"',
    )


def _off(reason: str, remedy: str) -> None:
    """Switch the patches off because this pip is not supported."""
    installing = any(_INTERNAL + name in sys.modules for name in INSTALLING)
    switch.off(reason, remedy, installing=installing)


def _python() -> str:
    """Return how a user starts this interpreter: by its name where that finds it."""
    import shutil
    from pathlib import Path

    found = shutil.which("python")
    path = sys.executable
    if not path or (found and Path(found).parent == Path(path).parent):
        return "python"
    return f'"{path}"' if " " in path else path
