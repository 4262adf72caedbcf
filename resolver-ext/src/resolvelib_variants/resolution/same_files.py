"""Projects that are required beside a build of them under its publisher's name.

Both have the same files: cudf requires ``cupy-cuda13x``, and something else ``cupy``. Whatever is
installed later would overwrite the other, so the build stands for the project.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from pep_variants.internal import redacted
from variants_catalog.internal import same_files as catalog_builds
from variants_index import PackageFinder

from .errors import NoSolution, SameFiles
from .index_provider import SpecifierRequirement
from .result import Package


def same_files(packages: Iterable[Package], finder: PackageFinder) -> dict[str, str]:
    """Return by project which other one of *packages* is a build of it.

    Raises:
        SameFiles: several are, or the user names a file of the project.
        CatalogError: an entry cannot be read.
    """
    by_name = {package.name: package for package in packages}
    found: dict[str, str] = {}
    for name, builds in catalog_builds(by_name, by_name, finder.entry):
        package = by_name[name]
        is_renamed = package.candidate.published_name != name
        if not is_renamed and set(builds) <= {*package.depends}:
            continue  # it requires its builds itself, so it has no files of its own
        if len(builds) > 1:
            raise SameFiles(name, builds, "require one of them alone")
        if package.candidate.direct:
            raise SameFiles(name, builds, f"leave out {redacted(package.file.url)}")
        found[name] = builds[0]
    return found


def with_same_files(
    failure: NoSolution,
    provided: Mapping[str, str],
    guilty: Collection[str],
    roots: Iterable[object],
) -> NoSolution:
    """Return the error for *failure*, which names a project and the build that stands for it.

    Args:
        failure: why there is no solution.
        provided: builds by project.
        guilty: projects that are in the way.
        roots: what the user asked for.
    """
    for name, build in provided.items():
        if name in guilty or build in guilty:
            details = [
                f"you asked for {need}"
                for need in roots
                if isinstance(need, SpecifierRequirement) and need.project in (name, build)
            ]
            # The requirement of each version on its own build was added here, not asked for.
            details += (text for text in failure.details if not text.startswith(f"{name} "))
            cause = f"no version of {build} meets what is asked of both"
            return SameFiles(name, [build], cause, tuple(dict.fromkeys(details)))
    return failure
