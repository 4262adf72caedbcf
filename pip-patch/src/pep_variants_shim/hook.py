"""The import hook: patches pip's modules as they are imported.

`PATCHES` is the one table of what is patched; `SUPPORTED` the one list of pip versions whose
seams are known. Nothing of pip is changed on disk, so uninstalling the shim undoes everything.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import NamedTuple


class Patch(NamedTuple):
    """One patched module of pip.

    Attributes:
        module: its name, below ``pip._internal``.
        seams: attributes that must be there, dotted; one that is missing switches the shim off.
        function: module and function of ours that patches it, below ``pep_variants_shim.patches``.
    """

    module: str
    seams: tuple[str, ...]
    function: str


PATCHES = (
    Patch("models.wheel", ("Wheel.__init__",), "names:patch_wheel"),
    Patch("index.sources", ("parse_wheel_filename",), "names:patch_sources"),
    Patch("index.package_finder", ("PackageFinder.evaluate_links",), "finder:patch_finder"),
    Patch("resolution.resolvelib.factory", ("FoundCandidates",), "resolution:patch_factory"),
    Patch(
        "resolution.resolvelib.resolver",
        ("Resolver.resolve", "Resolver.__init__"),
        "resolution:patch_resolver",
    ),
    Patch(
        "operations.prepare",
        (
            "RequirementPreparer._prepare_linked_requirement",
            "RequirementPreparer._fetch_metadata_using_link_data_attr",
        ),
        "prepare:patch_prepare",
    ),
    Patch(
        "metadata.importlib._dists",
        (
            "WheelDistribution.__init__",
            "Distribution.from_metadata_file_contents",
            "Distribution._metadata_impl",
        ),
        "metadata:patch_importlib",
    ),
    Patch(
        "metadata.pkg_resources",
        ("InMemoryMetadata.__init__", "pkg_resources.DistInfoDistribution._parsed_pkg_info"),
        "metadata:patch_pkg_resources",
    ),
    Patch(
        "cli.req_command",
        ("RequirementCommand.__init__", "RequirementCommand._build_package_finder"),
        "command:patch_commands",
    ),
    Patch("commands.install", ("write_output",), "command:patch_summary"),
    Patch("utils.misc", ("get_pip_version",), "command:patch_version"),
)

SUPPORTED = frozenset({"25.3", "26.3"})
"""pip versions that the patches are tested with. A new one is added here when its tests pass."""

INSTALLING = frozenset({"install", "download", "wheel", "lock"})
"""Commands that tell the user when variants are off."""


class Switch:
    """Whether the patches act. One per process, because a process has one patched pip.

    Patches look at it when they are called: modules are patched one by one, and a pip that lacks
    a seam in the last of them must behave as if none had been patched.
    """

    def __init__(self) -> None:
        self.on = True

    def off(self, reason: str) -> None:
        """Switch the patches off, and say so in one line if the command is about installing."""
        self.on = False
        if not INSTALLING.isdisjoint(sys.argv[1:]):
            # pip's logging is not set up yet.
            print(f"pep-variants-shim: {reason}: wheel variants are ignored.", file=sys.stderr)


switch = Switch()


def install() -> None:
    """Start watching for the modules of `PATCHES`."""
    sys.meta_path.insert(0, _PatchFinder())


class _PatchFinder(importlib.abc.MetaPathFinder):
    """Finds the modules to patch where everybody finds them, and patches them once executed."""

    def __init__(self) -> None:
        self._patches = {f"pip._internal.{patch.module}": patch for patch in PATCHES}
        self._supported: bool | None = None

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Return the spec of a module to patch, None for all others."""
        patch = self._patches.get(fullname)
        if patch is None or not self._is_supported():
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.loader is None:
            return None
        spec.loader = _PatchLoader(spec.loader, patch)
        return spec

    def _is_supported(self) -> bool:
        if self._supported is None:
            version = getattr(sys.modules.get("pip"), "__version__", None)
            self._supported = version in SUPPORTED
            if not self._supported:
                known = ", ".join(sorted(SUPPORTED))
                switch.off(f"pip {version} is not supported (only {known})")
        return self._supported


class _PatchLoader(importlib.abc.Loader):
    """Executes a module with its own loader, then patches it."""

    def __init__(self, loader: importlib.abc.Loader, patch: Patch) -> None:
        self._loader = loader
        self._patch = patch

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        missing = [seam for seam in self._patch.seams if not _has(module, seam)]
        if missing and switch.on:
            switch.off(f"this pip is not as expected, {module.__name__} lacks {missing[0]}")
        if not switch.on:
            return
        name, _, function = self._patch.function.partition(":")
        patches = importlib.import_module(f"{__package__}.patches.{name}")
        getattr(patches, function)(module)

    def __getattr__(self, name: str) -> object:
        # get_source, get_data, is_package, …: whatever somebody asks a loader for.
        return getattr(self._loader, name)


def _has(module: ModuleType, seam: str) -> bool:
    value: object = module
    for part in seam.split("."):
        if not hasattr(value, part):
            return False
        value = getattr(value, part)
    return True
