"""The import hook: patches pip's modules as they are imported.

`PATCHES` is the one table of what is patched; `SUPPORTED` the one list of pip versions whose
seams are known. Nothing of pip is changed on disk, so uninstalling the shim undoes everything.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, Any

from . import BUILT_IN, LOCAL

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

SUPPORTED = ("25.3", "26.3")
"""pip versions that the patches are tested with. A new one is added here when its tests pass."""

PATCHES = {
    "cli.req_command": "command:patch_commands",
    "commands.install": "command:patch_summary",
    "index.package_finder": "finder:patch_finder",
    "index.sources": "names:patch_sources",
    "metadata.importlib._dists": "metadata:patch_importlib",
    "metadata.pkg_resources": "metadata:patch_pkg_resources",
    "models.wheel": "names:patch_wheel",
    "operations.prepare": "prepare:patch_prepare",
    "resolution.resolvelib.found_candidates": "resolution:patch_found_candidates",
    "resolution.resolvelib.resolver": "resolution:patch_resolver",
    "utils.misc": "version:patch_version",
}
"""Module below ``pip._internal`` to what patches it, below ``pep_variants_shim.patches``."""

INSTALLING = ("commands.download", "commands.install", "commands.lock", "commands.wheel")
"""Modules of the commands that tell the user when variants are off."""

_INTERNAL = "pip._internal."
_BUILT_IN_NAME = "pip._variants"


class Switch:
    """Whether the patches act. One per process, because a process has one patched pip.

    Patches look at it when they are called: modules are patched one by one, and a pip that lacks
    a seam in the last of them must behave as if none had been patched.

    Attributes:
        on: the patches act.
        reason: why they do not.
    """

    def __init__(self) -> None:
        self.on = True
        self.reason = ""
        self._told = False

    def off(self, reason: str) -> None:
        """Switch the patches off, for good."""
        if self.on:
            self.on = False
            self.reason = reason
            if any(_INTERNAL + name in sys.modules for name in INSTALLING):
                self.tell()

    def yield_to_built_in(self) -> None:
        """Switch the patches off without a word: this pip has them built in, and they act."""
        self.on = False
        self._told = True

    def tell(self) -> None:
        """Say in one line why the patches do not act, if they do not."""
        # Completion of command lines imports commands, too, and shows what is printed.
        if not self.on and not self._told and "PIP_AUTO_COMPLETE" not in os.environ:
            self._told = True
            # pip's logging is not set up yet.
            print(f"pep-variants-shim: {self.reason}: wheel variants are ignored", file=sys.stderr)


switch = Switch()


class PatchFinder:
    """Finds the modules to patch where everybody finds them, and has them patched."""

    def __init__(self) -> None:
        self._checked = False

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Return the spec of a module to patch, None for all others."""
        if not fullname.startswith(_INTERNAL):
            return None
        if not self._checked:
            self._checked = True
            version = getattr(sys.modules.get("pip"), "__version__", None)
            if _BUILT_IN_NAME in sys.modules and not BUILT_IN:
                switch.yield_to_built_in()
            elif str(version).partition(LOCAL)[0] not in SUPPORTED:
                switch.off(f"pip {version} is not supported (only {', '.join(SUPPORTED)})")
        name = fullname[len(_INTERNAL) :]
        if name in INSTALLING:
            switch.tell()
        if name not in PATCHES or not switch.on:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _PatchLoader(spec.loader, PATCHES[name])  # type: ignore[assignment] # quacks like one
        return spec


class _PatchLoader:
    """Executes a module with its own loader, then patches it."""

    def __init__(self, loader: Any, patch: str) -> None:
        self._loader = loader
        self._patch = patch

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        # From here on the module is as if it had been found without us.
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        if not switch.on:
            return
        name, _, function = self._patch.partition(":")
        try:
            getattr(importlib.import_module(f"{__package__}.patches.{name}"), function)(module)
        except AttributeError as error:
            switch.off(f"this pip is not as expected, {module.__name__} lacks {error.name}")
        except Exception as error:  # pip must work, whatever happens to us
            switch.off(f"{module.__name__} cannot be patched ({type(error).__name__}: {error})")


def complete() -> bool:
    """Return whether the patches act, for certain: every module has been patched.

    For commands that import all these modules anyway, before they do something with variants.
    """
    try:
        # One of the two metadata backends is used, the other one never imported.
        importlib.import_module("pip._internal.metadata").select_backend()
        for name in PATCHES:
            if switch.on and not name.startswith("metadata."):
                importlib.import_module(_INTERNAL + name)
    except (ImportError, AttributeError) as error:
        switch.off(f"this pip is not as expected ({error})")
    return switch.on


def replace(owner: Any, name: str, *, always: bool = False) -> Callable[[Callable[..., Any]], None]:
    """Return a decorator that puts a function in the place of ``owner.name``.

    The function gets what it replaces, as its first argument, and the arguments of the call. It
    passes on those that it does not know: new parameters of a new pip pass through.

    Args:
        owner: a module or a class.
        name: of a function, method, class method or property.
        always: call the function also when the patches are switched off.

    Raises:
        AttributeError: *owner* has no such attribute of its own.
    """
    original = vars(owner).get(name)
    if original is None:
        place = f"{getattr(owner, '__qualname__', '')}.{name}".lstrip(".")
        raise AttributeError(f"there is no {place}", name=place, obj=owner)

    def switched(original: Any, ours: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def function(*args: Any, **kwargs: Any) -> Any:
            if switch.on or always:
                return ours(original, *args, **kwargs)
            return original(*args, **kwargs)

        return function

    def decorate(ours: Callable[..., Any]) -> None:
        if isinstance(original, classmethod):
            setattr(owner, name, classmethod(switched(original.__func__, ours)))
        elif isinstance(original, property):
            setattr(owner, name, property(switched(original.fget, ours)))
        else:
            setattr(owner, name, switched(original, ours))

    return decorate
