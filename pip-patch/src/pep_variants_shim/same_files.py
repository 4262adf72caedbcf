"""Projects and builds of them under other names: the same files, of which only one is installed.

A project may be required beside a build of it under the publisher's name, as ``cupy`` beside the
``cupy-cuda13x`` that cudf requires. The latter then stands for the project.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pip._internal.exceptions import InstallationError
from pip._vendor.packaging.utils import canonicalize_name

from .distributions import origin_of
from .errors import logger

if TYPE_CHECKING:
    from variants_catalog.model import CatalogProject

    from .session import Session


def leave_out(session: Session, result: Any, requirements: dict[str, Any]) -> None:
    """Take out of *requirements* the projects that another name stands for.

    Args:
        session: of the command.
        result: of pip's resolver.
        requirements: what is going to be installed, by normalized name.

    Raises:
        InstallationError: a project and a build of it would both be installed.
    """
    installed = session.installed
    for project in sorted({*requirements, *installed}):
        entry = session.catalog.entry(project)
        if entry is None or not entry.targets:
            continue
        is_new = project in requirements
        if not is_new and _is_empty(entry, installed[project]):
            continue
        for target in entry.targets:
            if is_new and (target in requirements or target in installed):
                _stand_in(session, result, requirements, project, target)
                break
            if not is_new and target in requirements and target not in installed:
                _keep(result, requirements, installed[project], target)


def _is_empty(entry: CatalogProject, dist: Any) -> bool:
    """Return whether *dist* is no release of its project, and so has none of its files."""
    versions = entry.placeholder
    return versions is not None and versions.contains(str(dist.version), prereleases=True)


def _stand_in(
    session: Session, result: Any, requirements: dict[str, Any], project: str, target: str
) -> None:
    """Leave out *project*, or say why *target* does not stand for it."""
    installed = session.installed
    coming = target in requirements
    version = result.mapping[target].version if coming else installed[target].version
    both = f"{target} {version}, which is {'also required' if coming else 'installed'}"
    unmet = [text for text, asked in _asked(result, project) if not _admits(asked, version)]
    if unmet:
        raise InstallationError(
            f"{project} has the same files as {both} and does not satisfy {', '.join(unmet)}: "
            f"require a version of {target} that does, or "
            + (f"leave {target} out" if coming else f"pip uninstall {target}")
        )
    if project in installed and target not in installed:
        raise InstallationError(
            f"{project} {installed[project].version} is installed and has the same files as "
            f"{both}: pip uninstall {project}, then try again"
        )
    logger.info("%s is left out: it is %s, under its publisher's name", project, both)
    del requirements[project]
    session.replaced[project] = target


def _keep(result: Any, requirements: dict[str, Any], dist: Any, target: str) -> None:
    """Leave out *target* if it is what is installed as *dist*, and only the user asks for it."""
    project, version = dist.canonical_name, result.mapping[target].version
    origin = origin_of(dist)
    by_user = all(parent is None for parent in _parents(result, target))
    if origin is not None and (origin.name, origin.version) == (target, str(version)) and by_user:
        logger.info("%s %s is installed already, as %s", target, version, project)
        del requirements[target]
        return
    raise InstallationError(
        f"{project} {dist.version} is installed and has the same files as {target} {version}, "
        f"which is required: pip uninstall {project}, then try again"
    )


def _information(result: Any, project: str) -> Iterator[Any]:
    """Yield what is asked of *project*, by others than itself with an extra."""
    for identifier, criterion in result.criteria.items():
        if canonicalize_name(identifier.partition("[")[0]) == project:
            for item in criterion.information:
                if item.parent is None or item.parent.project_name != project:
                    yield item


def _asked(result: Any, project: str) -> Iterator[tuple[str, Any]]:
    """Yield what is asked of *project*, in words and as pip's requirement."""
    for item in _information(result, project):
        by = f" (from {item.parent.name} {item.parent.version})" if item.parent is not None else ""
        yield f"{item.requirement.format_for_error()}{by}", item.requirement


def _admits(requirement: Any, version: Any) -> bool:
    candidate, asked = requirement.get_candidate_lookup()
    if candidate is not None:  # a path or URL
        return False
    return asked is None or bool(asked.req.specifier.contains(version, prereleases=True))


def _parents(result: Any, project: str) -> Iterator[Any]:
    return (item.parent for item in _information(result, project))


def with_replaced(packages: Mapping[str, Any], replaced: Mapping[str, str]) -> Mapping[str, Any]:
    """Return pip's *packages*, by name, with the projects that are left out."""
    added = {name: packages[target] for name, target in replaced.items() if target in packages}
    return {**added, **packages}
