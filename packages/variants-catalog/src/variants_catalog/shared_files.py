"""Projects beside builds of them under their publishers' names, which have the same files."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .entries import CatalogProject


def same_files(
    projects: Iterable[str],
    names: Container[str],
    entry: Callable[[str], CatalogProject | None],
) -> Iterator[tuple[str, list[str]]]:
    """Yield the projects of which *names* has builds, ascending, each with these builds.

    A build has the files of its project: ``cupy-cuda13x`` those of ``cupy``. So of all these names
    one is installed, and the build counts as the project where both are required.

    Args:
        projects: normalized names that are looked up.
        names: normalized names of what is, or will be, installed.
        entry: returns the entry of a project in the catalogue, None without one.

    Raises:
        CatalogError: *entry* raised it.
    """
    for project in sorted(set(projects)):
        found = entry(project)
        builds = [name for name in found.targets if name in names] if found is not None else []
        if builds:
            yield project, builds
