"""Confinement of a plugin: what the kernel takes from its process, and who ends what it starts.

Runs in the plugin's own environment, so only the standard library may be imported. On Linux
`confine` takes these measures, each where the kernel has it:

- namespaces of users, networks and System V IPC: no network interfaces, no shared memory of the
  user's other processes, no capabilities outside;
- no capabilities, which root has also where there is no user namespace for it;
- Landlock: reads below system directories and the Python installation only, of devices those that
  compute only, of processes the plugin's own only, writes below the run's own temporary directory
  and to these devices only, no TCP, no signals to other processes;
- seccomp: no sockets but UNIX streams, and these cannot be connected; no changes of modes, owners,
  times and attributes, nor of limits and scheduling of another process; none of the calls that go
  round the others.

What stays possible: to ask whether a path exists, and for its size and times (`stat`); to read, as
root, what only root may read below system directories other than ``/etc``; to send signals to the
user's processes before Landlock 6, of Linux 6.12. A process that the plugin starts reads nothing
of its own in ``/proc``: Landlock's rules are about directories that exist when they are made.

Elsewhere, and on kernels without them, plugins run with the limits of `limit` alone.

On Linux, `supervise` is the process between the caller and the plugin: it ends every process that
the plugin leaves behind, also those in new sessions, and limits their number and total memory:
limits of the kernel count per process, or all processes of the user.
"""

# ruff: noqa: PTH111, PTH112, PTH118, PTH123, PTH207, PTH208
# Paths are texts throughout, as the kernel wants them, and hundreds of files of /proc are read.

from __future__ import annotations

import contextlib
import ctypes
import errno
import glob
import os
import platform
import signal
import stat
import struct
import sys
import time
from collections.abc import Callable
from typing import NoReturn

_INTERVAL = 0.02
"""Seconds between two looks at the processes."""

MEASURES = ("files", "network", "signals", "system calls")
"""Names of what `confine` may report."""

# Read and execute. What is missing is skipped; home directories are not among them. See `readable`
# for /etc and /proc.
SYSTEM = (
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/usr",
    "/opt",
    "/sys",
    "/nix/store",
    "/gnu/store",
    "/snap",
    "/run/current-system",
    "/run/opengl-driver",
    "/run/nvidia",
    "/run/udev",
    "/mnt/wsl",
)
# Names alone: with the rest, root could read disks, and a user their own terminals, under Landlock.
LISTED = ("/dev", "/etc")
# Drivers open these for reading and writing, and talk to them with ioctl.
DEVICES = (
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/accel*",
    "/dev/davinci*",
    "/dev/devmm_svm",
    "/dev/dri",
    "/dev/dxg",
    "/dev/hisi_hdc",
    "/dev/hl*",
    "/dev/kfd",
    "/dev/neuron*",
    "/dev/nvgpu",
    "/dev/nvhost*",
    "/dev/nvidia*",
    "/dev/nvmap",
    "/dev/vfio",
    "/dev/xpu*",
)

_PR_SET_SECCOMP, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 22, 36, 38
_CLONE_NEWIPC, _CLONE_NEWUSER, _CLONE_NEWNET = 0x08000000, 0x10000000, 0x40000000

# Landlock: system calls (the same on every architecture) and rights, see landlock(7).
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
"""All file system rights by the first version of Landlock that has them."""
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_TCP = 0b11
_SCOPES = 0b11  # abstract UNIX sockets, signals

# By machine: the audit architecture, `socket`, `socketpair`, `connect`, and what is refused
# besides. Numbers from 424 on are the same everywhere: io_uring_setup, pidfd_getfd, fchmodat2,
# setxattrat, removexattrat, file_setattr.
_SOCKET_CALLS = {
    "x86_64": (0xC000003E, 41, 53, 42),
    "aarch64": (0xC00000B7, 198, 199, 203),
}
_REFUSED = {
    # ptrace; chmod to lchown, fchownat, fchmodat; …xattr; utime, utimes, futimesat, utimensat;
    # setpriority, ioprio_set; inotify_add_watch, fanotify_mark, which tell names of files;
    # add_key to keyctl; process_vm_…; bpf
    "x86_64": (
        *(101, 90, 91, 92, 93, 94, 260, 268, 188, 189, 190, 197, 198, 199),
        *(132, 235, 261, 280, 141, 251, 254, 301),
        *(248, 249, 250, 310, 311, 321, 425, 438, 452, 463, 466, 469),
    ),
    "aarch64": (
        *(117, 52, 53, 54, 55, 5, 6, 7, 14, 15, 16),
        *(88, 140, 30, 27, 263),
        *(217, 218, 219, 270, 271, 280, 425, 438, 452, 463, 466, 469),
    ),
}
# Refused unless the first argument is 0, the calling process: prlimit64; sched_setparam,
# sched_setscheduler, sched_setaffinity, sched_setattr.
_OWN_PROCESS = {"x86_64": (302, 142, 144, 203, 314), "aarch64": (261, 118, 119, 122, 274)}
_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_AF_UNIX, _SOCK_STREAM, _SOCK_SEQPACKET = 1, 1, 5

