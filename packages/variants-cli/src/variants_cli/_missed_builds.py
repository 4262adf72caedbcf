"""Lines about what is resolved and does not use the accelerator of a target.

Of builds that are missed because no catalogue is on, see `missed_builds`, and of those that have a
publisher's own name, see `unfit_builds`.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from variants_catalog import missed_builds, possible_builds, project_names
from variants_catalog.missed_builds import Taken

if TYPE_CHECKING:
    from packaging.version import Version

    from pep_variants.preferences import Sources
    from resolvelib_variants.resolution import IndexResolver, Package, RequirementSet, Resolution

_logger = logging.getLogger(__name__)


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
    known = project_names()
    missed = (
        build
        for resolution in resolutions
        for build in missed_builds.missed_builds(
            (
                (package.name, _taken(package, resolution, sources, wanted))
                for package in resolution.packages
                if package.name in known
            ),
            resolution.target.tags[0].platform,
            resolver.detector(resolution.target).platform,
            resolver.preferences,
        )
    )
    try:
        return missed_builds.line_of_day(
            missed, "variants catalog enable", "then the same command", os.environ
        )
    except Exception:  # it is no reason to fail
        _logger.debug("No advice about the catalogue", exc_info=True)
        return ""


def unfit_lines(resolver: IndexResolver, resolutions: Sequence[Resolution]) -> list[str]:
    """Return which builds with a publisher's own name do not run on a target."""
    found: list[str] = []
    for each in resolutions:
        versions = {package.name: package.version for package in each.packages}
        builds = {name: versions[name] for name in possible_builds(versions)}
        if builds:
            machine, detect = each.target.tags[0].platform, resolver.detector(each.target).platform
            found += missed_builds.unfit_builds(builds, detect, resolver.preferences, machine)
    return found


def _taken(
    package: Package, resolution: Resolution, sources: Sources, wanted: RequirementSet
) -> Taken | None:
    """Return what is taken of a project; None for a variant, or if the user has named the file."""
    asked = [*wanted.requirements, *wanted.constraints]
    if package.label is not None or any(item.hashes for item in asked):
        return None
    texts = (text for each in resolution.packages for text in each.requires)
    requirements = [*(item.requirement for item in asked), *map(Requirement, texts)]
    about = [item for item in requirements if canonicalize_name(item.name) == package.name]
    if any(item.url is not None or "+" in str(item.specifier) for item in about):
        return None
    return Taken(
        package.version,
        missed_builds.platform_tags(package.filename),
        package.requires_dist,
        {each.name: each.version for each in resolution.packages},
        partial(_admits, about),
        indexes=filter(None, (sources.index_url, *sources.extra_index_urls, *sources.find_links)),
    )


def _admits(requirements: Sequence[Requirement], version: Version) -> bool:
    return all(item.specifier.contains(version, prereleases=True) for item in requirements)
