"""Projects that are required beside a build of them under its publisher's name.

Both have the same files: cudf requires ``cupy-cuda13x``, and something else ``cupy``. Whatever is
installed later would overwrite the other, so the build stands for the project.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace

from pep_variants import machines
from pep_variants import selection as wheel_selection
from pep_variants.errors import NoSuchVariant, redacted
from variants_catalog.entries import same_files as catalog_builds
from variants_index.finder import PackageFinder

from .errors import NoSolution, SameFiles
from .index_provider import SpecifierRequirement
from .result import Package, Resolution

MAX_TRIES = 8
"""Labels that are left out, one after the other, to have builds agree."""


def same_files(packages: Iterable[Package], finder: PackageFinder) -> dict[str, str]:
    """Return by project which other one of *packages* is a build of it.

    Raises:
        SameFiles: several are, or the user names a file of the project.
        CatalogError: an entry cannot be read.
    """
    by_name = {package.name: package for package in packages}
    found: dict[str, str] = {}
    for name, builds in catalog_builds(by_name, by_name, finder.entries.entry):
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


def stand_in(provided: Mapping[str, str], guilty: Collection[str]) -> tuple[str, str] | None:
    """Return a project and the build that stands for it, where either is in the way.

    Args:
        provided: builds by project.
        guilty: projects that are in the way.
    """
    pairs = provided.items()
    return next(((name, build) for name, build in pairs if {name, build} & {*guilty}), None)


def same_files_failure(
    name: str, build: str, failure: NoSolution, roots: Iterable[object]
) -> SameFiles:
    """Return the error for the project *name* and *build*, which stands for it.

    Args:
        name: normalized name of the project.
        build: normalized name of the build.
        failure: why there is no solution. Without the requirement of each version of the project on
            its own build, which was added here, not asked for.
        roots: what the user asked for.
    """
    details = [
        f"you asked for {need}"
        for need in roots
        if isinstance(need, SpecifierRequirement) and need.project in (name, build)
    ]
    cause = f"no version of {build} meets what is asked of both"
    return SameFiles(name, [build], cause, tuple(dict.fromkeys((*details, *failure.details))))


def agreeing(resolve: Callable[[Mapping[str, Collection[str]]], Resolution]) -> Resolution:
    """Return a resolution whose builds do not require packages with the same files.

    Such as nvidia-nccl-cu12 and nvidia-nccl-cu13. Where no builds agree that use the accelerator,
    a warning names the packages.

    Args:
        resolve: resolves without these labels, by project.

    Raises:
        Exception: what *resolve* raises without excluded labels.
    """
    excluded: dict[str, set[str]] = {}
    found, notes, tried = resolve(excluded), list[str](), set[tuple[str, str]]()
    while pair := next(wheel_selection.rivals(found.by_name), ()):
        for package in found.packages:
            key = package.name, package.label or ""
            own = _required(found.by_name, package.name).intersection(pair)
            if not _is_accelerated(package) or key in tried or not 0 < len(own) < len(pair):
                continue
            tried.add(key)
            labels = {**excluded, key[0]: {*excluded.get(key[0], ()), key[1]}}
            try:
                other = resolve(labels) if len(tried) <= MAX_TRIES else found
            except (NoSolution, NoSuchVariant):
                continue
            if other is not found and _is_accelerated(other.by_name.get(package.name)):
                found, excluded = other, labels
                notes.append(
                    f"variant {key[1]} of {key[0]} is left out: it requires {' and '.join(own)}, "
                    f"which has the files of {' and '.join(sorted({*pair} - own))}"
                )
                break
        else:
            notes.append(f"{' and '.join(pair)} have the same files, and both are required")
            break
    return replace(found, warnings=(*found.warnings, *notes)) if notes else found


def _required(packages: Mapping[str, Package], name: str) -> set[str]:
    """Return what a package depends on, and what that depends on, and so on."""
    required, waiting = set[str](), [name]
    while waiting:
        found = {*packages[waiting.pop()].depends} - required
        required |= found
        waiting += found & packages.keys()
    return required


def _is_accelerated(package: Package | None) -> bool:
    return package is not None and not machines.ACCELERATORS.keys().isdisjoint(
        package.properties or ()
    )
