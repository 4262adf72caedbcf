"""One release, or several, to one target: compared, probed, uploaded, committed, verified.

Everything that can be known before the first upload ends it there. After that every file that the
target accepted is in the journal, so the same command goes on after a failure or a kill:

1. `listed`: files that are there with the same hash are not uploaded again; another hash ends it.
2. `probe`: everything that can be refused is refused now, before an upload.
3. `upload` for every file. On a target that shows files at once (`UploadApi`, its `commits_last` is
   false) the variant wheels, then step 4, then the fallbacks. On storage (`StorageTarget`) in any
   order, `parallel` at a time: no page lists them yet.
4. `commit`: merges the variant metadata of the releases with what is there and makes it visible; on
   storage, everything else with it, by one conditional write.

Each of these can be repeated after a kill at any point, with the same result. Both kinds of target
raise `PublishError`; messages never contain secrets.
"""

from __future__ import annotations

import hashlib
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from pep_variants.errors import VariantError
from variants_index.errors import PackageIndexError

from ..checks.live_index import check_live
from ..console import counted
from .errors import Conflict, Exists, PublishError, Unfinished
from .release import Kind, conflict, labels_of, parts_of, same_contents, some

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from packaging.utils import NormalizedName

    from ..checks.finding import Finding
    from .journal import Journal
    from .release import Release, ReleaseFile
    from .storage import StorageTarget
    from .upload_api import UploadApi

    Target: TypeAlias = UploadApi | StorageTarget

UPLOADED = "uploaded"
PRESENT = "already there"
RESUMED = "uploaded before"
TO_UPLOAD = "to be uploaded"

VERIFY_SECONDS = 120.0
"""How long to wait for pages that do not show what was published: caches are minutes behind."""

_LONGEST_PAUSE = 15.0


@dataclass(frozen=True)
class Published:
    """What was done.

    Attributes:
        states: `UPLOADED`, `PRESENT` or `RESUMED` by filename.
        documents: SHA-256 of the ``*-variants.json`` that is now on the target, by its filename.
        merged: names of those documents that have more than the release brought: what another
            batch, or another publisher, had published before.
    """

    states: dict[str, str]
    documents: dict[str, str] = field(default_factory=dict)
    merged: set[str] = field(default_factory=set)


def compare(
    target: Target,
    releases: Sequence[Release],
    journal: Journal | None = None,
    *,
    skip_existing: bool = False,
) -> dict[str, str]:
    """Return the state of every file: `PRESENT`, `RESUMED` or `TO_UPLOAD`.

    Args:
        target: where to.
        releases: from `read_releases`.
        journal: of this directory and target, None for a dry run.
        skip_existing: take files that the target has and gives no hash of as the same ones.

    Raises:
        Changed: a file was changed since it was uploaded.
        Conflict: the target has files of these names with other contents.
        PublishError: it cannot be read, or gives no hashes.
    """
    files = [file for release in releases for file in release.files]
    if journal is not None:
        journal.check(files)
    projects = sorted({release.project for release in releases})
    there = {project: target.listed(project) for project in projects}
    states: dict[str, str] = {}
    differences: list[tuple[ReleaseFile, Mapping[str, str]]] = []
    unknown: list[str] = []
    for file in files:
        hashes = there[file.distribution.project].get(file.filename)
        same = None if hashes is None else same_contents(file, hashes)
        if hashes is not None and same is False:
            differences.append((file, hashes))
        elif journal is not None and journal.was_accepted(file):
            states[file.filename] = RESUMED
        elif hashes is None:
            states[file.filename] = TO_UPLOAD
        elif same or skip_existing or (journal is not None and journal.was_sent(file)):
            states[file.filename] = PRESENT
        else:
            unknown.append(file.filename)
    if differences:
        raise Conflict(f"{conflict(target.place, differences)}; nothing was uploaded")
    if unknown:
        raise _exists(f"{target.place} has {some(unknown)} already")
    return states


