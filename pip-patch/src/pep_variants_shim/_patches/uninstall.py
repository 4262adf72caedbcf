"""`pip uninstall`: a file of another installed distribution stays, where both have it.

Such as ``libnccl.so.2`` of nvidia-nccl-cu12 and nvidia-nccl-cu13: the one that was installed last
wrote it. If that one is removed, the file goes with it, and one line says how the other gets its
own back.
"""

from __future__ import annotations

import csv
import os
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from contextvars import ContextVar
from types import ModuleType
from typing import Any

from .._distributions import read_file
from .._errors import logger
from .._guard import Original, replace

_current: ContextVar[_SharedFiles | None] = ContextVar("current", default=None)


def patch_command(module: ModuleType) -> None:
    """Keep what is shared while the command runs: an upgrade writes the same files again."""

    @replace(module.UninstallCommand, "run", shows=True)
    def run(original: Original, self: Any, *args: Any, **kwargs: Any) -> Any:
        token = _current.set(shared := _SharedFiles())
        try:
            return original(self, *args, **kwargs)
        finally:
            _current.reset(token)
            shared.report()


def patch_uninstall(module: ModuleType) -> None:
    """Leave shared files out of what pip removes."""

    @replace(module.UninstallPathSet, "remove", shows=True)
    def remove(original: Original, self: Any, *args: Any, **kwargs: Any) -> None:
        shared = _current.get()
        others = [] if shared is None else list(shared.with_others(self._dist))
        self._paths -= {path for path, _, digest in others if _has_digest(path, digest)}
        going = [(path, other) for path, other, _ in others if path in self._paths]
        original(self, *args, **kwargs)
        if shared is not None:
            shared.lost += going


class _SharedFiles:
    """The files of the environment by owner, read once where pip uninstalls several projects.

    Attributes:
        lost: paths that were to be removed with one owner, and the others.
    """

    def __init__(self) -> None:
        self._records: list[tuple[Any, dict[str, str]]] = []
        self.lost: list[tuple[str, Any]] = []

    def with_others(self, dist: Any) -> Iterator[tuple[str, Any, str]]:
        """Yield path, another owner and its digest of each file that *dist* is not alone with.

        The paths are those of pip's ``UninstallPathSet``.
        """
        from pip._internal.metadata import get_default_environment
        from pip._internal.utils.misc import normalize_path

        if not self._records:
            found = get_default_environment()._iter_distributions()
            self._records = [(each, _recorded(each)) for each in found]
        own = _recorded(dist)
        for other, record in self._records:
            if other.canonical_name == dist.canonical_name or not _is_there(other):
                continue
            for entry in own.keys() & record.keys() if other.location == dist.location else ():
                folder, name = os.path.split(os.path.join(dist.location, entry))  # noqa: PTH118
                path = os.path.join(normalize_path(folder), os.path.normcase(name))  # noqa: PTH118
                yield path, other, record[entry]

    def report(self) -> None:
        """Say which files were removed that installed projects need."""
        by_owner: defaultdict[str, list[str]] = defaultdict(list)
        for path, other in self.lost:
            if _is_there(other) and not os.path.lexists(path):
                by_owner[f"{other.canonical_name}=={other.version}"].append(path)
        for owner, paths in by_owner.items():
            number = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
            logger.warning(
                "%s was removed, which %s owns as well; to restore it: "
                "pip install --force-reinstall --no-deps %s",
                f"{paths[0]}{number}",
                owner.replace("==", " "),
                owner,
            )


def _recorded(dist: Any) -> dict[str, str]:
    """Return the digests of the files in RECORD of *dist*, but compiled ones."""
    rows = csv.reader((read_file(dist, "RECORD") or "").splitlines())
    try:
        return {row[0]: row[1] for row in rows if len(row) > 1 and not row[0].endswith(".pyc")}
    except csv.Error:
        return {}


def _is_there(dist: Any) -> bool:
    return os.path.exists(dist.info_location or "")  # noqa: PTH110


def _has_digest(path: str, digest: str) -> bool:
    """Return whether the file at *path* is that of RECORD; False if pip cannot tell."""
    from pip._internal.operations.install.wheel import rehash

    with suppress(OSError):
        return bool(digest) and rehash(path)[0] == digest
    return False
