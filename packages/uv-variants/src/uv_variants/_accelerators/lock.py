"""Which group of a project's lock a machine takes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pep_variants import machines, safe_files
from pep_variants.machines import Detector, Platform
from variants_catalog import catalogs
from variants_index import target as target_machines
from variants_index import uv_files
from variants_proxy import urls as proxy_urls

from .._named_projects import members, normalized
from .declared import Declared, project_requirements
from .groups import GroupBuild, choose, group_builds, required_names

if TYPE_CHECKING:
    from pep_variants.lock_entries import GroupChoice
    from pep_variants.preferences import Preferences
    from variants_catalog.catalogs import Catalog


@dataclass(frozen=True)
class Pyproject:
    """A pyproject.toml of a project, or of a member of its workspace.

    Attributes:
        path: of the file.
        text: as it is.
        tree: what is in it.
    """

    path: Path
    text: str
    tree: Mapping[str, Any]

    @classmethod
    def read(cls, folder: Path) -> Pyproject:
        """Return the file in *folder* as it is now."""
        path = folder / "pyproject.toml"
        return cls(path, path.read_bytes().decode("utf-8"), uv_files.read_toml(path) or {})

    @property
    def name(self) -> str:
        """Normalized name of the project, empty without one."""
        return normalized(str(uv_files.table_of(self.tree.get("project")).get("name", "")))

    def write(self, text: str) -> None:
        """Have *text* in the file."""
        if text != self.path.read_bytes().decode("utf-8"):
            with safe_files.replacing(self.path) as stream:
                stream.write(text.encode("utf-8"))


class GroupedLock:
    """The lock of a project or workspace, with a group for each accelerator.

    Attributes:
        root: directory of the project.
        declared: what its pyproject.toml says.
    """

    def __init__(
        self, root: Path, catalog: Catalog, preferences: Preferences, environ: Mapping[str, str]
    ) -> None:
        self.root = root
        self.declared = Declared.read(root)
        self._catalog, self._preferences, self._environ = catalog, preferences, environ

    def named(self, text: str) -> str:
        """Return the accelerator that *text* names, that of a machine for one."""
        if catalogs.is_accelerator(text):
            return text
        platform = None if text == "native" else machines.load_machine(text)
        detector, machine = self._examined(platform)
        for file in self._files():
            required = {normalized(item.name): item for item in project_requirements(file.tree)}
            for name in (*required, *sorted(self._locked(file))):
                entry = self._catalog.project(name)
                wanted = required[name].specifier if name in required else None
                if entry is not None and catalogs.build_for(entry, catalogs.CPU) is not None:
                    return catalogs.accelerator_of(
                        entry, detector.platform, self._preferences, wanted, machine
                    )
        return catalogs.CPU

    def chosen(self, platform: Platform | None = None, named: Collection[str] = ()) -> GroupChoice:
        """Return the group of the lock for *platform*, by default for this machine.

        Args:
            platform: the machine.
            named: groups that the user named.

        Raises:
            LockError: none fits.
        """
        detector, machine = self._examined(platform)
        return choose(self._builds(machine), detector.platform, self._preferences, named)

    def idle(self, group: str) -> str:
        """Return the accelerator that no group has although this machine fits its build best.

        Empty if *group*, which it takes, is for an accelerator or was asked for.
        """
        preferences = self._preferences
        is_asked = bool(preferences.forced) or not preferences.use_variants
        best = self.named("native") if group == catalogs.CPU and not is_asked else catalogs.CPU
        return "" if best in (catalogs.CPU, *self.declared.accelerators) else best

    def _builds(self, machine: str = "") -> dict[str, list[GroupBuild]]:
        names = [file.name for file in self._files()]
        groups = self.declared.accelerators
        return group_builds(self._lock, names, groups, self._catalog, machine)

    def _examined(self, platform: Platform | None) -> tuple[Detector, str]:
        """Return what tells of a machine, and its platform tag."""
        if platform is None and self._preferences.platform_file is not None:
            platform = machines.load_machine(self._preferences.platform_file)
        target = proxy_urls.host_target()
        if platform is not None:
            supported = [name for name, each in platform.namespaces.items() if each.features]
            target = target_machines.platform_of_namespaces(tuple(sorted(supported))) or target
        detector = Detector.of(self._preferences, platform=platform)
        return detector, target_machines.platform_tag(target)

    def _files(self) -> list[Pyproject]:
        """Return the pyproject.toml of the project, and those of the members of its workspace."""
        folders = [folder for folder in members(self.root) if (folder / "pyproject.toml").is_file()]
        paths = dict.fromkeys(map(Path.resolve, [self.root, *sorted(folders)]))
        return list(map(Pyproject.read, paths))

    def _locked(self, file: Pyproject) -> set[str]:
        return required_names(self._lock, file.name, self.declared.accelerators)

    @cached_property
    def _lock(self) -> Mapping[str, Any]:
        return uv_files.read_toml(self.root / "uv.lock") or {}