# See capget(2).
_CAPABILITY_VERSION = 0x20080522


def confine(
    writable: str, homes: list[str], tasks: int = 0, environment: str = ""
) -> dict[str, str]:
    """Confine this process and all that it starts; return the measures in force, in words.

    Must run before the process has threads. A measure that the kernel refuses is left out.

    Args:
        writable: the directory below which writing stays allowed.
        homes: home directories, of which nothing may be read but what is named otherwise.
        tasks: the most processes and threads, 0 for no limit; counted in the user namespace only,
            as everywhere else those of the user count as well.
        environment: the virtual environment, which Python does not know yet if it was started
            without the `site` module; it may be read.
    """
    found: dict[str, str] = {}
    if sys.platform != "linux":
        return found
    libc = ctypes.CDLL(None, use_errno=True)
    network = []
    if _unshare(libc):
        network.append("network namespace")
        if tasks:
            limit({"RLIMIT_NPROC": tasks})
    _drop_capabilities(libc)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        return found
    version = _landlock(libc, writable, readable(homes, environment))
    if version:
        found["files"] = f"Landlock, version {version}"
        if version >= 4:
            network.append("Landlock")
        if version >= 6:
            found["signals"] = f"Landlock, version {version}"
    if _seccomp(libc):
        network.append("seccomp")
        found["system calls"] = "seccomp"
    if network:
        found["network"] = ", ".join(network)
    return {name: found[name] for name in MEASURES if name in found}


def limit(limits: dict[str, int]) -> None:
    """Lower the limits of this process: by the names of `resource`, in its units."""
    if sys.platform == "win32":
        return
    import resource

    for name, value in limits.items():
        number = getattr(resource, name, None)
        if number is None:
            continue
        _, hard = resource.getrlimit(number)
        if hard != resource.RLIM_INFINITY:
            value = min(value, hard)
        try:
            resource.setrlimit(number, (value, value))
        except (OSError, ValueError):  # macOS refuses some
            continue


def _unshare(libc: ctypes.CDLL) -> bool:
    """Enter a user namespace, as the same user, and empty namespaces of networks and IPC."""
    user, group = os.geteuid(), os.getegid()
    if libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET | _CLONE_NEWIPC):
        return False
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        try:
            with open(f"/proc/self/{name}", "w") as stream:
                stream.write(text)
        except OSError:  # then the user has no name in there; what counts is the same
            continue
    return True


def _drop_capabilities(libc: ctypes.CDLL) -> None:
    """Give up the capabilities of root; with no_new_privs, no program gets them back."""
    header = struct.pack("=Ii", _CAPABILITY_VERSION, 0)
    libc.capset(header, struct.pack("=6I", 0, 0, 0, 0, 0, 0))


def _landlock(libc: ctypes.CDLL, writable: str, places: list[str]) -> int:
    """Restrict files, TCP, signals; return the version of Landlock, 0 if there is none."""
    syscall = libc.syscall
    version = int(syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), 1))
    if version < 1:
        return 0
    rights = max(mask for first, mask in _RIGHTS.items() if first <= version)
    attributes = struct.pack(
        "=QQQ", rights, _TCP if version >= 4 else 0, _SCOPES if version >= 6 else 0
    )
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(size), 0)
    if ruleset < 0:
        return 0
    try:
        reading = _EXECUTE | _READ_FILE | _READ_DIR
        for path in places:
            _add_rule(syscall, ruleset, path, reading)
        for path in LISTED:
            _add_rule(syscall, ruleset, path, _READ_DIR)
        for pattern in DEVICES:
            for path in glob.glob(pattern):
                _add_rule(
                    syscall,
                    ruleset,
                    path,
                    (_READ_FILE | _READ_DIR | _WRITE_FILE | _TRUNCATE | _IOCTL_DEV) & rights,
                )
        _add_rule(syscall, ruleset, writable, rights & ~_EXECUTE)
        return 0 if syscall(_RESTRICT_SELF, ruleset, 0) else version
    finally:
        os.close(ruleset)


