"""One release, or several, to one target: compared, probed, uploaded, committed, verified.

Everything that can be known before the first upload ends it there. What the target accepted is on
its page, so the same command goes on from there after a failure or a kill:

1. `compare`: files that are there with the same contents are not uploaded again; a file with other
   contents ends it.
2. `probe`: everything that can be refused is refused now, before an upload.
3. `upload` for every file. On a target that shows files at once (`UploadApi`, its `commits_last` is
   false) the variant wheels, then step 4, then the fallbacks. On storage (`StoredIndex`) in any
   order: no page lists them yet.
4. `commit`: merges the variant metadata of the releases with what is there and makes it visible; on
   storage, everything else with it, by one conditional write.

Each of these can be repeated after a kill at any point, with the same result. Both kinds of target
raise `PublishError`; messages never contain secrets.
"""

from __future__ import annotations

import hashlib
import logging
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from rich.filesize import decimal

from pep_variants.errors import VariantError
from variants_index.http import PackageIndexError

from .._console import counted, note, some
from .._indexing.update import same_meaning
from .._indexing.wheelhouse import VariantFile
from .errors import Conflict, PublishError
from .release_contents import UploadKind, by_project, conflict, entry_of, parts_of, same_contents

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from variants_catalog.catalogs import Finding
    from variants_index.pages import Page, PageFile

    from .release_contents import PublishedDistribution, Release
    from .stored_index import StoredIndex
    from .upload_api import UploadApi

    Target: TypeAlias = UploadApi | StoredIndex

logger = logging.getLogger(__name__)

UPLOADED = "uploaded"
PRESENT = "already there"
TO_UPLOAD = "to be uploaded"

VERIFY_SECONDS = 120.0
"""How long to wait for pages that do not show what was published: caches are minutes behind."""

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 15.0


@dataclass(frozen=True)
class Published:
    """What was done.

    Attributes:
        states: `UPLOADED`, `PRESENT` or, in a dry run, `TO_UPLOAD` by filename.
        documents: SHA-256 of the ``*-variants.json`` that is now on the target, by its filename.
        merged: names of those documents that have more than the release brought: what another
            batch, or another publisher, had published before.
    """

    states: dict[str, str]
    documents: dict[str, str] = field(default_factory=dict)
    merged: set[str] = field(default_factory=set)


def compare(target: Target, releases: Sequence[Release]) -> dict[str, str]:
    """Return the state of every file: `PRESENT` or `TO_UPLOAD`.

    Args:
        target: where to.
        releases: from `read_releases`.

    Raises:
        Conflict: the target has files of these names with other contents.
        PublishError: it cannot be read.
    """
    states: dict[str, str] = {}
    differences: list[tuple[PublishedDistribution, PageFile]] = []
    for project, group in by_project(releases).items():
        page = target.page(project)
        for file in (file for release in group for file in release.files):
            listed = entry_of(page, file.filename)
            states[file.filename] = TO_UPLOAD if listed is None else PRESENT
            if listed is not None and not target.is_same(file, listed):
                differences.append((file, listed))
            elif listed is not None:
                logger.debug("Skipping upload of %s: it is there", file.filename)
    if differences:
        raise Conflict(f"{conflict(target.place, differences)}; nothing was uploaded")
    return states


def publish(
    target: Target, releases: Sequence[Release], report: Callable[[str], None], *, dry: bool = False
) -> Published:
    """Publish *releases* to *target*.

    Args:
        target: where to.
        releases: from `read_releases`.
        report: called with a line for each step and each file.
        dry: upload nothing.

    Raises:
        PublishError: the target refuses something, or cannot be reached.
    """
    done = Published(compare(target, releases))
    target.probe(releases, dry=dry)
    parts = parts_of(releases, commits_last=target.commits_last)
    for number, (kind, files) in enumerate(parts, 1):
        documents = sum(release.document is not None for release in releases)
        count = documents if kind is UploadKind.METADATA else len(files)
        report(f"[{number}/{len(parts)}] {kind.value}: {counted(count, 'file')}")
        for file in files:
            if done.states[file.filename] == TO_UPLOAD and not dry:
                target.upload(file)
                done.states[file.filename] = UPLOADED
            size = decimal(file.distribution.size)
            report(f"  {file.filename}: {size}, {done.states[file.filename]}")
        if kind is UploadKind.METADATA and not dry:
            own = {release.document_name: release.document for release in releases}
            for name, data in sorted(target.commit(releases).items()):
                done.documents[name] = hashlib.sha256(data).hexdigest()
                meant = VariantFile(own[name] or data, name).metadata
                more = not same_meaning(VariantFile(data, name).metadata, meant)
                if more:
                    done.merged.add(name)
                report(f"  {name}: published{', with what others published' if more else ''}")
    return done


def verify(target: Target, releases: Sequence[Release], done: Published) -> list[Finding]:
    """Return the findings of ``variants validate`` on the live pages of *target*.

    Pages that do not show everything yet are read again for `VERIFY_SECONDS`.

    Args:
        target: that was published to.
        releases: that were published.
        done: what was published.

    Raises:
        PublishError: the pages do not show what was published.
        PublishError: they cannot be read.
    """
    end = time.monotonic() + VERIFY_SECONDS
    findings: list[Finding] = []
    for project, group in by_project(releases).items():
        pause = FIRST_PAUSE
        while missing := _missing(group, done, target.page(project)):
            left = end - time.monotonic()
            if left <= 0:
                raise PublishError(
                    f"{target.place}: accepted everything, but its page of {project} shows no "
                    f"{some(missing)} after {VERIFY_SECONDS:.0f} seconds: look at it later with "
                    "variants validate"
                )
            if pause == FIRST_PAUSE:
                note(f"waiting for the page of {project} to show {missing[0]}")
            time.sleep(min(pause, left))
            pause = min(pause * 2, LONGEST_PAUSE)
        try:
            findings += target.findings(project, {release.version for release in group})
        except (PackageIndexError, VariantError) as problem:
            raise PublishError(f"{problem}: published, and not verified") from None
    return findings


def _missing(releases: Iterable[Release], done: Published, page: Page | None) -> list[str]:
    """Return the names of the files that the page does not show as they are."""
    missing = []
    for release in releases:
        for file in release.files:
            listed = entry_of(page, file.filename)
            if listed is None or same_contents(file, listed.hashes) is False:
                missing.append(file.filename)
        # Another publisher may have added to it since; its labels are validated later.
        name = release.document_name
        if name in done.documents and entry_of(page, name) is None:
            missing.append(name)
    return missing
