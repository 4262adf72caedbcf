"""The result of a resolution: messages about it, and what is kept of it for the installation."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from pip._internal.exceptions import DistributionNotFound, InstallationError
from pip._vendor.packaging.utils import canonicalize_name

from pep_variants import limits

from . import OWN
from ._built_against import has_variants, replace_builds
from ._errors import logger
from ._links import label_of_link

if TYPE_CHECKING:
    from ._candidates import CandidateOrdering
    from ._session import Session

T = TypeVar("T")


@contextmanager
def explained(session: Session) -> Iterator[None]:
    """If the resolution fails, say what that has to do with variants.

    Raises:
        InstallationError: a forced label does not exist or does not fit.
        DistributionNotFound: pip's error, with the reasons against every variant where no variant
            of a project fits.
    """
    try:
        yield
    except DistributionNotFound as error:
        if session.ordering is None:
            raise
        missing = session.ordering.variants.missing
        if missing:
            raise InstallationError("; ".join(map(str, missing.values()))) from error
        reasons = _why_none_fits(session.ordering, session.finder, error)
        if not reasons:
            raise
        raise DistributionNotFound(f"{error}. {reasons}") from error


def resolved(session: Session, resolver: Any, resolve: Callable[..., Any]) -> Any:
    """Return the result of *resolve*; see `switching` for what moves along.

    Args:
        session: of the command.
        resolver: pip's resolver.
        resolve: runs it, with more requirements if any are given.

    Raises:
        InstallationError: a project and a build of it under another name are required.
    """
    requirements = resolve()
    preferences = session.options.preferences
    switch = preferences is not None and preferences.switch
    chooses = bool(requirements.requirements) and session.chooses_of(
        candidate.project_name for candidate in resolver._result.mapping.values()
    )
    if switch or chooses or has_variants(resolver._result):
        from ._leftovers import settle
        from ._switching import Rounds, move_families, switch_variants

        rounds = Rounds(session, resolver, resolve, requirements)
        if switch:
            switch_variants(rounds)
        move_families(rounds)
        replace_builds(rounds)
        settle(rounds, switch=switch)
        if session.ordering is not None:  # what was said of earlier rounds is not said again
            for requirement in rounds.requirements.values():
                if requirement.link is not None:
                    session.ordering.report(requirement.link)
        kept = [name for name in session.kept if name not in rounds.requirements]
        for name in sorted(kept, key=lambda name: (name not in session.asked_for, name))[:1]:
            logger.info("%s", session.kept[name])
        requirements = rounds.found
    if session.catalog.concerns(requirements.requirements):
        from ._same_files import leave_out

        leave_out(session, resolver._result, requirements.requirements)
    return requirements


def note_result(
    session: Session, result: Any, requirements: Mapping[str, Any], wanted: Mapping[str, Any]
) -> None:
    """Keep the chosen labels, and print what the user has to know about the result.

    Args:
        session: of the command.
        result: of pip's resolver.
        requirements: what is going to be installed, by normalized project name.
        wanted: version specifiers of the projects that the user named.

    Raises:
        InstallationError: an installed distribution is not the variant that the user forced, or
            both distributions of this package would be installed.
    """
    candidates = result.mapping
    for name, requirement in requirements.items():
        session.note_chosen(name, requirement.link)
        if session.ordering is not None:
            link = candidates[name].source_link
            session.ordering.listener.tell_taken(name, candidates[name].version, link)
        other = OWN[1 - OWN.index(name)] if name in OWN else name
        if other != name and (other in requirements or other in session.installed):
            raise InstallationError(
                f"{name} and {other} have the same files: pip uninstall {other}, then try again"
            )
        if "===" in str(wanted.get(name, "")) and label_of_link(requirement.link) is None:
            session.catalog.report_left_out(name, candidates[name].version)
    if session.ordering is not None:
        _report_older(session.ordering, candidates.values())
        links = {name: item.link for name, item in requirements.items() if item.link is not None}
        _report_displaced(session, session.ordering, links)
    if any(item.is_installed and item.project_name in wanted for item in candidates.values()):
        _advise(session, result, wanted)
    if session.options.preferences is None:
        return
    considered = session.ordering.listener.seen if session.ordering is not None else ()
    projects = {candidate.project_name for candidate in candidates.values()}
    session.options.warn_of_unmatched(projects, considered)
    _check_installed(session, candidates.values())


def _check_installed(session: Session, candidates: Iterable[Any]) -> None:
    for candidate in candidates:
        label = session.options.forced.get(candidate.project_name)
        dist = getattr(candidate, "dist", None)  # candidates with extras have none
        if label is None or dist is None or not candidate.is_installed:
            continue
        installed = session.label_of(dist)
        if installed != label:
            raise InstallationError(
                f"{candidate.project_name} {candidate.version} is installed already, "
                f"{f'as variant {installed}' if installed else 'without variant'}, not as "
                f"--variant {candidate.project_name}={label} asks for: "
                "add --variant-switch to replace it"
            )


def _why_none_fits(ordering: CandidateOrdering, finder: Any, error: Exception) -> str:
    """Return the reasons against every variant of the projects in the conflict of *error*."""
    from pep_variants import selection as wheel_selection

    projects: dict[str, None] = {}
    for cause in getattr(error.__cause__, "causes", ()):
        projects.setdefault(canonicalize_name(cause.requirement.project_name))
    reasons = []
    for project in projects:
        unfit = ordering.variants.unfit(project)
        if unfit is not None:
            plain = _plain_versions(finder, project)
            reasons.append(str(wheel_selection.nothing_fits(project, *unfit, plain=plain)))
    return "\n".join(reasons)


def _plain_versions(finder: Any, project: str) -> list[Any]:
    """Return the versions of *project* that have a non-variant file, newest first."""
    found = {
        item.version
        for item in finder.find_all_candidates(project)
        if label_of_link(item.link) is None
    }
    return sorted(found, reverse=True)


def _report_older(ordering: CandidateOrdering, candidates: Iterable[Any]) -> None:
    """Print once for each project that no variant of a newer version fits."""
    lines: dict[str, None] = {}
    for candidate in candidates:
        verb = "is kept" if candidate.is_installed else "was chosen"
        name, version = candidate.project_name, candidate.version
        lines[ordering.variants.passed_over(name, version, verb)] = None
    for line in filter(None, lines):
        logger.info("%s", line)


def _report_displaced(
    session: Session, ordering: CandidateOrdering, links: Mapping[str, Any]
) -> None:
    """Print a line for each project of which another version would be taken but for a build.

    Args:
        session: of the command.
        ordering: of its candidates.
        links: of what is going to be installed, by normalized project name.
    """
    links = {name: link for name, link in links.items() if ordering.admits_several(name)}
    if not links:  # no thread, and nothing to import
        return
    notes = session.version_notes

    def look() -> None:
        for project, link in links.items():
            note = ordering.version_note(project, link)
            if note is not None:
                notes[project] = note

    _advised(session, limits.ADVICE_SECONDS, look)
    for note in list(notes.values()):
        logger.info("%s", note.text)


def _advise(session: Session, result: Any, wanted: Collection[str]) -> None:
    """Print better variants of what is installed and the user named, and how to switch."""
    from ._switching import better_than, installed

    end = time.monotonic() + limits.ADVICE_SECONDS
    for project in sorted(wanted):
        candidate, item = result.mapping.get(project), installed(session, project)
        if candidate is None or item is None or not candidate.is_installed:
            continue
        if project in session.options.forced:
            continue
        if not (item.label or session.has_variants(project) or session.catalog.recognises(project)):
            continue
        left = end - time.monotonic()
        if left <= 0:
            break
        text = _advised(session, left, functools.partial(better_than, session, result, item))
        if text:
            logger.info("%s: to switch, add --variant-switch", text)


def _advised(session: Session, seconds: float, look: Callable[[], T]) -> T | None:
    """Return what *look* returns, None after any error or if it takes longer than *seconds*.

    pip alone would send no request for it.
    """
    from pep_variants import safe_files

    from ._fetching import impatient

    try:
        with impatient(session.network, seconds=seconds):
            return safe_files.within(seconds, look)
    except Exception:
        logger.debug("No advice about other variants", exc_info=True)
        return None
