"""What `make bench` found, as a JSON file."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path

from .report import Row

ROOT = Path(__file__).resolve().parents[2]
_CPUINFO = Path("/proc/cpuinfo")


class BenchmarkError(Exception):
    """A record cannot be read, or not put into a document; the message says why."""


@dataclass(frozen=True)
class Record:
    """The rows of one run by group, with its day, its commit and the machine in words."""

    date: str
    commit: str
    machine: str
    groups: Mapping[str, list[Row]] = field(default_factory=dict)

    @classmethod
    def begun(cls) -> Record:
        """Return an empty record of this machine and checkout."""
        command = ["git", "describe", "--always", "--dirty", "--exclude=*", "--abbrev=12"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        date = datetime.now(timezone.utc).date().isoformat()
        return cls(date, done.stdout.strip() or "unknown", _machine(), {})

    @classmethod
    def read(cls, path: Path) -> Record:
        """Return the record at *path*.

        Raises:
            BenchmarkError: it cannot be read, or is none.
        """
        try:
            tree = json.loads(path.read_bytes())
            groups = {
                name: [Row(**row) for row in rows] for name, rows in tree.pop("groups").items()
            }
            return cls(**tree, groups=groups)
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise BenchmarkError(f"{path} is no record of make bench: {error}") from error

    def write(self, path: Path) -> None:
        """Write it as JSON."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self), indent=1) + "\n", "utf-8")


def _machine() -> str:
    text = _CPUINFO.read_text("utf-8", "replace") if _CPUINFO.exists() else ""
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    cpu = found[1] if found else platform.machine()
    release = platform.release().partition("-")[0]
    system, python = platform.system(), platform.python_version()
    return f"{cpu}, {os.cpu_count()} cores, {system} {release}, Python {python}"
