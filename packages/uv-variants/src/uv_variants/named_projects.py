"""The projects that a command names, or that its project depends on."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from .configuration import project_table, workspace_root

if TYPE_CHECKING:
    from .invocation import Invocation
    from .place import Place

_NAME = re.compile(r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)")


def requested(invocation: Invocation, place: Place) -> list[str]:
    """Return the projects (normalized names) that a command names or its project depends on."""
    texts = requirement_texts(invocation, place)
    names = (match[1] for text in texts if (match := _NAME.match(text)))
    return list(dict.fromkeys(map(canonicalize_name, names)))


def requirement_texts(invocation: Invocation, place: Place) -> list[str]:
    """Return the requirements of a command and the dependencies of its project, as written."""
    texts: list[str] = []
    if invocation.command[:1] in (("pip",), ("add",)) or invocation.command[:1] == ("tool",):
        texts += invocation.operands
    texts += invocation.values("with", "from")
    if invocation.command[:1] != ("pip",):
        root = workspace_root(place.project.absolute())
        project = project_table(root) if root is not None else {}
        listed = project.get("dependencies")
        texts += [text for text in listed if isinstance(text, str)] if listed else []
    return texts


def name_of(text: str) -> str | None:
    """Return the project that a requirement or ``name@version`` names, as written."""
    match = _NAME.match(text)
    return match[1] if match else None


def admits(texts: Iterable[str], name: str, version: str) -> bool:
    """Return whether the requirements among *texts* that are about *name* admit *version*."""
    from packaging.requirements import InvalidRequirement, Requirement

    for text in texts:
        match = _NAME.match(text)
        if match is None or canonicalize_name(match[1]) != name:
            continue
        try:
            specifier = Requirement(text).specifier
        except InvalidRequirement:
            continue
        if not specifier.contains(version, prereleases=True):
            return False
    return True


def are_tags_of(filename: str, tags: frozenset[str]) -> bool:
    """Return whether a wheel with this plain filename has one of *tags*."""
    python, abi, platform = filename.removesuffix(".whl").split("-")[-3:]
    return any(
        f"{one}-{two}-{three}" in tags
        for one in python.split(".")
        for two in abi.split(".")
        for three in platform.split(".")
    )