def _add_rule(syscall: ctypes._NamedFuncPointer, ruleset: int, path: str, rights: int) -> None:
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:  # it is not there, or not for this user
        return
    try:
        if not os.path.isdir(f"/proc/self/fd/{handle}"):
            rights &= _OF_FILES
        syscall(_ADD_RULE, ruleset, 1, struct.pack("=Qi", rights, handle), 0)
    finally:
        os.close(handle)


def readable(homes: list[str], environment: str = "") -> list[str]:
    """Return the paths that a plugin may read: the system, this Python, what variables name.

    None of them contains one of *homes*. A variable may name a file or directory in a home
    directory, as ``ROCM_PATH`` does; the user handed it on deliberately. ``PATH`` is not such a
    variable. Of ``/etc`` it is what every user may read, so that root hands on no secrets, and of
    ``/proc`` what is about the machine and this process.
    """
    hidden = [os.path.realpath(home) for home in homes]

    def contains_hidden(path: str) -> bool:
        return any(os.path.commonpath((path, each)) == path for each in (*hidden, "/proc"))

    def in_home(path: str) -> bool:
        return any(os.path.commonpath((path, home)) == home for home in hidden)

    found = _public("/etc")
    for place in SYSTEM:
        found += _without(os.path.realpath(place), hidden)
    with contextlib.suppress(OSError):
        found += (
            os.path.realpath(f"/proc/{name}")
            for name in os.listdir("/proc")
            if not name.isdecimal()
        )
    # The one without symbolic links: a virtual environment in a home may link to another there.
    prefixes = {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix, environment}
    for prefix in sorted(prefixes - {""}):
        path = os.path.realpath(prefix)
        if contains_hidden(path):
            found += (os.path.join(path, name) for name in ("bin", "lib", "lib64"))
        else:
            found.append(path)
    found.append(os.path.realpath(sys.executable))
    for name, value in os.environ.items():
        for path in map(os.path.realpath, filter(os.path.isabs, value.split(os.pathsep))):
            if name != "HOME" and not (contains_hidden(path) or (name == "PATH" and in_home(path))):
                found.append(path)
    return list(dict.fromkeys(filter(os.path.exists, found)))


def _public(folder: str) -> list[str]:
    """Return *folder*, or if not every user may read all that is in it, what they may."""
    found, whole = [], True
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_symlink():  # what it leads to counts
                    continue
                mode = entry.stat(follow_symlinks=False).st_mode
                if stat.S_ISDIR(mode):
                    below = _public(entry.path) if mode & 0o005 == 0o005 else []
                else:
                    below = [entry.path] if mode & 0o004 else []
                found += below
                whole = whole and below == [entry.path]
    except OSError:  # it is not there, or not for this user
        return []
    return [folder] if whole else found


def _without(path: str, hidden: list[str]) -> list[str]:
    """Return *path*, or if one of *hidden* lies below it, what else does."""
    if path in hidden:
        return []
    if not any(os.path.commonpath((path, each)) == path for each in hidden):
        return [path]
    try:
        names = sorted(os.listdir(path))
    except OSError:
        return []
    return [each for name in names for each in _without(os.path.join(path, name), hidden)]


