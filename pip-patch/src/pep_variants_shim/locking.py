"""Variant wheels in ``pylock.toml`` (PEP 751; PEP 825, "Lock file integration").

A package that lists variant wheels has their metadata in its table ``variants-json``. pip is shown
the wheels of one variant, under the plain names that it knows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pep_variants.label import split_label

if TYPE_CHECKING:
    from pep_variants.metadata import Metadata

    from .session import Session

KEY = "variants-json"


def select_wheels(tree: Any, session: Session | None) -> Any:
    """Return the lock file *tree* with one variant of each package, for this machine.

    What lists no variant wheels stays the very same object.

    Args:
        tree: as parsed from TOML; not checked yet.
        session: of the command, None if variants are switched off.

    Raises:
        InstallationError: no variant of a package fits, and there is nothing else of it.
    """
    packages = tree.get("packages") if isinstance(tree, dict) else None
    if not isinstance(packages, list) or not any(any(labels(item)) for item in packages):
        return tree
    return {
        **tree,
        "packages": [
            {**item, "wheels": _plainly_named(_wheels_for(item, session))}
            if any(labels(item))
            else item
            for item in packages
        ],
    }


def labels(package: Any) -> Iterator[str | None]:
    """Yield the label of each wheel of *package*, None for those that are no variants."""
    wheels = package.get("wheels") if isinstance(package, dict) else None
    for wheel in wheels if isinstance(wheels, list) else ():
        yield split_label(filename_of(wheel))[1]


def filename_of(wheel: Any) -> str:
    """Return the filename of a wheel's table: its ``name``, or what its path or URL ends in."""
    if not isinstance(wheel, dict):
        return ""
    place = wheel.get("name") or wheel.get("path") or wheel.get("url") or ""
    return str(place).partition("#")[0].replace("\\", "/").rpartition("/")[2]


def _wheels_for(package: dict[str, Any], session: Session | None) -> list[dict[str, Any]]:
    if session is None:
        return [wheel for wheel in package["wheels"] if not split_label(filename_of(wheel))[1]]
    return session.select_locked(package)


def _plainly_named(wheels: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**wheel, "name": split_label(filename_of(wheel))[0]} for wheel in wheels]


def table_of(metadata: Metadata, label: str) -> dict[str, Any]:
    """Return the table ``variants-json`` of a package of which only *label* is locked.

    Raises:
        MetadataError: the format that is written cannot express it.
    """
    from pep_variants.generation import V0_2_0
    from pep_variants.writer import WRITABLE, metadata_to_tree

    name = metadata.label_of(label)
    kept = replace(metadata, variants={name: dict(metadata.properties_of(name) or {})})
    generation = next((item for item in WRITABLE if item.schema == metadata.schema), V0_2_0)
    return metadata_to_tree(kept, generation)
