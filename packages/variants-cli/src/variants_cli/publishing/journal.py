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
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from pep_variants.files import read_regular

from .errors import Changed, PublishError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .target import ReleaseFile

VERSION = 1
JOURNAL_BYTES = 256 * 1024 * 1024
"""Some million uploads."""

SUFFIX = "-publish"

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
            if state is None or state[1] == file.distribution.sha256:
                continue
            raise Changed(
                f"{file.distribution.path}: was changed since its upload began: sha256 was "
                f"{state[1]}, is {file.distribution.sha256}: restore it, and the same command goes "
                "on; or publish it under a new version. If the index has not got it, delete "
                f"{self.path} to begin again"
            )

    def begin(self, file: ReleaseFile) -> None:
        """Record that the upload of *file* begins."""
        self._record(file.filename, SENDING, file.distribution.sha256)

    def accept(self, file: ReleaseFile) -> None:
        """Record that the target has *file*."""
        if not self.was_accepted(file):
            self._record(file.filename, ACCEPTED, file.distribution.sha256)

    def commit(self, filename: str, sha256: str) -> None:
        """Record that the metadata *filename* is published; it may be merged again later."""
        self._append({"metadata": filename, "sha256": sha256})

    def finish(self) -> None:
        """Record that the release is complete: the next run begins anew."""
        self._append({"finished": True})
        self._states.clear()

    def _record(self, filename: str, state: str, sha256: str) -> None:
        self._append({"file": filename, "state": state, "sha256": sha256})
        self._states[filename] = (state, sha256)

    def _append(self, entry: dict[str, Any]) -> None:
        _write(self._stream, self._lock, entry)


def journal_path(directory: Path, place: str, folder: Path | None = None) -> Path:
    """Return the path of the journal of *directory* and the target *place*.

    Args:
        directory: with the distributions.
        place: of the target, without secrets.
        folder: where journals are kept; None for ``DIRECTORY-publish``, beside the directory.
    """
    directory = directory.resolve()
    folder = folder or directory.with_name(directory.name + SUFFIX)
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
            entry = {"journal": VERSION, "target": place}
            _write(stream, threading.Lock(), entry)
            yield Journal(path, stream, states)
    finally:
        lock.release()


def _write(stream: IO[bytes], lock: threading.Lock, entry: dict[str, Any]) -> None:
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    with lock:
        stream.write(json.dumps({"time": now, **entry}).encode() + b"\n")
        stream.flush()
        with suppress(OSError):  # not on every file system
            os.fsync(stream.fileno())


def _read(path: Path) -> tuple[dict[str, tuple[str, str]], int]:
    """Return state and hash by filename since the last release, and the length of whole lines."""
    try:
        data = read_regular(path, JOURNAL_BYTES).data
    except FileNotFoundError:
        return {}, 0
    states: dict[str, tuple[str, str]] = {}
    length = 0
    for line in data.splitlines(keepends=True):
        if not line.endswith(b"\n"):
            break
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
        length += len(line)
    return states, length
