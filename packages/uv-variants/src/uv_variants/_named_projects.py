"""Where a uv command runs, the project or script that it is about, and the projects it names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.requirements import InvalidRequirement, Requirement

from pep_variants import wheel_files
from variants_index import uv_files
from variants_index.uv_files import UvTable

if TYPE_CHECKING:
    from packaging.version import Version

    from ._command_line import Invocation


@dataclass(frozen=True)
class CommandPlace:
    """Directories and variables of a command.

    Attributes:
        cwd: working directory of uv.
        project: directory from which uv looks for the project.
        environ: environment variables of the user.
        script: with inline metadata, which uv then works on in place of the project; None without.
        uses_project: whether uv looks for a project at all.
    """

    cwd: Path
    project: Path
    environ: Mapping[str, str] = field(repr=False)
    script: Path | None = None
    uses_project: bool = True

    @classmethod
    def of(cls, invocation: Invocation, cwd: Path, environ: Mapping[str, str]) -> CommandPlace:
        """Return the place of *invocation*, started in *cwd*."""
        there = cwd / (invocation.last("directory") or environ.get("UV_WORKING_DIR") or "")
        project = there / (invocation.last("project") or environ.get("UV_PROJECT") or "")
        without = invocation.has("no-project") or uv_files.is_on(environ.get("UV_NO_PROJECT", ""))
        uses_project = not (without and invocation.command == ("run",))
        return cls(there, project, environ, _script(invocation, there), uses_project)

    def is_on(self, variable: str) -> bool:
        """Return whether *variable* is set, and not to a word for no."""
        return uv_files.is_on(self.environ.get(variable, ""))

    @cached_property
    def root(self) -> Path | None:
        """The directory of the project or workspace, None if the command is about none."""
        if self.script is not None or not self.uses_project:
            return None
        return uv_files.workspace_root(self.project.absolute())

    @property
    def lock_path(self) -> Path | None:
        """The lock file of the script or of the project, whether it exists or not."""
        if self.script is not None:
            return self.script.with_name(f"{self.script.name}.lock")
        return self.root / "uv.lock" if self.root is not None else None


def _script(invocation: Invocation, cwd: Path) -> Path | None:
    """Return the script with inline metadata that uv works on, None without one."""
    if invocation.command != ("run",):
        named = invocation.last("script")
        return cwd / named if named else None
    operand = next(iter(invocation.operands), "")
    if operand.endswith((".py", ".pyw")) or invocation.has("script", "s"):
        path = cwd / operand
        return (
            path if uv_files.script_tree(path) is not None else None
        )  # else it runs in the project
    return None


# `packaging.utils` does the same, and imports `packaging.tags`, `logging`, `subprocess` and others:
# longer than a command takes otherwise.
_SEPARATORS = re.compile(r"[-_.]+")
_NAME = re.compile(r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)")


def requested(invocation: Invocation, place: CommandPlace) -> list[str]:
    """Return the projects (normalized names) that a command names or its project depends on."""
    texts = requirement_texts(invocation, place)
    names = (name for text in texts if (name := name_of(text)) is not None)
    return list(dict.fromkeys(map(normalized, names)))


def requirement_texts(invocation: Invocation, place: CommandPlace) -> list[str]:
    """Return the requirements of a command and the dependencies of its project, as written."""
    texts: list[str] = []
    if invocation.command[:1] in (("pip",), ("add",)) or invocation.command[:1] == ("tool",):
        texts += invocation.operands
    texts += invocation.values("with", "from")
    if invocation.command[:1] not in (("pip",), ("tool",)):
        project = uv_files.project_table(place.root) if place.root is not None else {}
        if place.script is not None:
            project = uv_files.script_tree(place.script) or {}
        listed = project.get("dependencies")
        texts += [text for text in listed if isinstance(text, str)] if listed else []
    return texts


def further_texts(invocation: Invocation, place: CommandPlace) -> Iterator[str]:
    """Yield what is declared besides the dependencies of the command's own project or script.

    That is for builds, extras, groups, constraints and overrides, by the project or script, by its
    members, and by the directories that the command or a source names. ``uv pip`` and tools have
    only constraints, overrides and groups of a project that they do not name.
    """
    script = (
        uv_files.table_of(uv_files.script_tree(place.script)) if place.script is not None else {}
    )
    settings = uv_files.table_of(uv_files.table_of(script.get("tool")).get("uv"))
    files = [
        place.cwd / text for text in (*invocation.operands, *invocation.values("requirements"))
    ]
    named = [*named_folders(invocation, place), *_places(settings, place.project)]
    named += [path.parent for path in files if path.name == "pyproject.toml"]
    around = [] if place.root is None else [place.root, *members(place.root)]
    has_extras = invocation.has("all-extras") or bool(invocation.values("extra", "group"))
    if invocation.command[:1] not in (("pip",), ("tool",)):
        named, around, has_extras = [*named, *around], [], True
    listed = [settings.get(name) for name in _DECLARED]
    for folder, table in [*local_projects(named), *local_projects(around)]:
        tree = uv_files.table_of(uv_files.read_toml(folder / "pyproject.toml"))
        project = {} if folder in around else uv_files.table_of(tree.get("project"))
        listed += (table.settings.get(name) for name in _DECLARED)
        listed += (
            project.get("dependencies"),
            uv_files.table_of(tree.get("build-system")).get("requires"),
        )
        for each in (project.get("optional-dependencies"), tree.get("dependency-groups")):
            listed += uv_files.table_of(each).values() if has_extras else ()
    for texts in listed:
        yield from (each for each in texts or () if isinstance(each, str))


_DECLARED = (
    *("constraint-dependencies", "override-dependencies", "dev-dependencies"),
    "build-constraint-dependencies",
)


def members(root: Path) -> Iterator[Path]:
    """Yield the folders of the members of the workspace in *root*."""
    settings = uv_files.project_settings(root).settings
    patterns = uv_files.table_of(settings.get("workspace")).get("members")
    for pattern in patterns if isinstance(patterns, list) else ():
        with suppress(ValueError, NotImplementedError, TypeError):  # not a relative pattern
            yield from filter(Path.is_dir, root.glob(pattern))


def named_folders(invocation: Invocation, place: CommandPlace) -> Iterator[Path]:
    """Yield the directories that a command names, whose projects may have sources."""
    texts = invocation.values("editable", "with-editable", "with", "from")
    if invocation.command != ("run",):
        texts += invocation.operands
    for text in texts:
        path = place.cwd / text.removeprefix("file://").partition("[")[0]
        is_path = "/" in text or text.startswith(".") or invocation.command == ("build",)
        if is_path and path.is_dir():
            yield path
    if invocation.command == ("build",) and not invocation.operands:
        yield place.project


_MAX_FOLDERS = 200


def local_projects(folders: Iterable[Path]) -> list[tuple[Path, UvTable]]:
    """Return the projects in *folders* and those that their sources name, with ``[tool.uv]``."""
    waiting = list(folders)
    found: dict[str, tuple[Path, UvTable]] = {}
    while waiting and len(found) < _MAX_FOLDERS:
        folder = waiting.pop(0)
        path = os.path.abspath(folder)  # noqa: PTH100 - `absolute` keeps the ".." of sources
        if path not in found:
            found[path] = folder, uv_files.project_settings(folder)
            waiting += _places(found[path][1].settings, folder)
    return [*found.values()]


def _places(settings: Mapping[str, Any], base: Path) -> list[Path]:
    """Return the paths of the sources in ``[tool.uv]``, relative to *base*."""
    named = (source.get("path") for _, source in sources_of_table(settings))
    return [base / text for text in named if isinstance(text, str)]


def sources_of_table(settings: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield project and table of every source."""
    for project, source in uv_files.table_of(settings.get("sources")).items():
        for each in source if isinstance(source, list) else [source]:
            yield project, uv_files.table_of(each)


