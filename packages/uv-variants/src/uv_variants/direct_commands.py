"""Command lines for which uv needs no index, told apart with nothing imported.

``uv-variants pip list`` becomes uv as fast as Python starts. Command lines that begin with an
option are left to `invocation`, which knows all of uv's options.
"""

from __future__ import annotations

TYPE_CHECKING = False  # `typing` would take longer than everything here
if TYPE_CHECKING:
    from collections.abc import Sequence

DIRECT = (
    *("auth", "format", "generate-shell-completion", "help", "init"),
    *("publish", "python", "self", "workspace"),
)
"""Commands that are uv's alone, and never need an index.

``cache`` needs none either, and has a module of its own.
"""

PIP = ("install", "sync", "compile", "download", "wheel")
"""Commands of ``uv pip`` that need one; others with ``--outdated`` only."""

TOOL = ("install", "run", "upgrade")
"""The same of ``uv tool``."""


def is_direct(arguments: Sequence[str]) -> bool:
    """Return whether *arguments*, those after ``uv``, surely need no index."""
    first, second = (*arguments[:2], "", "")[:2]
    if first in DIRECT:
        return True
    if first not in ("pip", "tool") or not second or second.startswith("-"):
        return False
    return second not in (PIP if first == "pip" else TOOL) and "--outdated" not in arguments
