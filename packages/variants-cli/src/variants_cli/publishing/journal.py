"""What a target accepted so far: the same command goes on from there after a failure or a kill.

One file for each directory and target, beside the directory, of JSON lines that are only appended:
a line that a kill cut off is the last one, and left out. It holds names, hashes and times, never
secrets. After a release it stays, as a record of what was published when.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from typing import IO, TYPE_CHECKING

from filelock import FileLock, Timeout

from pep_variants.files import read_regular

from .errors import Changed, PublishError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from .release import ReleaseFile

VERSION = 1
JOURNAL_BYTES = 256 * 1024 * 1024
"""Some million uploads."""

SENDING = "sending"
ACCEPTED = "accepted"


class Journal:
    """The uploads of one directory to one target; safe to use from several threads.

    Attributes:
        path: of the file.
    """

    def __init__(self, path: Path, stream: IO[bytes], states: dict[str, tuple[str, str]]) -> None:
        """Set up; see `open_journal`."""
        self.path = path
        self._stream = stream
        self._states = states
        self._lock = threading.Lock()

    def was_accepted(self, file: ReleaseFile) -> bool:
        """Return whether the target has accepted *file*."""
        return self._states.get(file.filename) == (ACCEPTED, file.distribution.sha256)

    def was_sent(self, file: ReleaseFile) -> bool:
        """Return whether an upload of *file* was begun; whether it has arrived is not known."""
        state = self._states.get(file.filename)
        return state is not None and state[1] == file.distribution.sha256

    def check(self, files: Iterable[ReleaseFile]) -> None:
        """Check that no file was changed since it was uploaded.

        Raises:
            Changed: one was.
        """
        for file in files:
            state = self._states.get(file.filename)
            if state is not None and state[1] != file.distribution.sha256:
                raise Changed(
                    f"{file.distribution.path}: was changed since its upload began: sha256 was "
                    f"{state[1]}, is {file.distribution.sha256}: restore it, and the same command "
                    "goes on; or publish it under a new version. If the index has not got it, "
                    f"delete {self.path} to begin again"
                )

    def begin(self, file: ReleaseFile) -> None:
        """Record that the upload of *file* begins."""
        self._record(file, SENDING)

    def accept(self, file: ReleaseFile) -> None:
        """Record that the target has *file*."""
        if not self.was_accepted(file):
            self._record(file, ACCEPTED)

    def append(self, **entry: object) -> None:
        """Write one line: what else a person wants to read in a record."""
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        with self._lock:
            self._stream.write(json.dumps({"time": now, **entry}).encode() + b"\n")
            self._stream.flush()
            with suppress(OSError):  # not on every file system
                os.fsync(self._stream.fileno())

    def finish(self) -> None:
        """Record that the release is complete: the next run begins anew."""
        self.append(finished=True)
        self._states.clear()

    def _record(self, file: ReleaseFile, state: str) -> None:
        self.append(file=file.filename, state=state, sha256=file.distribution.sha256)
        self._states[file.filename] = (state, file.distribution.sha256)


def journal_path(directory: Path, place: str, folder: Path | None = None) -> Path:
    """Return the path of the journal of *directory* and the target *place*.

    Args:
        directory: with the distributions.
        place: of the target, without secrets.
        folder: where journals are kept; None for ``DIRECTORY-publish``, beside the directory.
    """
    directory = directory.resolve()
    folder = folder or directory.with_name(f"{directory.name}-publish")
    words = re.sub(r"[^A-Za-z0-9.-]+", "-", place.partition("://")[2] or place).strip("-.")[:60]
    digest = hashlib.sha256(f"{directory.name}\0{place}".encode()).hexdigest()[:8]
    return folder / f"{words}-{digest}.jsonl"


@contextmanager
def open_journal(path: Path, place: str) -> Iterator[Journal]:
    """Open the journal at *path*, or begin one.

    Args:
        path: from `journal_path`.
        place: of the target, without secrets.

    Raises:
        PublishError: another command is using it, or it cannot be read.
        OSError: it cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    ignore = path.parent / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n")
    lock = FileLock(path.with_suffix(".lock"), timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise PublishError(
            f"{path}: another command is publishing this directory to {place} now: wait for it"
        ) from None
    try:
        states, length = _read(path)
        with path.open("r+b" if path.exists() else "x+b") as stream:
            stream.truncate(length)  # a line that a kill cut off
            stream.seek(length)
            journal = Journal(path, stream, states)
            journal.append(journal=VERSION, target=place)
            yield journal
    finally:
        lock.release()


def _read(path: Path) -> tuple[dict[str, tuple[str, str]], int]:
    """Return state and hash by filename since the last release, and the length of whole lines."""
    try:
        data = read_regular(path, JOURNAL_BYTES).data
    except FileNotFoundError:
        return {}, 0
    states: dict[str, tuple[str, str]] = {}
    length = data.rfind(b"\n") + 1
    for line in data[:length].splitlines():
        try:
            entry = json.loads(line)
            if entry.get("journal", VERSION) != VERSION:
                raise ValueError("of another version of this command")
            if entry.get("finished"):
                states.clear()
            elif "file" in entry:
                states[str(entry["file"])] = (str(entry["state"]), str(entry["sha256"]))
        except (ValueError, KeyError, AttributeError, RecursionError) as problem:
            raise PublishError(
                f"{path}: not a journal ({problem}): delete it to begin again; files that the "
                "index has are found by their hashes"
            ) from None
    return states, length
