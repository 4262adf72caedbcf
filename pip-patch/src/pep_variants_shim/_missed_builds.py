"""Lines about what pip takes that does not use the accelerator which is here.

Of builds that are missed because no catalogue is on, see `missed_builds`, and of those that have a
publisher's own name, see `unfit_builds`.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from pep_variants import limits

from ._distributions import label_of, machine_of, platforms_of
from ._errors import logger
from ._options import VARIABLE

if TYPE_CHECKING:
    from packaging.version import Version

    from variants_catalog.missed_builds import MissedBuild, Taken

    from ._session import Session

T = TypeVar("T")

_INSTALLS = "variant-switch"
"""An option of ``pip install`` alone."""


def tell_missed(session: Session, result: Any, names: Sequence[str]) -> None:
    """Print the line for what pip has resolved to, once a day; send no request.

    Args:
        session: of the command.
        result: of pip's resolver.
        names: projects in it that the catalogue knows, those that the user named first.
    """
    if session.finder.search_scope.no_index:
        return
    missed = _advice(partial(_missed, session, result, names))
    if missed:
        _tell(session, missed)


def tell_unfit(session: Session, result: Any, names: Collection[str]) -> None:
    """Print which builds with a publisher's own name do not run here; send no request.

    Args:
        session: of the command.
        result: of pip's resolver.
        names: projects in it that may be such builds, `possible_builds`.
    """
    for line in _advice(partial(_unfit, session, result, names)):
        logger.warning("%s", line)


def _advice(find: Callable[[], list[T]]) -> list[T]:
    """Return what *find* returns; nothing in time, where it fails, in a build and for --quiet."""
    if VARIABLE in os.environ or not logger.isEnabledFor(logging.INFO):
        return []
    from pep_variants import safe_files

    try:
        with safe_files.paused(True):
            return safe_files.within(limits.ADVICE_SECONDS, find)
    except Exception:
        logger.debug("No advice about builds of the catalogue", exc_info=True)
        return []


def _unfit(session: Session, result: Any, names: Collection[str]) -> list[str]:
    from pep_variants import wheel_files
    from variants_catalog import missed_builds

    from ._candidates import detect_for

    preferences = session.options.read_settings()
    detect = detect_for(preferences, session.finder, foreign=session._foreign)
    read = {name: wheel_files.read_version(str(result.mapping[name].version)) for name in names}
    known = {name: version for name, version in read.items() if version is not None}
    machine = machine_of(session.finder)
    return [*missed_builds.unfit_builds(known, detect, preferences, machine)]


def _tell(session: Session, found: list[MissedBuild]) -> None:
    from pip._internal.utils.misc import get_prog

    from variants_catalog import missed_builds

    program = get_prog()
    again = "the same command"
    if session.options.values.get(_INSTALLS) is not None:
        named = " ".join(item.project for item in found)
        again = f"{program} install --variant-switch {named}"
    enable = f"{program} config set global.variant-catalog default"
    line = missed_builds.line_of_day(found, enable, f"then {again}", os.environ)
    if line:
        logger.info("%s", line)


def _missed(session: Session, result: Any, names: Sequence[str]) -> list[MissedBuild]:
    from variants_catalog import missed_builds

    from ._candidates import detect_for

    preferences = session.options.read_settings()
    detect = detect_for(preferences, session.finder, foreign=session._foreign)
    machine = machine_of(session.finder)
    taken = ((name, _taken(session, result, name)) for name in names)
    return [*missed_builds.missed_builds(taken, machine, detect, preferences)]


def _taken(session: Session, result: Any, name: str) -> Taken | None:
    """Return what pip takes of a project, None if the user has named the very file."""
    from pep_variants import wheel_files
    from variants_catalog import missed_builds
    from variants_catalog.missed_builds import Taken

    candidate, finder = result.mapping[name], session.finder
    version = wheel_files.read_version(str(candidate.version))
    if version is None or "binary" not in finder.format_control.get_allowed_formats(name):
        return None
    specifiers = []
    for requirement in result.criteria[name].iter_requirement():
        explicit, asked = requirement.get_candidate_lookup()
        is_pinned = asked is not None and ("+" in str(asked.specifier) or asked.has_hash_options)
        if (explicit is not None and not explicit.is_installed) or is_pinned:
            return None
        if asked is not None:
            specifiers.append(asked.specifier)
    dist, link = candidate.dist, candidate.source_link
    listed: list[Version] | None = None
    if candidate.is_installed:
        tags = platforms_of(dist)
        if not tags or dist.direct_url is not None or label_of(dist):
            return None
    elif session.is_accelerated(link):
        return None
    else:
        tags = missed_builds.platform_tags(link.filename)
        texts = {str(item.version) for item in finder.find_all_candidates(name)}  # pip has them
        listed = [each for each in map(wheel_files.read_version, texts) if each is not None]
    return Taken(
        version,
        tags,
        dist.metadata.get_all("Requires-Dist", []),
        _beside(session, result.mapping),
        lambda each: all(item.contains(str(each), prereleases=True) for item in specifiers),
        listed,
        [*finder.index_urls, *finder.find_links],
    )


def _beside(session: Session, mapping: Mapping[str, Any]) -> dict[str, Version | None]:
    from pep_variants import wheel_files

    both = {**session.installed, **mapping}
    return {name: wheel_files.read_version(str(item.version)) for name, item in both.items()}
