"""After publishing: whether the index shows what was published, as installers accept it.

Caches in front of an index may be minutes behind, so the pages are read again for a while.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pep_variants.errors import VariantError
from pep_variants.model.filename import metadata_filename
from variants_index.errors import PackageIndexError

from ..checks.live_index import check_live
from .errors import PublishError, Unfinished
from .index_pages import Presence, presence_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from packaging.utils import NormalizedName

    from ..checks.finding import Finding
    from .reporting import Reporter
    from .target import Committed, Release, Target

SECONDS = 120.0
"""How long to wait for pages."""

_LONGEST_PAUSE = 15.0


def verify(
    target: Target,
    releases: Sequence[Release],
    committed: Committed,
    reporter: Reporter,
    *,
    seconds: float | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> tuple[int, list[Finding]]:
    """Check *releases* on the live pages of *target*.

    Args:
        target: that was published to.
        releases: that were published.
        committed: their metadata.
        reporter: shows what is waited for.
        seconds: how long to wait for pages that do not show them yet; None for `SECONDS`.
        sleep: waits.

    Returns:
        The number of checked files, and the findings of ``variants validate``.

    Raises:
        Unfinished: the pages do not show what was published.
        PublishError: they cannot be read.
    """
    projects: dict[NormalizedName, list[Release]] = {}
    for release in releases:
        projects.setdefault(release.project, []).append(release)
    seconds = SECONDS if seconds is None else seconds
    end = time.monotonic() + seconds
    for project, group in projects.items():
        pause = 0.5
        while missing := _missing(group, committed, target.listed(project)):
            left = end - time.monotonic()
            if left <= 0:
                raise Unfinished(
                    f"{target.place}: accepted everything, but its page of {project} shows no "
                    f"{missing[0]}"
                    + (f", nor {len(missing) - 1} more" if len(missing) > 1 else "")
                    + f" after {seconds:.0f} seconds: look at it later with variants validate "
                    f"{target.page_url(project) or ''}".rstrip()
                )
            if pause == 0.5:
                reporter.note(f"waiting for the page of {project} to show {missing[0]}")
            sleep(min(pause, left))
            pause = min(pause * 2, _LONGEST_PAUSE)
    checked, findings = 0, []
    session = target.session()
    for project, group in projects.items():
        url = target.page_url(project)
        if session is None or url is None:
            continue
        keys = {(release.project, release.version) for release in group}
        try:
            count, found = check_live(url, session, releases=keys)
        except (PackageIndexError, VariantError) as problem:
            raise PublishError(f"{problem}: published, and not verified") from None
        checked += count
        findings += found
    return checked, findings


def _missing(
    releases: Iterable[Release], committed: Committed, there: Mapping[str, Mapping[str, str]]
) -> list[str]:
    """Return the names of the files that the page does not show as they are."""
    missing = []
    for release in releases:
        for file in release.files:
            item = file.distribution
            presence = presence_of(item.path, item.sha256, there.get(file.filename))
            if presence in (Presence.ABSENT, Presence.OTHER):
                missing.append(file.filename)
        if release.document is not None:
            name = metadata_filename(release.project, release.version)
            # Another publisher may have added to it since; its labels are validated later.
            if name in committed.documents and name not in there:
                missing.append(name)
    return missing
