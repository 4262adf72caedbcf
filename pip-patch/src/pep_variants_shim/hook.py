"""The import hook: patches pip's modules as they are imported.

`PATCHES` is the one table of what is patched, for all versions of pip alike. What a pip has to
have for that is checked when it is there: names and parameters, never its version. Nothing of pip
is changed on disk, so uninstalling the shim undoes everything.
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

OLDEST = "24.0"
"""The oldest pip that the patches are tested with; older ones are left alone."""

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
"""Module below ``pip._internal`` to what patches it, below ``pep_variants_shim.patches``.

All of them or none: a pip that lacks one of these seams is left alone.
"""

EXTRAS = {
    "build_env": "runner:patch_runner",  # up to 26.2
    "build_env.installer": "runner:patch_runner",
    "cli.main_parser": "runner:patch_runner",
    "commands.index": "finder:patch_listing",
    "commands.inspect": "shown:patch_inspect",
    "commands.install": "command:patch_summary",
    "commands.list": "shown:patch_list",
    "commands.lock": "lock:patch_lock",
    "commands.show": "shown:patch_show",
    "models.installation_report": "shown:patch_report",
    "models.pylock": "lock:patch_lock",  # 25.1 to 25.3
    "operations.check": "check:patch_check",
    "operations.install.wheel": "install:patch_install",
    "utils.misc": "version:patch_version",
    "utils.pylock": "lock:patch_pylock",  # since 26.0
}
"""The same for what is only shown, and for commands that stand apart.

Each for itself: without one of these seams pip does in that place what it always did.
"""

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
            elif _release(str(version)) < _release(OLDEST):
                switch.off(f"pip {version} is not supported ({OLDEST} or newer is)")
        name = fullname[len(_INTERNAL) :]
        if name in INSTALLING:
            switch.tell()
        patch = PATCHES.get(name) or EXTRAS.get(name)
        if patch is None or not switch.on:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            needed = name in PATCHES
            spec.loader = _PatchLoader(spec.loader, patch, needed=needed)  # type: ignore[assignment] # quacks like one
        return spec


class _PatchLoader:
    """Executes a module with its own loader, then patches it."""

    def __init__(self, loader: Any, patch: str, *, needed: bool) -> None:
        self._loader = loader
        self._patch = patch
        self._needed = needed

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
            if self._needed:
                switch.off(f"this pip is not as expected, {module.__name__} lacks {error.name}")
        except Exception as error:  # pip must work, whatever happens to us
            if self._needed:
                switch.off(f"{module.__name__} cannot be patched ({type(error).__name__}: {error})")


def _release(version: str) -> tuple[int, ...]:
    """Return the numbers that *version* begins with; nothing heavy may be imported for it."""
    numbers = []
    for part in version.partition(LOCAL)[0].split("."):
        if not part.isdecimal():
            break
        numbers.append(int(part))
    return tuple(numbers)


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
        AttributeError: *owner* has no such attribute of its own, or, when it decorates, what is
            there does not begin with the parameters that the function names.
    """
    original = vars(owner).get(name)
    place = f"{getattr(owner, '__qualname__', '')}.{name}".lstrip(".")
    if original is None:
        raise AttributeError(f"there is no {place}", name=place, obj=owner)

    def switched(original: Any, ours: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def function(*args: Any, **kwargs: Any) -> Any:
            if switch.on or always:
                return ours(original, *args, **kwargs)
            return original(*args, **kwargs)

        return function

    def decorate(ours: Callable[..., Any]) -> None:
        function = original
        if isinstance(original, classmethod):
            function = original.__func__
        elif isinstance(original, property):
            function = original.fget
        expected = parameters(ours)[1:]
        if parameters(function)[: len(expected)] != expected:
            place_with = f"{place}({', '.join(expected)})"
            raise AttributeError(f"there is no {place_with}", name=place_with, obj=owner)
        ours_or_theirs = switched(function, ours)
        if isinstance(original, classmethod):
            setattr(owner, name, classmethod(ours_or_theirs))
        elif isinstance(original, property):
            setattr(owner, name, property(ours_or_theirs))
        else:
            setattr(owner, name, ours_or_theirs)

    return decorate


def require(owner: Any, name: str, *wanted: str) -> None:
    """Check that ``owner.name`` is a function with the parameters *wanted*.

    Raises:
        AttributeError: it is not.
    """
    function = vars(owner).get(name)
    place = f"{getattr(owner, '__qualname__', '')}.{name}".lstrip(".")
    if function is None or not set(wanted) <= set(parameters(function)):
        place = f"{place}({', '.join(wanted)})" if function else place
        raise AttributeError(f"there is no {place}", name=place, obj=owner)


def parameters(function: Any) -> tuple[str, ...]:
    """Return the names of the parameters of a Python function, also of a decorated one."""
    code = getattr(function, "__wrapped__", function).__code__
    names: tuple[str, ...] = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return names
