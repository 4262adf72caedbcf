"""The command that repairs a built wheel before it is packed.

Wheels that link libraries do not run elsewhere until a tool such as auditwheel (Linux), delocate
(macOS) or delvewheel (Windows) has put these libraries into them. What is done is up to the
command; like cibuildwheel's ``repair-wheel-command`` it reads ``{wheel}`` and writes into
``{dest_dir}``. No shell is between.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from pep_variants.filename import parse_filename

SYSTEMS = ("linux", "darwin", "win32")
"""Values of `sys.platform` that may have commands of their own."""
PLACEHOLDERS = ("{wheel}", "{dest_dir}")
"""What a command has to name: the wheel to repair, the folder for the one that comes of it."""


def repair_command(words: Sequence[str], wheel: Path, target: Path) -> list[str]:
    """Return *words* with the paths in the places of `PLACEHOLDERS`."""
    paths = dict(zip(PLACEHOLDERS, map(str, (wheel, target)), strict=True))
    pattern = "|".join(map(re.escape, paths))
    return [re.sub(pattern, lambda match: paths[match[0]], word) for word in words]


def same_release(before: Path, after: Path) -> bool:
    """Tell whether both are wheels of the same version; tags and build number may differ.

    Raises:
        InvalidWheelFilename: one of them is no wheel.
    """
    old, new = parse_filename(before.name), parse_filename(after.name)
    return (old.name, old.version) == (new.name, new.version)
