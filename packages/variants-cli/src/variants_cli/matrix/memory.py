"""Memory of builds: how much this machine has, and how much a build takes.

A limit per process (``RLIMIT_AS``) is of no use: a build is a tree of compilers, each of which is
small. So fewer builds run at a time where the memory is not enough for all, and on Linux the memory
of a build's processes is watched: one that takes more ends with an error that says so, before the
kernel kills whatever process it chooses. macOS and Windows have the first alone.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from .build_plan import BuildError

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12,
          "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}  # fmt: skip
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?)b?\s*", re.IGNORECASE)
_PROC = Path("/proc")
_CGROUPS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
_STATUS = re.compile(rb"^(?:RssAnon|RssShmem):\s*(\d+) kB$", re.MULTILINE)


def read_size(text: str) -> int:
    """Return the bytes of a size such as ``16GB``, ``512 MiB`` or ``1.5g``.

    Raises:
        ValueError: it is none, or zero.
    """
    match = _SIZE.fullmatch(text)
    if match is None or not float(match[1]):
        raise ValueError(text)
    return int(float(match[1]) * _UNITS[match[2].lower()])


def shown_size(size: int) -> str:
    """Return *size* in bytes for people, in GB or MB."""
    return f"{size / 1e9:.1f} GB" if size >= 10**9 else f"{size / 1e6:.0f} MB"


def machine_memory(cgroups: tuple[Path, ...] = _CGROUPS) -> int | None:
    """Return the memory that builds may have, in bytes; None if the system does not tell.

    In a container that is the limit of the container.
    """
    limits = [_physical_memory()]
    for path in cgroups:
        try:
            limits.append(int(path.read_text()))
        except (OSError, ValueError):  # missing, or "max"
            continue
    return min((limit for limit in limits if limit), default=None)


def _physical_memory() -> int | None:
    if sys.platform == "win32":
        import ctypes

        class Status(ctypes.Structure):
            _fields_ = (
                ("length", ctypes.c_ulong), ("load", ctypes.c_ulong),
                *((name, ctypes.c_ulonglong) for name in ("total", "free", "page_total",
                  "page_free", "virtual_total", "virtual_free", "extended")),
            )  # fmt: skip

        status = Status(length=ctypes.sizeof(Status))
        known = ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status))
        return int(status.total) if known else None
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return None


def parallel_builds(jobs: int, memory: int, available: int | None) -> int:
    """Return how many of *jobs* builds may run at a time, at least one.

    Args:
        jobs: how many are wanted.
        memory: bytes that each may take, 0 for no limit.
        available: bytes that all may take, None if that is not known.
    """
    if not memory or available is None:
        return jobs
    return max(1, min(jobs, available // memory))


class MemoryWatch:
    """Watches the memory of a process and its descendants.

    Processes count that have the session of the first one, or descend from it. What several of
    them share counts more than once only where it is shared by ``fork`` and was not written.
    """

    def __init__(self, limit: int, proc: Path = _PROC) -> None:
        """Take the limit in bytes; 0 watches nothing."""
        self.limit = limit
        self.most = 0
        """The most that was seen, in bytes."""
        self._proc = proc

    def exceeded(self, process: int) -> bool:
        """Look once at the tree of *process*; return whether it has more than the limit."""
        if not self.limit or not (self._proc / "self").exists():
            return False
        used = tree_memory(process, self._proc)
        self.most = max(self.most, used)
        return used > self.limit

    def check(self, what: str) -> None:
        """Raise the error of a build that took more than the limit.

        Raises:
            BuildError: always if the limit was exceeded.
        """
        if self.limit and self.most > self.limit:
            raise BuildError(
                f"{what}: took {shown_size(self.most)} of memory, more than build.memory "
                f"({shown_size(self.limit)}), and was stopped: let fewer compilers run at a time "
                "(MAX_JOBS, CMAKE_BUILD_PARALLEL_LEVEL, NVCC_THREADS), or raise build.memory"
            )


def tree_memory(root: int, proc: Path = _PROC) -> int:
    """Return the bytes of anonymous and shared memory of *root* and its descendants."""
    parents: dict[int, tuple[int, int]] = {}
    for entry in proc.iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_bytes().rpartition(b")")[2].split()
                parents[int(entry.name)] = int(fields[1]), int(fields[3])
            except (OSError, IndexError, ValueError):  # it ended meanwhile
                continue
    members = {pid for pid, (_, session) in parents.items() if pid == root or session == root}
    grown = True
    while grown:
        more = {pid for pid, (parent, _) in parents.items() if parent in members} - members
        grown = bool(more)
        members |= more
    return sum(_own_memory(proc / str(pid)) for pid in members)


def _own_memory(entry: Path) -> int:
    try:
        return sum(int(size) * 1024 for size in _STATUS.findall((entry / "status").read_bytes()))
    except OSError:
        return 0