def publish(
    target: Target,
    releases: Sequence[Release],
    journal: Journal,
    report: Callable[[str], None],
    *,
    skip_existing: bool = False,
) -> Published:
    """Publish *releases* to *target*.

    Args:
        target: where to.
        releases: from `read_releases`.
        journal: of this directory and target.
        report: called with a line for each step and each file; also from threads.
        skip_existing: see `compare`.

    Raises:
        PublishError: the target refuses something, or cannot be reached. What was uploaded is in
            the journal.
    """
    states = compare(target, releases, journal, skip_existing=skip_existing)
    target.probe(releases)

    def upload(file: ReleaseFile) -> None:
        name = file.filename
        if states[name] == TO_UPLOAD:
            was_sent = journal.was_sent(file)
            journal.begin(file)
            states[name] = UPLOADED
            try:
                target.upload(file)
            except Exists as problem:
                # An upload whose answer a kill lost; or what the user says.
                if not (was_sent or skip_existing):
                    raise _exists(str(problem)) from None
                states[name] = RESUMED if was_sent else PRESENT
        journal.accept(file)
        report(f"  {name}: {in_bytes(file.distribution.size)}, {states[name]}")

    done = Published(states)
    parts = parts_of(releases, commits_last=target.commits_last)
    for number, part in enumerate(parts, 1):
        documents = sum(release.document is not None for release in releases)
        count = documents if part.kind is Kind.METADATA else len(part.files)
        report(f"[{number}/{len(parts)}] {part.kind.value}: {counted(count, 'file')}")
        if part.kind is Kind.METADATA:
            own = {release.document_name: release.labels for release in releases}
            for name, data in sorted(target.commit(releases).items()):
                done.documents[name] = hashlib.sha256(data).hexdigest()
                journal.append(metadata=name, sha256=done.documents[name])
                more = labels_of(data) - own[name]
                if more:
                    done.merged.add(name)
                report(f"  {name}: published{', with what others published' if more else ''}")
        elif target.parallel == 1:
            for file in part.files:
                upload(file)
        else:
            with ThreadPoolExecutor(target.parallel) as pool:
                list(pool.map(upload, part.files))
    return done


def verify(
    target: Target,
    releases: Sequence[Release],
    done: Published,
    note: Callable[[str], None],
) -> list[Finding]:
    """Return the findings of ``variants validate`` on the live pages of *target*.

    Pages that do not show everything yet are read again for `VERIFY_SECONDS`.

    Args:
        target: that was published to.
        releases: that were published.
        done: what was published.
        note: shows what is waited for.

    Raises:
        Unfinished: the pages do not show what was published.
        PublishError: they cannot be read.
    """
    projects: dict[NormalizedName, list[Release]] = {}
    for release in releases:
        projects.setdefault(release.project, []).append(release)
    end = time.monotonic() + VERIFY_SECONDS
    for project, group in projects.items():
        pause = 0.5
        while missing := _missing(group, done, target.listed(project)):
            left = end - time.monotonic()
            if left <= 0:
                raise Unfinished(
                    f"{target.place}: accepted everything, but its page of {project} shows no "
                    f"{some(missing)} after {VERIFY_SECONDS:.0f} seconds: look at it later with "
                    f"variants validate {target.page_url(project) or 'URL'}"
                )
            if pause == 0.5:
                note(f"waiting for the page of {project} to show {missing[0]}")
            time.sleep(min(pause, left))
            pause = min(pause * 2, _LONGEST_PAUSE)
    findings: list[Finding] = []
    session = target.session()
    for project, group in projects.items():
        url = target.page_url(project)
        if session is None or url is None:
            continue
        keys = {(release.project, release.version) for release in group}
        try:
            findings += check_live(url, session, releases=keys)[1]
        except (PackageIndexError, VariantError) as problem:
            raise PublishError(f"{problem}: published, and not verified") from None
    return findings


def in_bytes(size: int) -> str:
    """Return a size as people read it: ``1.2 GB``."""
    amount = float(size)
    for unit in ("bytes", "kB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "bytes" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:,.1f} GB"


def _missing(
    releases: Iterable[Release], done: Published, there: Mapping[str, Mapping[str, str]]
) -> list[str]:
    """Return the names of the files that the page does not show as they are."""
    missing = []
    for release in releases:
        for file in release.files:
            hashes = there.get(file.filename)
            if hashes is None or same_contents(file, hashes) is False:
                missing.append(file.filename)
        # Another publisher may have added to it since; its labels are validated later.
        if release.document_name in done.documents and release.document_name not in there:
            missing.append(release.document_name)
    return missing


def _exists(text: str) -> PublishError:
    return PublishError(
        f"{text}, and gives no hash to compare: if these are the same files, --skip-existing goes "
        "on with the others"
    )
