"""Projects and builds of them under other names: the same files, of which only one is installed.

A project may be required beside a build of it under the publisher's name, as ``cupy`` beside the
``cupy-cuda13x`` that cudf requires. The latter then stands for the project.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from pip._internal.exceptions import InstallationError
from pip._vendor.packaging.utils import canonicalize_name

from variants_catalog.entries import same_files

from ._distributions import origin_of
from ._errors import logger

if TYPE_CHECKING:
    from variants_catalog.entries import CatalogProject

    from ._session import Session


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
    projects = {*_beginnings(requirements), *installed}
    names = {*requirements, *installed}
    for project, found in same_files(projects, names, session.catalog.entry):
        entry = session.catalog.entry(project)
        new = [name for name in found if name not in installed]
        if project in requirements:
            if any(_project_of(item.parent) == project for item in _asked(result, found[0])):
                continue  # the project's own file has no code, but requires the build
            _stand_in(session, result, requirements, project, found[0])
        elif project in installed and new and not _is_empty(entry, installed[project], new[0]):
            _keep(result, requirements, installed[project], new[0])
        elif len(found) > 1 and new:
            old = next((name for name in found if name in installed), "")
            raise InstallationError(
                f"{' and '.join(found)} have the same files, those of {project}: "
                + (f"pip uninstall {old}, then try again" if old else "require one of them")
            )


def _beginnings(names: Iterable[str]) -> Iterator[str]:
    """Yield *names* and what they begin with: builds are named ``PROJECT-cuda12`` or the like."""
    for name in names:
        yield name
        yield from (name[:at] for at, character in enumerate(name) if character == "-")


def _is_empty(entry: CatalogProject | None, dist: Any, target: str) -> bool:
    """Return whether *dist* has no code: it is no release of its project, or requires *target*."""
    versions = None if entry is None else entry.placeholder
    return (versions is not None and versions.contains(str(dist.version), prereleases=True)) or any(
        canonicalize_name(item.name) == target for item in dist.iter_dependencies()
    )


def _stand_in(
    session: Session, result: Any, requirements: dict[str, Any], project: str, target: str
) -> None:
    """Leave out *project*, or say why *target* does not stand for it."""
    installed = session.installed
    coming = target in requirements
    version = result.mapping[target].version if coming else installed[target].version
    both = f"{target} {version}, which is {'also required' if coming else 'installed'}"
    if unmet := [*filter(None, (_unmet(item, version) for item in _asked(result, project)))]:
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
    is_it = origin is not None and (origin.name, origin.version) == (target, str(version))
    if is_it and all(item.parent is None for item in _asked(result, target)):
        logger.info("%s %s is installed already, as %s", target, version, project)
        del requirements[target]
        return
    raise InstallationError(
        f"{project} {dist.version} is installed and has the same files as {target} {version}, "
        f"which is required: pip uninstall {project}, then try again"
    )


def _asked(result: Any, project: str) -> Iterator[Any]:
    """Yield requirement and parent of what others than *project* itself ask of it."""
    for identifier, criterion in result.criteria.items():
        if canonicalize_name(identifier.partition("[")[0]) == project:
            for item in criterion.information:
                if _project_of(item.parent) != project:
                    yield item


def _project_of(candidate: Any) -> str:
    return "" if candidate is None else str(candidate.project_name)


def _unmet(item: Any, version: Any) -> str:
    """Return what is asked and by whom, empty if *version* satisfies it."""
    candidate, asked = item.requirement.get_candidate_lookup()
    is_url = candidate is not None
    if not is_url and (asked is None or asked.req.specifier.contains(version, prereleases=True)):
        return ""
    by = f" (from {item.parent.name} {item.parent.version})" if item.parent is not None else ""
    return f"{item.requirement.format_for_error()}{by}"
