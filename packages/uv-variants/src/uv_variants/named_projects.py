"""The projects that a command names or builds, and those that its project depends on."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from variants_index.internal import project_table, script_tree

if TYPE_CHECKING:
    from .invocation import Invocation
    from .place import Place

# `packaging.utils` does the same, and imports `packaging.tags`, `logging`, `subprocess` and others:
# longer than a command takes otherwise.
_SEPARATORS = re.compile(r"[-_.]+")
_NAME = re.compile(r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)")


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
    found: dict[str, set[str]] = {}
    pinning = [text for text in texts if "==" in text]
    if not pinning:
        return found
    from packaging.requirements import InvalidRequirement, Requirement

    for text in pinning:
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