def admits(texts: Iterable[str], name: str, version: str) -> bool:
    """Return whether the requirements among *texts* that are about *name* admit *version*."""
    for text in texts:
        named = name_of(text)
        if named is None or normalized(named) != name:
            continue
        try:
            specifier = Requirement(text).specifier
        except InvalidRequirement:
            continue
        for each in specifier:
            # Versions are public ones here, and one of their builds may be named.
            public = each.version.partition("+")[0] == version
            if not (public or each.contains(version, prereleases=True)):
                return False
    return True


def pinned_versions(texts: Iterable[str]) -> dict[str, set[str]]:
    """Return the versions by project (normalized name) that requirements among *texts* pin."""
    found: dict[str, set[str]] = {}
    for name, operator, version in _pins(texts):
        if operator == "==":
            found.setdefault(name, set()).add(version)
    return found


def exact_versions(texts: Iterable[str]) -> dict[str, frozenset[Version]]:
    """Return those by project of which requirements name the very build.

    They have a local part, ``2.9.1+cu126``, or stand after ``===``, which admits none.
    """
    found: dict[str, frozenset[Version]] = {}
    for name, operator, text in _pins(texts):
        version = wheel_files.read_version(text)
        if version is not None and (version.local or operator == "==="):
            found[name] = found.get(name, frozenset()) | {version}
    return found


def _pins(texts: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """Yield project (normalized name), operator and version of requirements that pin one."""
    pinning = [text for text in texts if "==" in text]
    if not pinning:
        return
    for text in pinning:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue
        for each in requirement.specifier:
            if each.operator in ("==", "===") and not each.version.endswith(".*"):
                yield normalized(requirement.name), each.operator, each.version


def are_tags_of(filename: str, tags: frozenset[str]) -> bool:
    """Return whether a wheel with this plain filename has one of *tags*."""
    python, abi, platform = filename.removesuffix(".whl").split("-")[-3:]
    return any(
        f"{one}-{two}-{three}" in tags
        for one in python.split(".")
        for two in abi.split(".")
        for three in platform.split(".")
    )


def normalized(name: str) -> str:
    """Return the normalized form of the name of a project (PEP 503)."""
    return _SEPARATORS.sub("-", name).lower()


def name_of(text: str) -> str | None:
    """Return the project that a requirement or ``name@version`` names, as written.

    Args:
        text: a requirement (PEP 508), or what uv takes in its place.

    Returns:
        The name, None if *text* does not begin with one.
    """
    match = _NAME.match(text)
    return match[1] if match else None
