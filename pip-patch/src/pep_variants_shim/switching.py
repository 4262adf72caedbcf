"""Installed variants that are no longer the best for the machine, such as after a GPU was added.

`switch_variants` reinstalls them (``--variant-switch``). A switch keeps the installed version. The
project is resolved as if it were not installed, so the dependencies of its new variant are
installed too; other installed distributions that satisfy the requirements stay.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .errors import logger
from .links import label_of_link

if TYPE_CHECKING:
    from .session import Session


@dataclass(frozen=True)
class Installed:
    """An installed distribution in the result of a resolution.

    Attributes:
        project: normalized name.
        dist: pip's distribution.
        label: its label, empty if it is not a variant.
    """

    project: str
    dist: Any
    label: str

    def __str__(self) -> str:
        as_variant = f"as variant {self.label}" if self.label else "without variant"
        return f"{self.project} {self.dist.version} is installed {as_variant}"


def switch_variants(session: Session, resolver: Any, resolve: Callable[[], Any]) -> Any:
    """Return the result of *resolve*, with better variants in place of installed ones.

    Args:
        session: of the command.
        resolver: pip's resolver.
        resolve: runs it; returns pip's ``RequirementSet``.

    Raises:
        InstallationError: a requirement cannot be satisfied.
    """
    requirements = resolve()
    known: dict[str, Any] = resolver.factory._installed_dists
    switched: dict[str, Installed] = {}
    seen: set[str] = set()
    while True:
        found = [
            item for item in installed_in(session, resolver._result.mapping.values())
            if item.project not in seen
            # It was not built from a directory or repository.
            and (item.label or not (item.dist.editable or item.dist.direct_url))
        ]  # fmt: skip
        seen.update(item.project for item in found)
        better = {
            item.project: item for item in found if _is_better(session, item)
        }  # fmt: skip
        if not better:
            break
        switched.update(better)
        versions = {project: item.dist.version for project, item in switched.items()}
        with _hidden(known, switched), session.holding(versions):
            requirements = resolve()
    _mark(requirements.requirements, resolver, switched)
    return requirements


def _is_better(session: Session, item: Installed) -> bool:
    """Return whether another variant replaces *item*, and print why."""
    forced = session.options.forced.get(item.project)
    if forced is not None:
        if forced == item.label:
            return False
        wanted = f"variant {forced}" if forced else "the non-variant wheel"
        logger.info("%s: switching to %s, as asked for", item, wanted)
        return True
    text = better_than(session, item)
    if text is None:
        if item.label:
            logger.warning("%s, and no index in use lists that version: it is not switched", item)
        return False
    if text:
        logger.info("%s: switching", text)
    return bool(text)


def better_than(session: Session, item: Installed) -> str | None:
    """Return in a sentence which variant fits better than *item*, empty if none does.

    None: no index in use lists the installed version.
    """
    version = item.dist.version
    found = session.finder.find_all_candidates(item.project)
    held = session.catalog.release(item.project, version)
    found = [
        candidate
        for candidate in found
        if session.catalog.release(item.project, candidate.version) == held
    ]
    if not found:
        return None
    ordering = session.get_ordering()
    return ordering.advice(item.project, version, item.label or None, found) or ""


def installed_in(session: Session, candidates: Iterable[Any]) -> Iterator[Installed]:
    """Yield those of pip's *candidates* that are installed."""
    for candidate in candidates:
        dist = getattr(candidate, "dist", None)  # one with extras has none of its own
        if candidate.is_installed and dist is not None:
            yield Installed(candidate.project_name, dist, session.label_of(dist))


@contextlib.contextmanager
def _hidden(known: dict[str, Any], items: dict[str, Installed]) -> Iterator[None]:
    """Remove *items* from *known*, the installed distributions of pip's factory."""
    removed = {project: known.pop(project) for project in items if project in known}
    try:
        yield
    finally:
        known.update(removed)


def _mark(requirements: dict[str, Any], resolver: Any, items: dict[str, Installed]) -> None:
    """Have pip uninstall what is replaced; drop requirements whose variant is installed already."""
    for candidate in resolver._result.mapping.values():
        item = items.get(candidate.project_name)
        if item is None or candidate.name != candidate.project_name:
            continue
        link = candidate.source_link
        label = None if link is None else label_of_link(link)
        if (label or "") == item.label and candidate.version == item.dist.version:
            requirements.pop(item.project, None)  # hashes or constraints allow no other
        elif item.project in requirements:
            before = resolver.factory.get_dist_to_uninstall(candidate)
            requirements[item.project].should_reinstall = before is not None
