"""The projects that a command names or builds, and those that its project depends on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from variants_index.uv_files import project_table, script_tree

from .project_names import name_of, normalized

if TYPE_CHECKING:
    from .invocation import Invocation
    from .place import Place


def requested(invocation: Invocation, place: Place) -> list[str]:
    """Return the projects (normalized names) that a command names or its project depends on."""
    texts = requirement_texts(invocation, place)
    names = (name for text in texts if (name := name_of(text)) is not None)
    return list(dict.fromkeys(map(normalized, names)))


def requirement_texts(invocation: Invocation, place: Place) -> list[str]:
    """Return the requirements of a command and the dependencies of its project, as written."""
    texts: list[str] = []
    if invocation.command[:1] in (("pip",), ("add",)) or invocation.command[:1] == ("tool",):
        texts += invocation.operands
    texts += invocation.values("with", "from")
    if invocation.command[:1] not in (("pip",), ("tool",)):
        project = project_table(place.root) if place.root is not None else {}
        if place.script is not None:
            project = script_tree(place.script) or {}
        listed = project.get("dependencies")
        texts += [text for text in listed if isinstance(text, str)] if listed else []
    return texts


def admits(texts: Iterable[str], name: str, version: str) -> bool:
    """Return whether the requirements among *texts* that are about *name* admit *version*."""
    from packaging.requirements import InvalidRequirement, Requirement

    for text in texts:
        named = name_of(text)
        if named is None or normalized(named) != name:
            continue
        try:
            specifier = Requirement(text).specifier
        except InvalidRequirement:
            continue
        if not specifier.contains(version, prereleases=True):
            return False
    return True


def pinned_versions(texts: Iterable[str]) -> dict[str, set[str]]:
    """Return the versions by project (normalized name) that requirements among *texts* pin."""
    from packaging.requirements import InvalidRequirement, Requirement

    found: dict[str, set[str]] = {}
    for text in texts:
        if "==" not in text:
            continue
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue
        for each in requirement.specifier:
            if each.operator == "==" and not each.version.endswith(".*"):
                found.setdefault(normalized(requirement.name), set()).add(each.version)
    return found


def are_tags_of(filename: str, tags: frozenset[str]) -> bool:
    """Return whether a wheel with this plain filename has one of *tags*."""
    python, abi, platform = filename.removesuffix(".whl").split("-")[-3:]
    return any(
        f"{one}-{two}-{three}" in tags
        for one in python.split(".")
        for two in abi.split(".")
        for three in platform.split(".")
    )


def with_variant_markers(invocation: Invocation, place: Place) -> Iterator[tuple[Path, str]]:
    """Yield pyproject.toml and the first dependency with a variant marker of local projects.

    The proxy evaluates the markers in wheels of an index, but it does not see local projects.
    """
    from pep_variants.choose.markers import uses_variant_terms

    for folder in dict.fromkeys(_folders(invocation, place)):
        project = project_table(folder)
        listed = [project.get("dependencies")]
        optional = project.get("optional-dependencies")
        listed += optional.values() if isinstance(optional, dict) else []
        texts = (text for items in listed if isinstance(items, list) for text in items)
        marked = (text for text in texts if isinstance(text, str) and uses_variant_terms(text))
        first = next(marked, None)
        if first is not None:
            yield folder / "pyproject.toml", first


def _folders(invocation: Invocation, place: Place) -> Iterator[Path]:
    """Yield the directories of local projects in the arguments, and of the current project."""
    named = [*invocation.operands, *invocation.values("editable", "with-editable", "from")]
    for text in named:
        path = place.cwd / text.removeprefix("file://").partition("[")[0]
        if path.is_dir():
            yield path
    for text in invocation.values("requirements"):
        if text.endswith("pyproject.toml"):
            yield (place.cwd / text).parent
    if invocation.command[:1] != ("pip",) and place.root is not None:
        yield place.root
