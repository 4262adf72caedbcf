"""What a pyproject.toml says of the groups of its accelerators."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement

from variants_index import uv_files

from .._named_projects import normalized

TABLE = "uv-variants"
KEYS = ("accelerators", "indexes", "moved", "requirers", "members")
"""Keys of ``[tool.uv-variants]``, in the order of the attributes of `Declared`."""
_GROUP = re.compile(r"[A-Za-z0-9]+([._-][A-Za-z0-9]+)*")
"""What uv takes as the name of a group; what a checkout says goes into a variable."""


@dataclass(frozen=True)
class Declared:
    """What `TABLE` says.

    Attributes:
        accelerators: names of the groups, as written.
        indexes: names of the indexes that were written for them.
        moved: requirements of the project that its groups have.
        requirers: packages of which uv is told what they require.
        members: normalized names of what was written into the groups; the rest is a person's.
    """

    accelerators: tuple[str, ...] = ()
    indexes: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    requirers: tuple[str, ...] = ()
    members: tuple[str, ...] = ()

    @classmethod
    def of(cls, tree: Mapping[str, Any]) -> Declared:
        """Return what the pyproject.toml *tree* declares; what is not valid is left out."""
        table = uv_files.table_of(uv_files.table_of(tree.get("tool")).get(TABLE))
        names, *others = (strings(table.get(name)) for name in KEYS)
        return cls(tuple(filter(_GROUP.fullmatch, names)), *others)

    @classmethod
    def read(cls, root: Path | None) -> Declared:
        """Return what the project in *root* declares, nothing without one."""
        tree = None if root is None else uv_files.read_toml(root / "pyproject.toml")
        return cls.of(tree or {})


def project_requirements(tree: Mapping[str, Any]) -> list[Requirement]:
    """Return what the project of a pyproject.toml requires, with `group_requirements`."""
    texts = strings(uv_files.table_of(tree.get("project")).get("dependencies"))
    return [*parsed(texts), *group_requirements(tree)]


def group_requirements(tree: Mapping[str, Any]) -> list[Requirement]:
    """Return what was moved to the groups of accelerators, and what a person added to them."""
    declared = Declared.of(tree)
    ours = set(map(normalized, declared.accelerators))
    texts = [*declared.moved]
    for group, items in uv_files.table_of(tree.get("dependency-groups")).items():
        added = strings(items) if normalized(group) in ours else ()
        texts += (text for text in added if requirement_name(text) not in declared.members)
    return parsed(dict.fromkeys(texts))


def parsed(texts: Iterable[str]) -> list[Requirement]:
    """Return *texts* as requirements, without those that are not valid."""
    found = []
    for text in texts:
        with suppress(InvalidRequirement):  # uv says so
            found.append(Requirement(text))
    return found


def strings(value: object) -> tuple[str, ...]:
    """Return the strings of an array of a TOML file, of which *value* may be none."""
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


def requirement_name(text: str) -> str:
    """Return the normalized name of what *text* requires, empty if it is not valid."""
    try:
        return normalized(Requirement(text).name)
    except InvalidRequirement:
        return ""
