"""Local projects that uv builds, and variant markers in their dependencies, which it rejects."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pep_variants.choose.markers import uses_variant_terms
from variants_index.uv_files import project_table, workspace_root

if TYPE_CHECKING:
    from .invocation import Invocation
    from .place import Place


def with_variant_markers(invocation: Invocation, place: Place) -> Iterator[tuple[Path, str]]:
    """Yield pyproject.toml and the first dependency with a variant marker of local projects.

    The proxy evaluates the markers in wheels of an index, but it does not see local projects.
    """
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
    if invocation.command[:1] != ("pip",):
        root = workspace_root(place.project.absolute())
        if root is not None:
            yield root
