"""The command that repairs a built wheel before metadata is added.

Wheels that link libraries do not run elsewhere until a tool such as auditwheel (Linux), delocate
(macOS) or delvewheel (Windows) has copied these libraries into them. Like cibuildwheel's
``repair-wheel-command``, the command reads ``{wheel}`` and writes to
``{dest_dir}``. It runs without a shell.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from pep_variants.model.filename import parse_filename

SYSTEMS = ("linux", "darwin", "win32")
"""Values of `sys.platform` for which a command can be given."""
PLACEHOLDERS = ("{wheel}", "{dest_dir}")
"""Required placeholders: the wheel to repair, and the folder for the repaired one."""


def repair_command(words: Sequence[str], wheel: Path, target: Path) -> list[str]:
    """Return *words* with `PLACEHOLDERS` replaced by paths."""
    paths = dict(zip(PLACEHOLDERS, map(str, (wheel, target)), strict=True))
    pattern = "|".join(map(re.escape, paths))
    return [re.sub(pattern, lambda match: paths[match[0]], word) for word in words]


def same_release(before: Path, after: Path) -> bool:
    """Return whether both are wheels of the same version; tags and build number may differ.

    Raises:
        InvalidWheelFilename: one of them is not a wheel filename.
    """
    old, new = parse_filename(before.name), parse_filename(after.name)
    return (old.name, old.version) == (new.name, new.version)
