"""Lines about what is resolved and does not use the accelerator of a target.

Of builds that are missed because no catalogue is on, see `missed_build`, and of those that have a
publisher's own name, see `unfit_builds`.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from variants_catalog import possible_builds, project_names

if TYPE_CHECKING:
    from packaging.version import Version

    from pep_variants.internal import Sources
    from resolvelib_variants.resolution import IndexResolver, Package, RequirementSet, Resolution
    from variants_catalog.internal import MissedBuild

_logger = logging.getLogger(__name__)
_HOW = "variants catalog enable, then the same command"


def missed_line(
    resolver: IndexResolver,
    sources: Sources,
    wanted: RequirementSet,
    resolutions: Sequence[Resolution],
) -> str:
    """Return the line for what was resolved, once a day; empty for nothing to say.

    Args:
        resolver: that has resolved.
        sources: where files are from.
        wanted: what the user asked for.
        resolutions: of each target.
    """
    names = {package.name for each in resolutions for package in each.packages} & project_names()
    preferences = resolver.preferences
    if not names or preferences.catalog is not None or not preferences.use_variants:
        return ""
    from variants_catalog.internal import line_of_day

    found = (
        missed
        for resolution in resolutions
        for package in resolution.packages
        if package.name in names
        if (missed := _missed(package, resolution, resolver, sources, wanted)) is not None
    )
    try:
        return line_of_day(found, _HOW, os.environ)
    except Exception:  # it is no reason to fail
        _logger.debug("No advice about the catalogue", exc_info=True)
        return ""


def unfit_lines(resolver: IndexResolver, resolutions: Sequence[Resolution]) -> list[str]:
    """Return which builds with a publisher's own name do not run on a target."""
    from variants_catalog.internal import unfit_builds

    found: list[str] = []
    for each in resolutions:
        versions = {package.name: package.version for package in each.packages}
        builds = {name: versions[name] for name in possible_builds(versions)}
        if builds:
            detect = resolver.detector(each.target).platform
            found += unfit_builds(builds, detect, resolver.preferences)
    return found


def _missed(
    package: Package,
    resolution: Resolution,
    resolver: IndexResolver,
    sources: Sources,
    wanted: RequirementSet,
) -> MissedBuild | None:
    from variants_catalog.internal import Taken, missed_build, platform_tags, shipped_catalog

    name, target = package.name, resolution.target
    asked = [*wanted.requirements, *wanted.constraints]
    if package.label is not None or any(item.hashes for item in asked):
        return None
    requirements = [item.requirement for item in asked]
    texts = (text for each in resolution.packages for text in each.requires)
    about = [*_about(name, requirements), *_about(name, map(Requirement, texts))]
    if any(item.url is not None or "+" in str(item.specifier) for item in about):
        return None
    entry = shipped_catalog().project(name)
    assert entry is not None
    return missed_build(
        entry,
        Taken(
            package.version,
            platform_tags(package.filename),
            package.requires_dist,
            {each.name: each.version for each in resolution.packages},
            partial(_admits, about),
            indexes=[
                *filter(None, (sources.index_url, *sources.extra_index_urls, *sources.find_links))
            ],
        ),
        target.tags[0].platform,
        resolver.detector(target).platform,
        resolver.preferences,
    )


def _about(name: str, requirements: Iterable[Requirement]) -> Iterator[Requirement]:
    return (item for item in requirements if canonicalize_name(item.name) == name)


def _admits(requirements: Sequence[Requirement], version: Version) -> bool:
    return all(item.specifier.contains(version, prereleases=True) for item in requirements)
