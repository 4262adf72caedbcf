"""Trust of the user in projects' ``variants.toml``, by content.

`Approvals`: ``variants trust DIR`` records the absolute path of the file and a SHA-256 of its
content, of the platform file and of the local plugin wheels that it names. As soon as one of them
changes the approval is void, as in direnv. Each approval is one file, written atomically, so that
processes need no lock; the directory must be private (see `ownership`), or its records are ignored.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from .. import _directories as directories
from .._detect.known_machines import names_file
from .._files import read_regular, replacing
from .._ownership import check_private, make_private
from .._urls import local_path
from ..errors import PreferenceError, printable
from ..limits import APPROVED_WHEEL_BYTES, SETTINGS_BYTES

_FORMAT = 1


class Covered(NamedTuple):
    """A file that an approval covers."""

    path: Path
    data: bytes


class Approval(NamedTuple):
    """Approval by the user of a project's file.

    Attributes:
        path: absolute path of the ``variants.toml``.
        digest: of the content that was approved, see `approval_digest`.
    """

    path: str
    digest: str


def covered_files(path: Path, data: bytes, tree: Mapping[str, Any]) -> list[Covered]:
    """Return the ``variants.toml`` at *path*, and the platform file and wheels that it names.

    Args:
        path: of the file.
        data: its content.
        tree: the same, parsed.

    Raises:
        PreferenceError: a file that it names cannot be read.
    """
    named = [("allow-provider", wheel, APPROVED_WHEEL_BYTES) for wheel in _local_wheels(path, tree)]
    platform = tree.get("platform")
    if isinstance(platform, str) and platform and names_file(platform):
        named.insert(0, ("platform", path.parent / platform, SETTINGS_BYTES))
    files = [Covered(path, data)]
    for key, file, limit in named:
        try:
            files.append(Covered(file, read_regular(file, limit).data))
        except (OSError, ValueError) as error:  # ValueError: null characters
            reason = getattr(error, "strerror", None) or error
            raise PreferenceError(
                f"{printable(str(path))}: {key}: {printable(str(file))} cannot be read: {reason}"
            ) from None
    return files


def _local_wheels(path: Path, tree: Mapping[str, Any]) -> list[Path]:
    """Return the files that ``allow-provider`` names, but for those on servers, in its order."""
    value = tree.get("allow-provider", ())
    if not value:
        return []
    from .allow_list import AllowList  # pip imports the rest in every command with settings

    entries = AllowList.parse([value] if isinstance(value, str) else value).entries.values()
    urls = [entry.requirement.url or "" for group in entries for entry in group]
    return [
        path.parent / local_path(url)
        for url in urls
        if url and not url.lower().startswith(("http://", "https://"))
    ]


def approval_digest(files: Iterable[Covered]) -> str:
    """Return a SHA-256 of all *files*: of their contents, in order."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(hashlib.sha256(file.data).digest())
    return digest.hexdigest()


class Approvals:
    """The approvals of this user.

    Attributes:
        root: directory of the records.
    """

    def __init__(self, root: Path | None = None) -> None:
        """Use *root*, or the directory among the user's data."""
        if root is None:
            root = directories.user_data() / "approvals"
        self.root = root

    def find(self, path: Path) -> Approval | None:
        """Return the approval of the file at *path*, None if there is none.

        Raises:
            NotPrivate: other users could have written it.
        """
        key = _key(path)
        record = self._record(key)
        try:
            content = read_regular(record, SETTINGS_BYTES)
            found = _parsed(content.data)
            if found is None or found.path != key:
                return None
            check_private(self.root)
            check_private(record, content.status)  # the path may lead elsewhere by now
        except OSError:
            return None
        return found

    def add(self, path: Path, digest: str) -> Approval:
        """Record that the content *digest* of the file at *path* is approved.

        Raises:
            NotPrivate: other users can change the directory.
            OSError: it cannot be written.
        """
        approval = Approval(_key(path), digest)
        make_private(self.root)
        record = self._record(approval.path)
        with replacing(record, mode=0o600) as stream:
            stream.write(json.dumps({"format": _FORMAT, **approval._asdict()}).encode("ascii"))
        return approval

    def remove(self, path: Path) -> bool:
        """Forget the approval of the file at *path*; return whether there was one.

        Raises:
            OSError: it cannot be removed.
        """
        try:
            self._record(_key(path)).unlink()
        except FileNotFoundError:
            return False
        return True

    def __iter__(self) -> Iterator[Approval]:
        """Yield all approvals by path."""
        try:
            records = list(self.root.glob("*.json"))
        except OSError:
            return
        yield from sorted(filter(None, map(_read, records)))

    def _record(self, key: str) -> Path:
        name = hashlib.sha256(os.path.normcase(key).encode("utf-8", "surrogatepass")).hexdigest()
        return self.root / f"{name}.json"


def _key(path: Path) -> str:
    """Return *path* in one spelling: of its directory all links are resolved."""
    return os.path.join(os.path.realpath(path.parent), path.name)  # noqa: PTH118


def _read(record: Path) -> Approval | None:
    try:
        return _parsed(read_regular(record, SETTINGS_BYTES).data)
    except OSError:
        return None


def _parsed(data: bytes) -> Approval | None:
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(tree, dict) or tree.get("format") != _FORMAT:
        return None
    path, digest = tree.get("path"), tree.get("digest")
    if not isinstance(path, str) or not isinstance(digest, str):
        return None
    return Approval(path, digest)
