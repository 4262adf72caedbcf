"""Platform files of well-known machines, by name (``h100-zen4``): one for each class of machine.

Each says in its first lines what machine it is for, and holds what ``variants detect -o`` writes
there.
"""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path(__file__).parent
"""Where the files are."""

_COMMENT_LINES = 8
_TITLE_LENGTH = 199
_TITLE = re.compile(r"(?:Example: )?(.*?)\.?(?: What the built-in providers .*)?")


def named_platforms() -> dict[str, Path]:
    """Return the platform files by name, in alphabetical order."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.toml"))}


def platform_title(path: Path) -> str:
    """Return what the platform file at *path* says of its machine in its first lines, or nothing.

    Raises:
        OSError: it cannot be read.
    """
    comment: list[str] = []
    with path.open(encoding="utf-8", errors="replace") as lines:
        for _ in range(_COMMENT_LINES):
            line = lines.readline(200)
            if not line.startswith("#"):
                break
            comment.append(line[1:].strip())
    found = _TITLE.fullmatch(" ".join(comment))
    return found[1][:_TITLE_LENGTH] if found else ""
