"""Installed variants that are no longer the best for the machine, such as after a GPU was added.

`switch_variants` reinstalls them (``--variant-switch``); `advise` names the better variant and the
command that switches. A switch keeps the installed version. The project is resolved as if it were
not installed, so the dependencies of its new variant are installed too; other installed
distributions that satisfy the requirements stay.
"""

from __future__ import annotations

import contextlib
import contextvars
import optparse
import shlex
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pep_variants.errors import redacted
from pep_variants.limits import ADVICE_SECONDS
from pep_variants.timeouts import within

from .catalog_links import label_of_link
from .errors import logger
from .patience import impatient

if TYPE_CHECKING:
    from .session import Session

_REPEATABLE = {
    "extra_index_urls": "--extra-index-url",
    "find_links": "--find-links",
    "trusted_hosts": "--trusted-host",
}
_VALUES = {"index_url": "--index-url"}
_FLAGS = {"no_index": "--no-index", "use_user_site": "--user"}
"""pip's options that another command needs to find and install the same files, by ``dest``."""


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
            item for item in _installed(session, resolver._result.mapping.values())
            if item.project not in seen and _may_switch(item)
        ]  # fmt: skip
        seen.update(item.project for item in found)
        better = {
            item.project: item for item in found if _is_better(session, item)
        }  # fmt: skip
        if not better:
            break
        switched.update(better)
        with _hidden(known, switched), session.holding(_versions(switched)):
            requirements = resolve()
    _mark(requirements.requirements, resolver, switched)
    return requirements


def advise(session: Session, candidates: Iterable[Any], wanted: Collection[str]) -> None:
    """Print better variants of installed projects that the user named, and the command to switch.

    pip alone would send no request for them. So all of them together may take `ADVICE_SECONDS`, and
    errors are logged as debug messages only.
    """
    end = time.monotonic() + ADVICE_SECONDS
    for item in _installed(session, candidates):
        if item.project not in wanted or item.project in session.options.forced:
            continue
        if not (
            item.label
            or session.has_variants(item.project)
            or session.catalog.recognises(item.project)
        ):
            continue
        left = end - time.monotonic()
        if left <= 0:
            break
        look = contextvars.copy_context().run
        try:
            with impatient(session.network, seconds=left):
                text = within(left, lambda: look(_better_than, session, item))  # noqa: B023
        except Exception:
            logger.debug("No advice about a better variant of %s", item.project, exc_info=True)
            continue
        if text:
            words = ["pip", "install", "--variant-switch", *session.options.repeated()]
            command = " ".join(map(shlex.quote, [*words, item.project]))
            logger.info("%s: to switch, %s", text, command)


def _is_better(session: Session, item: Installed) -> bool:
    """Return whether another variant replaces *item*, and print why."""
    forced = session.options.forced.get(item.project)
    if forced is not None:
        if forced == item.label:
            return False
        wanted = f"variant {forced}" if forced else "the non-variant wheel"
        logger.info("%s: switching to %s, as asked for", item, wanted)
        return True
    text = _better_than(session, item)
    if text is None:
        if item.label:
            logger.warning("%s, and no index in use lists that version: it is not switched", item)
        return False
    if text:
        logger.info("%s: switching", text)
    return bool(text)


def _better_than(session: Session, item: Installed) -> str | None:
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


def _installed(session: Session, candidates: Iterable[Any]) -> Iterator[Installed]:
    for candidate in candidates:
        dist = getattr(candidate, "dist", None)  # one with extras has none of its own
        if candidate.is_installed and dist is not None:
            yield Installed(candidate.project_name, dist, session.label_of(dist))


def _may_switch(item: Installed) -> bool:
    """Return whether *item* may be replaced: it was not built from a directory or repository."""
    return bool(item.label) or not (item.dist.editable or item.dist.direct_url)


def _versions(items: dict[str, Installed]) -> dict[str, Any]:
    return {project: item.dist.version for project, item in items.items()}


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


def repeated_options(
    parser: optparse.OptionParser, options: optparse.Values, ours: Iterable[optparse.Option]
) -> list[str]:
    """Return the options of a command line that another command needs to find the same files.

    Options from pip's configuration or variables are left out: they apply to that command too.
    Passwords in URLs are redacted.

    Args:
        parser: of the command.
        options: its values.
        ours: the variant options.
    """
    # optparse appends to the default lists themselves.
    lists = [*_REPEATABLE, *(str(item.dest) for item in ours if item.action == "append")]
    parser.set_defaults(**{dest: [] for dest in lists})
    configured = vars(parser.get_default_values())
    names = {**_REPEATABLE, **_VALUES, **_FLAGS}
    names |= {str(item.dest): item.get_opt_string() for item in ours}
    words = []
    for dest, name in names.items():
        value, before = getattr(options, dest, None), configured.get(dest)
        if not value or value == before:
            continue
        if value is True:
            words.append(name)
            continue
        values = value if isinstance(value, list) else [value]
        if isinstance(before, list) and values[: len(before)] == before:
            values = values[len(before) :]
        for each in values:
            words += [name, redacted(str(each))]
    return words
