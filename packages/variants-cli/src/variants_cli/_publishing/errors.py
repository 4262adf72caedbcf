"""Errors of publishing. Catch `PublishError` for all of them.

Messages name the file and the target, without credentials, and say what to do. What was uploaded
before the error stays; the same command goes on from there.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pep_variants.errors import VariantError

_TOOLS = {"uv-receipt.toml": "uv tool install", "pipx_metadata.json": "pipx install --force"}
"""Commands that make the environment of a tool, by the file that they put into it."""


def install_command(extra: str) -> str:
    """Return the command that adds *extra* to this installation of variants-cli."""
    made = (words for name, words in _TOOLS.items() if Path(sys.prefix, name).exists())
    return f"{next(made, 'pip install')} 'variants-cli[{extra}]'"


class PublishError(VariantError):
    """An upload that failed, was refused, or is not possible."""


class Conflict(PublishError):
    """The target has a file of that name with other contents, or contradicting metadata."""
