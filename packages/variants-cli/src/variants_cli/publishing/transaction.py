"""One release, or several, to one target: compared, probed, uploaded, committed.

Everything that can be known before the first upload ends it there. After that every file that the
target accepted is in the journal, so the same command goes on after a failure or a kill.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .errors import Conflict, Exists, PublishError
from .index_pages import Presence, presence_of
from .steps import Kind, kind_of
from .target import Committed
from .upload_order import upload_places

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .journal import Journal
    from .reporting import Reporter
    from .target import Release, ReleaseFile, Target

UPLOADED = "uploaded"
PRESENT = "already there"
RESUMED = "uploaded before"
TO_UPLOAD = "to be uploaded"


@dataclass(frozen=True)
class Published:
    """What a transaction did.

    Attributes:
        states: `UPLOADED`, `PRESENT` or `RESUMED` by filename; `TO_UPLOAD` of a dry run.
        committed: the metadata that is on the target now.
    """

    states: Mapping[str, str]
    committed: Committed


@dataclass(frozen=True)
class Part:
    """Files of one step.

    Attributes:
        kind: of the files, `Kind.METADATA` for the commit, which has none.
        files: in the order of `upload_order` where each is visible at once, else by name.
    """

    kind: Kind
    files: tuple[ReleaseFile, ...] = ()


def parts_of(releases: Sequence[Release], *, commits_last: bool) -> list[Part]:
    """Return the steps of publishing *releases*.

    Args:
        releases: what is published.
        commits_last: of the target.
    """
    groups: dict[Kind, list[ReleaseFile]] = {kind: [] for kind in Kind}
    places: dict[str, int] = {}
    for release in releases:
        places |= {} if commits_last else upload_places(release)
        for file in release.files:
            kind = kind_of(file.filename)
            assert kind is not None, "release_files takes no others"
            groups[kind].append(file)
    commit = [Part(Kind.METADATA)]
    if not commits_last and all(release.document is None for release in releases):
        commit = []

    def key(file: ReleaseFile) -> tuple[int, str]:
        return places.get(file.filename, 0), file.filename

    found = {
        kind: [Part(kind, tuple(sorted(files, key=key)))] if files else []
        for kind, files in groups.items()
    }
    if commits_last:
        return [part for parts in found.values() for part in parts] + commit
    found[Kind.METADATA] = commit
    return [part for parts in found.values() for part in parts]


class Transaction:
    """Publishes *releases* to *target*.

    Attributes:
        reporter: gets each event.
    """

    def __init__(
        self,
        target: Target,
        releases: Sequence[Release],
        reporter: Reporter,
        *,
        skip_existing: bool = False,
    ) -> None:
        """Set up.

        Args:
            target: where to.
            releases: from `release_files`.
            reporter: gets each event.
            skip_existing: take files that the target has and gives no hash of as the same ones.
        """
        self._target = target
        self._releases = releases
        self.reporter = reporter
        self._skip_existing = skip_existing
        self._files = [file for release in releases for file in release.files]

    def compare(self, journal: Journal | None) -> dict[str, str]:
        """Return the state of every file: `PRESENT`, `RESUMED` or `TO_UPLOAD`.

        Raises:
            Changed: a file was changed since it was uploaded.
            Conflict: the target has files of these names with other contents.
            PublishError: it cannot be read, or gives no hashes.
        """
        if journal is not None:
            journal.check(self._files)
        there = {
            project: self._target.listed(project)
            for project in sorted({release.project for release in self._releases})
        }
        states: dict[str, str] = {}
        conflicts: list[str] = []
        unknown: list[str] = []
        for file in self._files:
            item = file.distribution
            hashes = there[item.project].get(file.filename)
            presence = presence_of(item.path, item.sha256, hashes)
            before = journal is not None and journal.was_accepted(file)
            if presence is Presence.OTHER and hashes is not None:
                conflicts.append(_difference(file, hashes))
            elif presence is Presence.SAME:
                states[file.filename] = RESUMED if before else PRESENT
            elif before:
                states[file.filename] = RESUMED
            elif presence is Presence.ABSENT:
                states[file.filename] = TO_UPLOAD
            elif self._skip_existing or (journal is not None and journal.was_sent(file)):
                states[file.filename] = PRESENT
            else:
                unknown.append(file.filename)
        if conflicts:
            raise Conflict(
                f"{self._target.place} has other contents under "
                f"{'this name' if len(conflicts) == 1 else 'these names'}: {_some(conflicts)}: a "
                "published file cannot change: publish the new one as another version, or with a "
                "build tag; nothing was uploaded"
            )
        if unknown:
            raise _exists(f"{self._target.place} has {_some(unknown)} already")
        return states

    def preview(self) -> dict[str, str]:
        """Return the state of every file, having changed nothing on the target.

        Raises:
            PublishError: publishing would fail, as far as that can be known.
        """
        states = self.compare(None)
        self._target.probe(self._releases, dry=True)
        return states

    def run(self, journal: Journal) -> Published:
        """Publish.

        Raises:
            PublishError: the target refuses something, or cannot be reached. What was uploaded
                is in the journal.
        """
        states = self.compare(journal)
        self._target.probe(self._releases)
        committed = Committed({})
        for part in parts_of(self._releases, commits_last=self._target.commits_last):
            if part.kind is not Kind.METADATA:
                self.reporter.step(part.kind.value, len(part.files))
                self._upload(part.files, states, journal)
                continue
            documents = sum(release.document is not None for release in self._releases)
            self.reporter.step(part.kind.value, documents)
            committed = self._target.commit(self._releases)
            for name, digest in sorted(committed.documents.items()):
                journal.commit(name, digest)
                merged = ", with what others published" if name in committed.merged else ""
                self.reporter.published(name, f"published{merged}")
        return Published(states, committed)

    def _upload(
        self, files: Sequence[ReleaseFile], states: dict[str, str], journal: Journal
    ) -> None:
        def upload(file: ReleaseFile) -> None:
            if states[file.filename] == TO_UPLOAD:
                states[file.filename] = self._upload_one(file, journal)
            else:
                journal.accept(file)
            self.reporter.done(file.filename, file.distribution.size, states[file.filename])

        if self._target.parallel == 1:
            for file in files:
                upload(file)
            return
        with ThreadPoolExecutor(self._target.parallel) as pool:
            try:
                for _ in pool.map(upload, files):
                    pass
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise

    def _upload_one(self, file: ReleaseFile, journal: Journal) -> str:
        was_sent = journal.was_sent(file)
        journal.begin(file)
        state = UPLOADED
        try:
            with self.reporter.sending(file.filename, file.distribution.size) as progress:
                self._target.upload(file, progress)
        except Exists as problem:
            # An upload whose answer a kill lost; or what the user says.
            if not (was_sent or self._skip_existing):
                raise _exists(str(problem)) from None
            state = RESUMED if was_sent else PRESENT
        journal.accept(file)
        return state


def _exists(text: str) -> PublishError:
    return PublishError(
        f"{text}, and gives no hash to compare: if these are the same files, --skip-existing goes "
        "on with the others"
    )


def _difference(file: ReleaseFile, hashes: Mapping[str, str]) -> str:
    there = ", ".join(f"{name} {digest}" for name, digest in sorted(hashes.items()))
    return f"{file.filename} ({there} there, sha256 {file.distribution.sha256} here)"


def _some(names: Sequence[str]) -> str:
    more = len(names) - 5
    return ", ".join(names[:5]) + (f" and {more} more" if more > 0 else "")
