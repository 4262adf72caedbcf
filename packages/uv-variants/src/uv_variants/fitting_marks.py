"""Which installed variants are known to be what the proxy would choose, in files of the cache."""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .site_packages import Installed

MAX_AGE = 86400.0
"""Seconds for which an installed variant is not compared with the proxy's choice again."""


@dataclass(frozen=True)
class FittingMarks:
    """One empty file for each installed variant that fits one machine and list of indexes.

    Attributes:
        folder: of the files.
        machine: platform key of the machine.
        indexes: names of the indexes, in order.
    """

    folder: Path
    machine: str
    indexes: Sequence[str]

    def is_known(self, installed: Installed) -> bool:
        """Return whether *installed* was found to fit not long ago."""
        try:
            age = time.time() - self._mark(installed).stat().st_mtime
        except OSError:
            return False
        return 0 <= age < MAX_AGE

    def remember(self, installed: Installed) -> None:
        """Remember that *installed* fits; without a writable cache the next command asks again."""
        mark = self._mark(installed)
        with contextlib.suppress(OSError):
            mark.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            mark.touch()
            os.utime(mark)

    def _mark(self, installed: Installed) -> Path:
        text = "\0".join(
            (
                installed.name,
                installed.version,
                str(installed.label),
                *sorted(installed.tags),
                self.machine,
                *self.indexes,
            )
        )
        return self.folder / hashlib.sha256(text.encode()).hexdigest()[:32]