def _seccomp(libc: ctypes.CDLL) -> bool:
    """Filter system calls; return whether this kernel and processor do."""
    machine = platform.machine()
    if machine not in _SOCKET_CALLS or sys.maxsize < 2**32:
        return False
    architecture, socket, socketpair, connect = _SOCKET_CALLS[machine]
    load, equal, at_least, mask, result = 0x20, 0x15, 0x35, 0x54, 0x06
    number, first_argument, second_argument = 0, 16, 24
    denied = _REFUSE | errno.EACCES
    # Operation, lines to skip if it holds, and if not, value.
    program = [
        (load, 0, 0, 4),
        (equal, 1, 0, architecture),
        (result, 0, 0, _KILL),
        (load, 0, 0, number),
        (at_least, 0, 1, 0x40000000),  # the second system call table of x86-64, x32
        (result, 0, 0, denied),
    ]
    for each in (*_REFUSED[machine], connect):
        program += [(equal, 0, 1, each), (result, 0, 0, denied)]
    for each in _OWN_PROCESS[machine]:
        program += [
            (equal, 0, 4, each),
            (load, 0, 0, first_argument),
            (equal, 0, 1, 0),
            (result, 0, 0, _ALLOW),
            (result, 0, 0, denied),
        ]
    program += [
        (equal, 2, 0, socket),
        (equal, 1, 0, socketpair),
        (result, 0, 0, _ALLOW),
        # CUDA and others hand descriptors on by UNIX sockets: streams that are bound, no more. What
        # sends datagrams (a raw socket does, too) reaches services without being connected.
        (load, 0, 0, first_argument),
        (equal, 1, 0, _AF_UNIX),
        (result, 0, 0, denied),
        (load, 0, 0, second_argument),
        (mask, 0, 0, 0xF),
        (equal, 2, 0, _SOCK_STREAM),
        (equal, 1, 0, _SOCK_SEQPACKET),
        (result, 0, 0, denied),
        (result, 0, 0, _ALLOW),
    ]
    code = b"".join(struct.pack("=HBBI", *line) for line in program)
    buffer = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("@HP", len(program), ctypes.addressof(buffer))
    return bool(libc.prctl(_PR_SET_SECCOMP, 2, header, 0, 0) == 0)


def supervise(
    plugin: Callable[[], None],
    failed: Callable[[str], None],
    *,
    seconds: float,
    memory: int,
    processes: int,
) -> NoReturn:
    """Run *plugin* in a child process, end everything that it started, exit with its status.

    Args:
        plugin: does not return.
        failed: reports which limit was exceeded.
        seconds: after which the plugin is ended, should the caller not be there any more to do it.
        memory: bytes that all processes may have together (resident; shared pages count for each).
        processes: the most processes at a time.
    """
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # The caller asks with this one; what it sends next cannot be handled.
    signal.signal(signal.SIGTERM, _terminated)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
        try:
            plugin()
        finally:
            os._exit(1)
    exceeded = ""
    status = None
    try:
        deadline = time.monotonic() + seconds
        while status is None and not exceeded:
            signal.sigtimedwait([signal.SIGCHLD], _INTERVAL)
            ended, found = os.waitpid(child, os.WNOHANG)
            if ended:
                status = found
                break
            count, size = _usage()
            if count > processes:
                exceeded = f"started more than {processes} processes"
            elif size > memory:
                exceeded = f"used more than {memory // 2**20} MiB of memory"
            elif time.monotonic() > deadline:
                break
    finally:
        end_children()
    if exceeded:
        failed(exceeded)
        os._exit(0)
    if status is None:
        os._exit(1)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status))


def end_children() -> None:
    """Kill all descendants of this process, and reap them."""
    deadline = time.monotonic() + 2.0
    while time.monotonic() < deadline:
        for pid in _descendants():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:  # none is left, and none can come
            return
        time.sleep(0.001)


def _terminated(number: int, _frame: object) -> NoReturn:
    end_children()
    os._exit(128 + number)


def _descendants() -> list[int]:
    found: list[int] = []
    pending = [os.getpid()]
    while pending:
        pid = pending.pop()
        try:
            tasks = os.listdir(f"/proc/{pid}/task")
        except OSError:  # gone
            continue
        for task in tasks:
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{task}/children") as stream:
                children = list(map(int, stream.read().split()))
                found += children
                pending += children
    return found


def _usage() -> tuple[int, int]:
    """Return how many descendants there are, and how many bytes they have in memory."""
    page = os.sysconf("SC_PAGE_SIZE")
    total = 0
    pids = _descendants()
    for pid in pids:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/statm") as stream:
            total += int(stream.read().split()[1]) * page
    return len(pids), total


if __name__ == "__main__":  # which measures are in force on this machine, as a JSON object
    import json

    sys.stdout.write(json.dumps(confine(os.devnull, [os.path.expanduser("~")])))
