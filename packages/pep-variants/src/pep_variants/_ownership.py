"""Whether other users of the machine can change a file or directory.

What grants trust, or holds code and documents that are believed later, only counts from places
that only the user and the administrator can write to. On Windows nothing is checked: its
permissions are access control lists, which the standard library cannot read, and directories of
a user's profile are private by default.
"""

from __future__ import annotations

import os
import shlex
import stat
import sys
from pathlib import Path

from .errors import VariantError, printable

if sys.platform != "win32":
    import grp
    import pwd


_ROOT = 0


class NotPrivate(VariantError):
    """A file or directory that other users can change."""


def check_private(path: Path, status: os.stat_result | None = None) -> None:
    """Check that no other user can change the file or directory at *path*.

    It has to belong to the user or to root, and must be writable for neither others nor a group
    that may have other members. Of a file the same holds for the directory that it is in, symbolic
    links resolved; there a sticky bit (as ``/tmp`` has) also keeps others from replacing it. A link
    at *path* has to belong to the user or to root, too.

    Args:
        path: of the file or directory.
        status: of the file if it is open already (`os.fstat`), so that the very file which was
            read is judged; None looks at what is at *path*.

    Raises:
        NotPrivate: others can change it; the message names what, why, and what to do.
        OSError: it is not there.
    """
    if not hasattr(os, "geteuid"):
        return
    if status is None:
        status = path.stat()
        _check_owner(path, path.lstat())
    _check(path, status)
    if not stat.S_ISDIR(status.st_mode):
        for folder in dict.fromkeys((path.absolute().parent, path.resolve().parent)):
            _check(folder, folder.stat(), sticky=True)


def make_private(path: Path) -> None:
    """Make the directory *path*, with its parents, for the user alone, whatever the umask is.

    One that exists is checked, and left as it is.

    Raises:
        NotPrivate: it exists and others can change it.
        OSError: it cannot be made.
    """
    try:
        path.mkdir(mode=0o700)
    except FileNotFoundError:
        # mkdir(parents=True) would make them with the umask, which may let everyone write.
        make_private(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)
    except FileExistsError:
        if not path.is_dir():
            raise
    check_private(path)


def _check_owner(path: Path, status: os.stat_result) -> None:
    if status.st_uid not in (os.geteuid(), _ROOT):
        raise NotPrivate(
            f"{printable(str(path))} belongs to another user (uid {status.st_uid}): "
            "make one of your own"
        )


def _check(path: Path, status: os.stat_result, *, sticky: bool = False) -> None:
    _check_owner(path, status)
    writable = status.st_mode & stat.S_IWOTH or (
        status.st_mode & stat.S_IWGRP and not _is_private_group(status.st_gid)
    )
    if writable and not (sticky and status.st_mode & stat.S_ISVTX):
        place = printable(str(path))
        raise NotPrivate(
            f"{place} can be changed by other users: run chmod go-w {shlex.quote(place)}"
        )


def _is_private_group(gid: int) -> bool:
    """Return whether a group has the user as its only member, by its name and members.

    Ubuntu, Fedora and others give every user such a group, with the name of the user, and a umask
    of 002: all that their users write is writable for it. OpenSSH of Debian has the same exception.
    Root has none: on some systems accounts of services are in its group.
    """
    try:
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(gid)
    except KeyError:  # as in containers
        return False
    return (
        user.pw_uid != _ROOT
        and user.pw_gid == gid
        and user.pw_name == group.gr_name
        and set(group.gr_mem) <= {user.pw_name}
    )
