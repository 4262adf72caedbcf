"""Which of uv's commands need an index, and what they work on."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from .direct_commands import DIRECT, PIP, TOOL

if TYPE_CHECKING:
    from .invocation import Invocation


class Scope(Enum):
    """What a command works on."""

    NOTHING = "no index"
    ENVIRONMENT = "an environment"
    PROJECT = "a project with a lock file"
    TOOL = "a tool"
    BUILD = "a build"


EXPORTING = (("export",), ("pip", "compile"))
"""Commands that write what others are to install; see `exports`."""

_PROJECT = frozenset(
    (
        "add",
        "audit",
        "check",
        "export",
        "lock",
        "remove",
        "run",
        "sync",
        "tree",
        "version",
    )
)


def scope_of(invocation: Invocation) -> Scope:
    """Return what *invocation* works on.

    A command that is not known may need an index.
    """
    command = invocation.command
    if not command or invocation.has("help", "version", "h", "V"):
        return Scope.NOTHING
    first, second = command[0], command[1] if len(command) > 1 else ""
    if first in DIRECT or first == "cache":
        return Scope.NOTHING
    if first == "pip":
        wanted = second in PIP or invocation.has("outdated")
        return Scope.ENVIRONMENT if wanted else Scope.NOTHING
    if first == "tool":
        wanted = second in TOOL or invocation.has("outdated")
        return Scope.TOOL if wanted else Scope.NOTHING
    if first == "venv":
        return Scope.BUILD if invocation.has("seed") else Scope.NOTHING
    return Scope.PROJECT if first in _PROJECT else Scope.BUILD
