"""Removing directories in which code that is not trusted has written."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path


def remove_tree(root: Path) -> None:
    """Remove the directory *root* with all that is in it; what cannot be removed stays.

    Links are neither followed nor is the mode of what they lead to changed, as `tempfile` did up to
    Python 3.12.1. Any depth is removed: `shutil.rmtree` recurses and paths are limited, so each
    directory is moved up to *root* before it is emptied.
    """
    if sys.platform == "win32":
        import shutil

        shutil.rmtree(root, ignore_errors=True)  # knows junctions
        return
    pending = [root]
    while pending:
        folder = pending.pop()
        try:
            # It may have been made without any rights.
            folder.chmod(0o700)
            with os.scandir(folder) as entries:
                found = [
                    (Path(entry.path), entry.is_dir(follow_symlinks=False)) for entry in entries
                ]
        except OSError:
            continue
        for path, is_folder in found:
            with contextlib.suppress(OSError):
                if not is_folder:
                    path.unlink()
                    continue
                path.chmod(0o700)  # moving it changes the directory itself
                moved = root / os.urandom(16).hex()
                path.rename(moved)
                pending.append(moved)
        if folder != root:
            with contextlib.suppress(OSError):
                folder.rmdir()
    with contextlib.suppress(OSError):
        root.rmdir()
